"""Functions of arrays of any namespace: those that some namespaces lack, or that NumPy has in a faster form.

Losses are computed thousands of times, on few rows too, where each call of a function of NumPy counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from mopn.losses.namespaces import namespace

__all__ = [
    "at",
    "at_least",
    "at_most",
    "either",
    "exp_in_place",
    "inner",
    "largest",
    "one_where",
    "own_entries",
    "put",
    "row_maxima",
    "row_sums",
    "rowwise_inner",
    "total",
    "xlog1py",
    "xlogy",
]


def total(A: Any) -> Any:
    """Return the sum of all entries: a float, or on a device an array without axes."""
    return float(A.sum()) if isinstance(A, np.ndarray) else namespace(A).sum(A)


def inner(A: Any, B: Any) -> Any:
    """Return <A, B>: a float, or on a device an array without axes."""
    return float(np.vdot(A, B)) if isinstance(A, np.ndarray) else namespace(A).sum(A * B)


def rowwise_inner(A: Any, B: Any) -> Any:
    """Return <a_i, b_i> of the rows of two arrays, (n,)."""
    return np.einsum("ic,ic->i", A, B) if isinstance(A, np.ndarray) else namespace(A).sum(A * B, axis=1)


def row_sums(A: Any) -> Any:
    """Return the sums (n,) of the rows."""
    return A.sum(axis=1) if isinstance(A, np.ndarray) else namespace(A).sum(A, axis=1)


def row_maxima(A: Any) -> Any:
    """Return the largest entries (n,) of the rows."""
    return A.max(axis=1) if isinstance(A, np.ndarray) else namespace(A).max(A, axis=1)


def largest(A: Any) -> float:
    """Return the largest entry."""
    return float(A.max() if isinstance(A, np.ndarray) else namespace(A).max(A))


def at_least(A: Any, bound: float) -> Any:
    """Return max(A, bound)."""
    return np.maximum(A, bound) if isinstance(A, np.ndarray) else namespace(A).clip(A, min=bound)


def at_most(A: Any, bound: float) -> Any:
    """Return min(A, bound)."""
    return np.minimum(A, bound) if isinstance(A, np.ndarray) else namespace(A).clip(A, max=bound)


def either(mask: Any, A: Any, B: Any) -> Any:
    """Return A where a mask is true, and B elsewhere; finite numbers.

    In NumPy without ``where``, whose branch on every entry takes several times as long where masks are irregular.
    """
    return A * mask + B * ~mask if isinstance(A, np.ndarray) else namespace(A).where(mask, A, B)


def one_where(mask: Any, A: Any) -> Any:
    """Return A >= 0 with 1 where a mask is true, and A is at most 1; see ``either``."""
    return np.maximum(A, mask) if isinstance(A, np.ndarray) else namespace(A).where(mask, 1.0, A)


def own_entries(O: Any, y: Any) -> Any:  # noqa: E741
    """Return where arrays like O (n, m) have the entries of the labels y (n,): places in flat O', elsewhere a mask."""
    if isinstance(O, np.ndarray):
        return np.multiply(y, len(y), dtype=np.intp) + np.arange(len(y))
    return y[:, None] == namespace(O).arange(O.shape[1], dtype=y.dtype, device=y.device)[None, :]


def at(own: Any, A: Any) -> Any:
    """Return the entries a_iy (n,) of A (n, m)."""
    if isinstance(A, np.ndarray):
        return A.T.reshape(-1)[own]
    xp = namespace(A)
    return xp.sum(xp.where(own, A, 0.0), axis=1)


def put(own: Any, A: Any, values: Any) -> Any:
    """Return A (n, m) with a number, or numbers (n,), as the entries a_iy; arrays of NumPy may be changed."""
    if isinstance(A, np.ndarray):
        # One index is several times as fast as two. Where outputs are contiguous, as they mostly are, this is no copy.
        flat = A.T.reshape(-1)
        flat[own] = values
        return flat.reshape(A.shape[::-1]).T
    return namespace(A).where(own, values if isinstance(values, float) else values[:, None], A)


def exp_in_place(A: Any) -> Any:
    """Return exp(A), in the memory of arrays of NumPy."""
    return np.exp(A, out=A) if isinstance(A, np.ndarray) else namespace(A).exp(A)


def xlogy(A: Any, B: Any) -> Any:
    """Return a log b, 0 where a is 0."""
    if isinstance(A, np.ndarray):
        return special.xlogy(A, B)
    xp = namespace(A)
    return A * xp.log(xp.where(A == 0.0, 1.0, B))


def xlog1py(A: Any, B: Any) -> Any:
    """Return a log(1 + b), 0 where a is 0."""
    if isinstance(A, np.ndarray):
        return special.xlog1py(A, B)
    xp = namespace(A)
    return A * xp.log1p(xp.where(A == 0.0, 0.0, B))

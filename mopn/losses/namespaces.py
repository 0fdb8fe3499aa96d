"""Arrays of namespaces other than NumPy's, on the host or on a device: the array API of PyTorch, CuPy and others.

Functions of blocks that are written for any namespace are marked; on a device the others get arrays of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "any_namespace",
    "as_double",
    "as_type",
    "check_has_data",
    "crossed",
    "is_device_array",
    "is_for_any_namespace",
    "is_on_accelerator",
    "namespace",
    "to_device",
    "to_host",
    "without_diagonal",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# The libraries whose arrays are used as they are; NumPy converts those of all others.
_LIBRARIES = ("torch", "cupy", "array_api_strict")
# Products of so many rows are added up in the precision of the arrays, and their sums in float64. A product of two tall
# arrays is also faster as a batch of such ones.
_ROWS_OF_A_SUM = 4096
# Older NumPy takes arrays from the host alone.
_ON_HOST: dict[str, Any] = {"device": "cpu"} if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else {}


def any_namespace(function: _Function) -> _Function:
    """Mark a function of a block as one that uses what all namespaces have."""
    function.for_any_namespace = True  # type: ignore[attr-defined]
    return function


def is_for_any_namespace(function: Any) -> bool:
    """Return whether a function is marked, or a loss says so of its methods."""
    return getattr(function, "for_any_namespace", False)


def is_device_array(values: Any) -> bool:
    """Return whether values are an array of PyTorch or CuPy, or of the strict array API."""
    return _library(values) in _LIBRARIES and hasattr(values, "__dlpack__")


def is_on_accelerator(values: Any) -> bool:
    """Return whether values are an array on another device than the host."""
    return is_device_array(values) and "cpu" not in str(values.device).lower()


def namespace(array: Any) -> Any:
    """Return the functions for an array, with the names of the array API."""
    if isinstance(array, np.ndarray):
        return np
    try:
        from array_api_compat import array_namespace
    except ImportError:
        raise ImportError(
            f"arrays of {type(array).__module__} need array-api-compat: pip install array-api-compat"
        ) from None
    return array_namespace(array)


def to_host(array: Any) -> Any:
    """Return an array of any namespace as one of NumPy, copied if it is on a device; all else as it is."""
    if not is_device_array(array):
        return array
    check_has_data(array)
    library = _library(array)
    if library == "torch":
        return array.detach().cpu().numpy()
    if library == "cupy":
        return array.get()
    return np.from_dlpack(array, **_ON_HOST)


def check_has_data(array: Any) -> None:
    """Raise ``ValueError`` for a tensor of PyTorch that has a shape only."""
    if getattr(array, "is_meta", False):
        raise ValueError("an array on PyTorch's device 'meta' has a shape and no entries; give one that has entries")


def _library(values: Any) -> str:
    return type(values).__module__.split(".")[0]


def to_device(array: np.ndarray, like: Any) -> Any:
    """Return an array of NumPy in the namespace, and on the device, of another one."""
    from array_api_compat import device

    # PyTorch takes neither read-only memory nor negative strides.
    return namespace(like).asarray(np.require(array, requirements=("C", "W")), device=device(like))


def as_type(array: Any, dtype: Any) -> Any:
    """Return an array in a type of its namespace, itself if it has it."""
    if isinstance(array, np.ndarray):
        return array.astype(dtype, copy=False)
    return namespace(array).astype(array, dtype, copy=False)


def as_double(array: Any) -> Any:
    """Return an array in float64."""
    return as_type(array, namespace(array).float64)


def crossed(A: Any, B: Any) -> Any:
    """Return A' B of two arrays of n rows: in float64 on a device, whose blocks are long, and as they are in NumPy."""
    if isinstance(A, np.ndarray):
        # Other threads run meanwhile. matmul holds the interpreter lock where the result has at most 500 entries.
        return np.dot(A.T, B)
    xp, n = namespace(A), A.shape[0]
    count = n // _ROWS_OF_A_SUM
    whole = count * _ROWS_OF_A_SUM
    parts = [xp.reshape(part[:whole, :], (count, _ROWS_OF_A_SUM, part.shape[1])) for part in (A, B)]
    total = xp.sum(as_double(xp.matrix_transpose(parts[0]) @ parts[1]), axis=0)
    return total + as_double(A[whole:, :].T @ B[whole:, :])


def without_diagonal(stack: Any) -> Any:
    """Return matrices (m, d, d) with zeros on the diagonal; those of NumPy are changed."""
    d = stack.shape[-1]
    if isinstance(stack, np.ndarray):
        stack[:, np.arange(d), np.arange(d)] = 0.0
        return stack
    return stack * (1.0 - to_device(np.eye(d), stack))

"""The maximum for p = 2 with many features: sums of squares on more and more of the stack's principal directions.

A sum of squares on r directions decomposes matrices of order r (r + 1) / 2, so it is limited to some dozens of them.
What the other directions can add is bounded by :mod:`mopn.solvers.sphere.compression`; it falls with r, mostly fast, as
loss gradients have few large principal directions. The multipliers of r directions are those of more, padded by zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.branch_regions import split_and_bound
from mopn.solvers.sphere.compression import rotated
from mopn.solvers.sphere.lifting import lifting
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack
from mopn.solvers.sphere.sum_of_squares import step_work

__all__ = ["LEAST_STEPS", "BoundParts", "NestedBound", "nest_and_bound"]

# Fewer steps of a sum of squares prove nothing.
LEAST_STEPS = 10
# Numbers of directions: a sum of squares starts well from the multipliers of slightly fewer.
_RANKS = (8, 12, 16, 20, 24, 30, 36, 44, 54, 65)
# Fewer directions are passed over unless they promise to bring the bound so much nearer to the best value.
_WORTH = 0.7
# A sum of squares ends when it adds less than this fraction of what the other directions add.
_RELAXATION = 0.1


class BoundParts(NamedTuple):
    """What a bound exceeds the best value by: on its principal directions, and for what the others can add.

    Attributes
    ----------
    directions : int
        The number of principal directions.
    relaxation : float
        The bound on these less the best value: more work would reduce it.
    compression : float
        The whole bound less that one: more directions would reduce it.
    """

    directions: int
    relaxation: float
    compression: float


class NestedBound(NamedTuple):
    """Unit vectors (k, d) found, a proven bound, and the parts of the bound, if any."""

    H: np.ndarray
    bound: float
    parts: BoundParts | None


def nest_and_bound(stack: DenseStack, H: np.ndarray, tol: float, allowance: Allowance) -> NestedBound:
    """Bound sqrt(sum_c (h' Gamma_c h)^2) over unit h.

    Parameters
    ----------
    stack : DenseStack
        Matrices Gamma (m, d, d), scaled to about 1.
    H : ndarray of shape (k, d)
        Unit vectors to start from.
    tol : float
        Largest relative difference between the bound and the best value.
    allowance : Allowance
        At any limit the best bound so far is a proof.

    Returns
    -------
    NestedBound
        The bound is infinite if the work is not enough for the fewest directions.
    """
    whole, d = rotated(stack), stack.shape[1]
    best = float(refine(stack, H, 2)[1].max())
    found, bound, N, last, parts = [H], math.inf, np.zeros((0, 0)), 0, None
    for r in (*(rank for rank in _RANKS if rank < d), *((d,) if d <= _RANKS[-1] else ())):
        if not allowance.affords(LEAST_STEPS * step_work(r)):
            break
        part, starts = whole.compressed(r), _restricted(H, whole.basis[:, :r])
        reach = part.bound(float(refine(part.leading, starts, 2)[1].max()))
        if reach - best > _WORTH * (bound - best):
            continue
        slack = max(tol, _RELAXATION * (reach / best - 1.0)) if best > 0 else tol
        N, last = _padded(N, last, r), r
        split = split_and_bound(part.leading, starts, slack, N, allowance)
        N = split.N
        if part.bound(split.bound) < bound:
            bound = part.bound(split.bound)
            parts = BoundParts(r, split.bound - best, bound - split.bound)
        found.append(refine(stack, split.H @ whole.basis[:, :r].T, 2)[0])
        if bound <= best * (1.0 + tol):
            break
    return NestedBound(np.vstack(found), bound, parts)


def _restricted(H: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Return the unit vectors (k, r) along the projections P' h, without those that vanish; at least one."""
    starts = H @ P
    lengths = np.linalg.norm(starts, axis=1, keepdims=True)
    alive = lengths[:, 0] > 0
    return starts[alive] / lengths[alive] if alive.any() else np.eye(1, P.shape[1])


def _padded(N: np.ndarray, r: int, larger: int) -> np.ndarray:
    """Return the multiplier (D, D) of the first r of more directions, zero on the others."""
    wide = lifting(larger)
    padded = np.zeros((wide.dimension, wide.dimension))
    rows = np.flatnonzero((wide.i < r) & (wide.j < r))
    padded[np.ix_(rows, rows)] = N
    return padded

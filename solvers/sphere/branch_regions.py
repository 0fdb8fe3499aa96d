"""The maximum for p = 2, proven to any precision: branch and bound on the sphere with sum-of-squares relaxations.

A region whose bound is not tight is split by the sign of a quadratic form h' B h with B = Gamma_c - t I, where t is the
mean of q_c under the pseudo-moments of the relaxation. If these were the moments of a distribution of unit vectors, the
split would separate its support. The relaxation of each part has one more term, that of the cut. The region with the
largest bound is split first. At any limit the largest bound of the regions is a proof.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np

from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack
from mopn.solvers.sphere.sum_of_squares import Quartic, Region, relax

__all__ = ["RegionBound", "split_and_bound"]


class RegionBound(NamedTuple):
    """Unit vectors (k, d) found, a proven bound, and the root's multiplier N (D, D)."""

    H: np.ndarray
    bound: float
    N: np.ndarray


def split_and_bound(
    stack: DenseStack, H: np.ndarray, tol: float = 1e-4, N: np.ndarray | None = None, allowance: Allowance | None = None
) -> RegionBound:
    """Maximise sqrt(sum_c (h' Gamma_c h)^2) over unit h.

    Parameters
    ----------
    stack : DenseStack
        Matrices Gamma (m, d, d), scaled to about 1. A decomposition takes O(d^6) operations, so d must be small.
    H : ndarray of shape (k, d)
        Unit vectors to start from; regions whose bound is close to the best value are not split.
    tol : float
        Largest relative difference between the bound and the best value.
    N : ndarray of shape (D, D), optional
        The multiplier of a similar stack, to start from.
    allowance : Allowance, optional
        Default: no limits.

    Returns
    -------
    RegionBound
    """
    quartic, allowance = Quartic(stack), allowance or Allowance()
    H, values = refine(stack, H, 2)
    best = float(values.max())

    def solve(region: Region) -> Region:
        nonlocal H, best
        region = relax(quartic, region, _target(best, tol, quartic), allowance)
        new, values = refine(stack, region.starts(quartic.lift), 2)
        H, best = np.vstack([H, new]), max(best, float(values.max()))
        return region

    root = solve(quartic.whole(N))
    order = itertools.count()
    heap: list[tuple[float, int, Region]] = [(-root.bound, next(order), root)]
    while -heap[0][0] > _target(best, tol, quartic) and allowance.affords(quartic.step_work):
        region = heap[0][2]
        cut = _best_cut(quartic, region)
        if cut is None:
            break
        heapq.heappop(heap)
        for sign in (1.0, -1.0):
            part = solve(region.cut(sign * cut, quartic, root.bound))
            heapq.heappush(heap, (-part.bound, next(order), part))
    bound = math.sqrt(-heap[0][0]) + quartic.forming_error
    return RegionBound(H, bound, root.N)


def _target(best: float, tol: float, quartic: Quartic) -> float:
    """Return the bound of the quartic that is tight enough: within tol, or within the error of the matrices."""
    return max(best * (1.0 + tol) - quartic.forming_error, best + quartic.forming_error) ** 2


def _best_cut(quartic: Quartic, region: Region) -> np.ndarray | None:
    """Return svec(Gamma_c - t I) for the output c whose split removes most of the pseudo-moments from both parts.

    The part with h' B h >= 0 removes the negative part of the pseudo-mean of (h' B h) hh'.
    """
    density = region.X
    means = quartic.vectors @ density  # svec of the pseudo-mean of q_c hh'
    centre = density @ quartic.identity  # svec of the pseudo-mean of hh'
    t = means @ quartic.identity
    cuts = quartic.vectors - t[:, None] * quartic.identity
    sizes = np.linalg.norm(cuts, axis=1)
    alive = sizes > 1e-9 * np.linalg.norm(quartic.vectors)
    if not alive.any():
        return None
    moments = quartic.lift.matrices((means - t[:, None] * centre)[alive] / sizes[alive, None])
    values = np.linalg.eigvalsh(moments)
    scores = np.minimum(np.where(values > 0, values, 0.0).sum(axis=1), -np.where(values < 0, values, 0.0).sum(axis=1))
    return cuts[alive][int(np.argmax(scores))]

"""The exact maximum for p = 1, for any number of outputs, by branch and bound on the signs of the forms.

max_h sum_c |h' Gamma_c h| = max over signs s of lambda_max(sum_c s_c Gamma_c). A node fixes the signs of the first j
matrices. As |h' Gamma_c h| <= h' M_c h with a majorant M_c, lambda_max of the fixed part plus the sum of the free M_c
bounds all of its leaves. Nodes are opened best first, in batches whose eigenvalue problems are solved together. A node
stores only its signs, m bytes.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np

from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.bounds import combination_error
from mopn.solvers.sphere.majorants import majorants
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack

__all__ = ["NODE_WORK", "branch_and_bound"]

# Operations that a node counts, whatever the order of its matrices, and how many are opened at a time.
NODE_WORK, _BATCH = 4.4e3, 32


class _Nodes(NamedTuple):
    """The matrices of nodes: the sums of ``fixed`` (m, d, d) with their signs, and of ``free`` (m + 1, d, d).

    ``free[j]`` is the sum of the majorants from the output j on; ``slack`` bounds the rounding errors of eigenvalues.
    """

    fixed: np.ndarray
    free: np.ndarray
    slack: float

    @classmethod
    def of(cls, stack: DenseStack, seconds: float) -> _Nodes:
        """Return the nodes of a stack, its outputs by decreasing size."""
        order = np.argsort(-np.abs(stack.eigen[0]).sum(axis=1), kind="stable")
        M, violation = majorants(stack, seconds)
        sums = np.cumsum(M[order][::-1], axis=0)[::-1]
        free = np.concatenate([sums, np.zeros((1, *sums.shape[1:]))])
        return cls(stack.matrices[order], free, 2.0 * combination_error(stack) + violation)

    def bounds(self, signs: np.ndarray) -> np.ndarray:
        """Return the proven bounds (q,) of nodes with signs (q, m), 0 where free."""
        return np.linalg.eigvalsh(self._matrices(signs))[:, -1] + self.slack

    def vectors(self, signs: np.ndarray) -> np.ndarray:
        """Return the unit vectors (q, d) at which the bounds are attained."""
        return np.linalg.eigh(self._matrices(signs))[1][:, :, -1]

    def _matrices(self, signs: np.ndarray) -> np.ndarray:
        m, d, _ = self.fixed.shape
        flat = signs.astype(float) @ self.fixed.reshape(m, d * d)
        return flat.reshape(-1, d, d) + self.free[np.count_nonzero(signs, axis=1)]


def branch_and_bound(
    stack: DenseStack, H: np.ndarray, tol: float = 1e-9, allowance: Allowance | None = None
) -> tuple[np.ndarray, float]:
    """Maximise sum_c |h' Gamma_c h| over unit h.

    Parameters
    ----------
    stack : DenseStack
        Matrices Gamma (m, d, d).
    H : ndarray of shape (k, d)
        Unit vectors to start from; a better start leaves fewer nodes to open.
    tol : float
        Nodes whose bound exceeds the best value by less than this, relative, are not opened; the returned bound
        covers them.
    allowance : Allowance, optional
        Every node spends ``NODE_WORK``. At a limit the largest bound of the open nodes is returned, a proof. Default:
        no limits.

    Returns
    -------
    h : ndarray of shape (d,)
        The best unit vector found.
    bound : float
        Proven upper bound of the maximum, rounding errors included.
    """
    allowance = allowance or Allowance()
    h, best = _best_of(stack, H, H[0], 0.0)
    nodes = _Nodes.of(stack, allowance.seconds)

    def level(best: float) -> float:
        """Return the bound from which on a node is opened; none is below its rounding."""
        return best * (1.0 + tol) + nodes.slack

    root = np.zeros(stack.shape[0], dtype=np.int8)
    heap: list[tuple[float, int, bytes]] = [(-math.inf, 0, root.tobytes())]
    closed = 0.0  # the largest bound among nodes that were pruned and among leaves
    tick = itertools.count()
    while heap and -heap[0][0] > level(best):
        if not allowance.affords(NODE_WORK):
            break
        batch = [heapq.heappop(heap) for _ in range(min(_BATCH, len(heap)))]
        signs = _branch(np.array([np.frombuffer(signs, np.int8) for _, _, signs in batch]))
        bounds = nodes.bounds(signs)
        allowance.spend(NODE_WORK * len(signs))
        tried = (signs[:, -1] != 0) & (bounds > level(best))
        tried[np.argmax(bounds)] = True
        h, best = _best_of(stack, nodes.vectors(signs[tried]), h, best)
        for child, bound in zip(signs, bounds, strict=True):
            if bound <= level(best) or child[-1] != 0:
                closed = max(closed, bound)
            else:
                heapq.heappush(heap, (-float(bound), next(tick), child.tobytes()))
    opened = -heap[0][0] if heap else 0.0
    return h, max(opened, closed, best)


def _branch(signs: np.ndarray) -> np.ndarray:
    """Fix the next sign of every node to +1 and to -1."""
    depth = np.count_nonzero(signs, axis=1)
    signs = np.repeat(signs, 2, axis=0)
    rows, depth = np.arange(len(signs)), np.repeat(depth, 2)
    signs[rows, depth] = np.where(rows % 2 == 0, 1, -1)
    return signs


def _best_of(stack: DenseStack, H: np.ndarray, h: np.ndarray, best: float) -> tuple[np.ndarray, float]:
    """Refine the rows of H (k, d), if there are any; return the best of them and h, and its value."""
    if not len(H):
        return h, best
    H, values = refine(stack, H, 1)
    top = int(np.argmax(values))
    return (H[top], float(values[top])) if values[top] > best else (h, best)

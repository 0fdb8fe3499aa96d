"""The exact maximum for p = 1, for any number of outputs, by branch and bound on the signs of the forms.

max_h sum_c |h' Gamma_c h| = max over signs s of lambda_max(sum_c s_c Gamma_c). A node fixes the signs of the first j
matrices. As |h' Gamma_c h| <= h' M_c h with a majorant M_c, lambda_max of the fixed part plus the sum of the free M_c
bounds all of its leaves. Nodes are opened best first, in batches whose eigenvalue problems are solved together. A node
stores only its signs, m bytes.

With many features the bounds are those of smaller matrices, on some principal directions, which are not much larger;
leaves that they do not close are bounded by whole matrices.
"""

from __future__ import annotations

import heapq
import math
import time
from typing import NamedTuple

import numpy as np

from mopn.solvers.sphere.majorants import STEPS, majorants
from mopn.solvers.sphere.node_matrices import Reduced, Whole, reduced, whole
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack

__all__ = ["branch_and_bound"]

_BATCH = 32


# From this number of features on, nodes are bounded on principal directions.
_MANY = 40
# With so few outputs, all nodes on some directions cost less than good majorants, so matrix absolute values will do. A
# tolerance of this share of that wanted then costs little more than the preparations.
_FEW_OUTPUTS, _CLOSER = 12, 0.1


class _Children(NamedTuple):
    """The two children of every node of a batch: signs (q, m), 0 where free, and bounds (q,)."""

    signs: np.ndarray
    bounds: np.ndarray


def branch_and_bound(
    stack: DenseStack,
    H: np.ndarray,
    tol: float = 1e-9,
    max_nodes: int = 100_000,
    max_time: float = math.inf,
) -> tuple[np.ndarray, float, int]:
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
    max_nodes, max_time : float
        Largest number of nodes, and of seconds. At a limit the largest bound of the open nodes is returned, a proof.

    Returns
    -------
    h : ndarray of shape (d,)
        The best unit vector found.
    bound : float
        Proven upper bound of the maximum, rounding errors included.
    nodes : int
        Nodes whose bound was computed.
    """
    began = time.perf_counter()
    h, best = _best_of(stack, *refine(stack, H, 1))
    relaxed, exact = _relaxations(stack, h, tol, max_time)
    if relaxed is not exact and stack.shape[0] <= _FEW_OUTPUTS:
        tol *= _CLOSER
    root = np.zeros(stack.shape[0], dtype=np.int8)
    heap: list[tuple[float, int, bytes]] = [(-math.inf, 0, root.tobytes())]
    closed = 0.0  # the largest bound among nodes that were pruned and among leaves
    nodes = 0
    while heap and -heap[0][0] > best * (1.0 + tol):
        if nodes >= max_nodes or time.perf_counter() - began >= max_time:
            break
        batch = [heapq.heappop(heap) for _ in range(min(_BATCH, len(heap)))]
        signs = _branch(np.array([np.frombuffer(signs, np.int8) for _, _, signs in batch]))
        children = _Children(signs, relaxed.bounds(signs))
        nodes += len(signs)
        h, best = _improve(stack, relaxed, children, h, best, tol)
        nodes += _close_leaves(exact, children, best * (1.0 + tol)) if exact is not relaxed else 0
        for signs, bound in zip(children.signs, children.bounds, strict=True):
            if bound <= best * (1.0 + tol) or signs[-1] != 0:
                closed = max(closed, bound)
            else:
                heapq.heappush(heap, (-float(bound), nodes, signs.tobytes()))
    opened = -heap[0][0] if heap else 0.0
    return h, max(opened, min(closed, best * (1.0 + tol)), best) + max(relaxed.slack, exact.slack), nodes


def _relaxations(stack: DenseStack, h: np.ndarray, tol: float, max_time: float) -> tuple[Whole | Reduced, Whole]:
    """Return the matrices of the nodes, and whole ones, of the outputs by decreasing size."""
    began = time.perf_counter()
    m, d = stack.shape
    order = np.argsort(-np.abs(stack.eigen[0]).sum(axis=1), kind="stable")
    ordered = DenseStack(stack.matrices[order], stack.error[order])
    plain = d >= _MANY and m <= _FEW_OUTPUTS
    M, violation = majorants(stack, max_time, 0 if plain else STEPS)
    if d >= _MANY:
        small = reduced(ordered, M[order], violation, h, tol)
        if small is not None:
            return small, whole(ordered, M[order], violation)
    if plain:
        M, violation = majorants(stack, max_time - (time.perf_counter() - began))
    nodes = whole(ordered, M[order], violation)
    return nodes, nodes


def _branch(signs: np.ndarray) -> np.ndarray:
    """Fix the next sign of every node to +1 and to -1."""
    depth = np.count_nonzero(signs, axis=1)
    signs = np.repeat(signs, 2, axis=0)
    rows, depth = np.arange(len(signs)), np.repeat(depth, 2)
    signs[rows, depth] = np.where(rows % 2 == 0, 1, -1)
    return signs


def _improve(
    stack: DenseStack, relaxed: Whole | Reduced, children: _Children, h: np.ndarray, best: float, tol: float
) -> tuple[np.ndarray, float]:
    """Refine top eigenvectors, of the largest bound and of every leaf, whose bound is attained; keep the best."""
    tried = (children.signs[:, -1] != 0) & (children.bounds > best * (1.0 + tol))
    tried[np.argmax(children.bounds)] = True
    refined, value = _best_of(stack, *refine(stack, relaxed.vectors(children.signs[tried]), 1))
    return (refined, value) if value > best else (h, best)


def _close_leaves(exact: Whole, children: _Children, level: float) -> int:
    """Bound the leaves above a level by whole matrices; return their number."""
    rows = np.flatnonzero((children.signs[:, -1] != 0) & (children.bounds > level))
    if len(rows):
        children.bounds[rows] = np.minimum(children.bounds[rows], exact.bounds(children.signs[rows]))
    return len(rows)


def _best_of(stack: DenseStack, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    top = int(np.argmax(values))
    return H[top], float(values[top])

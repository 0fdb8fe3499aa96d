"""The exact maximum for p = 1, for any number of outputs, by branch and bound on the signs of the forms.

max_h sum_c |h' Gamma_c h| = max over signs s of lambda_max(sum_c s_c Gamma_c). A node fixes the signs of the first j
matrices. As |h' Gamma_c h| <= h' M_c h with a majorant M_c, lambda_max of the fixed part plus the sum of the free M_c
bounds all of its leaves. Nodes are opened best first, in batches whose eigenvalue problems are solved together. A node
stores only its signs, m bytes.
"""

from __future__ import annotations

import heapq
import math
import time
from typing import NamedTuple

import numpy as np

from mopn.solvers.sphere.bounds import combination_error
from mopn.solvers.sphere.majorants import majorants
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack

__all__ = ["branch_and_bound"]

_BATCH = 32


class _Children(NamedTuple):
    """The two children of every node of a batch: signs (q, m), 0 where free, matrices (q, d, d) and bounds (q,)."""

    signs: np.ndarray
    matrices: np.ndarray
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
    order, tails, violation = _order(stack, max_time)
    ordered = DenseStack(stack.matrices[order], stack.error[order])
    slack = 2.0 * combination_error(stack) + violation
    h, best = _best_of(stack, *refine(stack, H, 1))
    root = np.zeros(len(order), dtype=np.int8)
    heap: list[tuple[float, int, bytes]] = [(-math.inf, 0, root.tobytes())]
    closed = 0.0  # the largest bound among nodes that were pruned and among leaves
    nodes = 0
    while heap and -heap[0][0] > best * (1.0 + tol):
        if nodes >= max_nodes or time.perf_counter() - began >= max_time:
            break
        batch = [heapq.heappop(heap) for _ in range(min(_BATCH, len(heap)))]
        children = _branch(ordered, tails, np.array([np.frombuffer(signs, np.int8) for _, _, signs in batch]))
        nodes += len(children.bounds)
        h, best = _improve(stack, children, h, best, tol)
        for signs, bound in zip(children.signs, children.bounds, strict=True):
            if bound <= best * (1.0 + tol) or signs[-1] != 0:
                closed = max(closed, bound)
            else:
                heapq.heappush(heap, (-float(bound), nodes, signs.tobytes()))
    opened = -heap[0][0] if heap else 0.0
    return h, max(opened, min(closed, best * (1.0 + tol)), best) + slack, nodes


def _order(stack: DenseStack, max_time: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the outputs by decreasing size, the sums of the majorants from each place on, and their violation."""
    order = np.argsort(-np.abs(stack.eigen[0]).sum(axis=1), kind="stable")
    M, violation = majorants(stack, max_time)
    sums = np.cumsum(M[order][::-1], axis=0)[::-1]
    return order, np.concatenate([sums, np.zeros((1, *sums.shape[1:]))]), violation


def _branch(ordered: DenseStack, tails: np.ndarray, signs: np.ndarray) -> _Children:
    """Fix the next sign of every node to +1 and to -1."""
    depth = np.count_nonzero(signs, axis=1)
    signs = np.repeat(signs, 2, axis=0)
    rows, depth = np.arange(len(signs)), np.repeat(depth, 2)
    signs[rows, depth] = np.where(rows % 2 == 0, 1, -1)
    matrices = ordered.combine(signs.astype(float)) + tails[depth + 1]
    return _Children(signs, matrices, np.linalg.eigvalsh(matrices)[:, -1])


def _improve(
    stack: DenseStack, children: _Children, h: np.ndarray, best: float, tol: float
) -> tuple[np.ndarray, float]:
    """Refine top eigenvectors, of the largest bound and of every leaf, whose bound is attained; keep the best."""
    tried = (children.signs[:, -1] != 0) & (children.bounds > best * (1.0 + tol))
    tried[np.argmax(children.bounds)] = True
    H = np.linalg.eigh(children.matrices[tried])[1][:, :, -1]
    refined, value = _best_of(stack, *refine(stack, H, 1))
    return (refined, value) if value > best else (h, best)


def _best_of(stack: DenseStack, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    top = int(np.argmax(values))
    return H[top], float(values[top])

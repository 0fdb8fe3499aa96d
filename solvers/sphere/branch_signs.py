"""The exact maximum for p = 1 by the signs of the forms: branch and bound for any number of outputs, or all signs.

max_h sum_c |h' Gamma_c h| = max over signs s of lambda_max(sum_c s_c Gamma_c). A node fixes the signs of the first j
matrices. As |h' Gamma_c h| <= h' M_c h with a majorant M_c, lambda_max of the fixed part plus the sum of the free M_c
bounds all of its leaves. Nodes are opened best first, in batches whose eigenvalue problems are solved together. A node
stores only its signs, m bytes.

With many features the nodes have smaller matrices, on some principal directions, with slightly larger bounds; leaves
that these do not close are bounded by whole matrices.

The matrix absolute values |Gamma_c| are majorants. So are M_c = P^-1 |P Gamma_c P| P^-1 for every positive definite P.
The largest eigenvalue of their sum is least where X = P^2 maximises the concave function sum_c ||P Gamma_c P||_*
(nuclear norms) over X of trace 1. Its gradient is sum_c M_c, and X <- P (sum_c M_c) P is the multiplicative step.
"""

import heapq
import itertools
import math
import time
from typing import NamedTuple

import numpy as np

from mopn.solvers.numerics.precision import TINY, proven_upper
from mopn.solvers.sphere.bounds import combination_error
from mopn.solvers.sphere.node_matrices import Reduced, Whole, reduced, whole
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack
from mopn.solvers.tools.budgets import Budget

# Steps of majorants: more improve the bound of the root little, and make the bounds of deeper nodes worse.
STEPS = 4
# Operations of all steps; a step decomposes m matrices, so large ones get fewer steps.
_MAX_STEPS_WORK = 1e9
# Multiple of the identity in X, for the condition of P.
_LEAST_EIGENVALUE = 1e-6
# Largest number of outputs whose signs are enumerated: 2^19 vectors, each with a matrix to decompose.
MAX_ENUMERATED = 20
# Entries of the matrices that are decomposed together, 16 MiB.
_CHUNK_ENTRIES = 1 << 21
# Operations that a node counts, whatever the order of its matrices.
NODE_WORK = 4.4e3
# Nodes that are opened at a time: their eigenvalue problems share a call.
_NODES_AT_A_TIME = 32
# Number of features from which on nodes are bounded on principal directions.
MANY_FEATURES = 40
# Outputs up to which all nodes on some directions cost less than good majorants: matrix absolute values then suffice.
_FEW_OUTPUTS = 12
# The fraction of the tolerance for these few outputs, which costs little more.
_FEW_OUTPUTS_TOL = 0.1


class _Children(NamedTuple):
    """The two children of every node of a batch: signs (q, m), 0 where free, and bounds (q,)."""

    signs: np.ndarray
    bounds: np.ndarray

    def leaves(self, level: float) -> np.ndarray:
        return (self.signs[:, -1] != 0) & (self.bounds > level)


def branch_and_bound(
    stack: DenseStack, H: np.ndarray, tol: float = 1e-9, budget: Budget | None = None
) -> tuple[np.ndarray, float]:
    """Maximise sum_c |h' Gamma_c h| over unit h (d,), from starts H (k, d); return the best h and a proven bound."""
    budget = budget or Budget()
    h, best = _best_of(stack, H, H[0], 0.0)
    relaxed, exact = _relaxations(stack, h, tol, budget)
    if relaxed is not exact and stack.shape[0] <= _FEW_OUTPUTS:
        tol *= _FEW_OUTPUTS_TOL

    def level(best: float) -> float:
        """Return the bound above which nodes are opened; the rounding of whole matrices is above the value."""
        return best * (1.0 + tol) + exact.slack

    root = np.zeros(stack.shape[0], dtype=np.int8)
    heap: list[tuple[float, int, bytes]] = [(-math.inf, 0, root.tobytes())]
    closed = 0.0  # the largest bound among nodes that were pruned and among leaves
    nodes = itertools.count()
    while heap and -heap[0][0] > level(best):
        if not budget.affords(NODE_WORK):
            break
        batch = [heapq.heappop(heap) for _ in range(min(_NODES_AT_A_TIME, len(heap)))]
        parents = np.array([np.frombuffer(signs, np.int8) for _, _, signs in batch])
        signs = _branch(parents)
        children = _Children(signs, relaxed.bounds(signs))
        budget.spend(NODE_WORK * len(signs))
        tried = children.leaves(level(best))
        tried[np.argmax(children.bounds)] = True
        h, best = _best_of(stack, relaxed.vectors(signs[tried]), h, best)

        if exact is not relaxed:
            leaves = children.leaves(level(best))
            if leaves.any():
                children.bounds[leaves] = np.minimum(children.bounds[leaves], exact.bounds(signs[leaves]))
            budget.spend(NODE_WORK * int(leaves.sum()))
            # The vectors of a reduced matrix need not lead to the leaf's own.
            missed = children.leaves(level(best))
            h, best = _best_of(stack, exact.vectors(signs[missed]), h, best)

        for signs, bound in zip(children.signs, proven_upper(children.bounds), strict=True):
            if bound <= level(best) or signs[-1] != 0:
                closed = max(closed, bound)
            else:
                heapq.heappush(heap, (-float(bound), next(nodes), signs.tobytes()))
    opened = -heap[0][0] if heap else 0.0
    return h, max(opened, closed, best)


def _relaxations(stack: DenseStack, h: np.ndarray, tol: float, budget: Budget) -> tuple[Whole | Reduced, Whole]:
    """Return the matrices of the nodes, and whole matrices, with the outputs by decreasing size."""
    m, d = stack.shape
    values, _ = stack.eigen
    order = np.argsort(-np.abs(values).sum(axis=1), kind="stable")
    ordered = DenseStack(stack.matrices[order], stack.error[order])
    plain = d >= MANY_FEATURES and m <= _FEW_OUTPUTS
    M, violation = majorants(stack, budget.seconds, 0 if plain else STEPS)
    if d >= MANY_FEATURES:
        small = reduced(ordered, M[order], violation, h, tol)
        if small is not None:
            return small, whole(ordered, M[order], violation)
    if plain:
        M, violation = majorants(stack, budget.seconds)
    nodes = whole(ordered, M[order], violation)
    return nodes, nodes


def _branch(signs: np.ndarray) -> np.ndarray:
    """Fix the next sign of every node to +1 and to -1."""
    depth = np.count_nonzero(signs, axis=1)
    signs = np.repeat(signs, 2, axis=0)
    rows = np.arange(len(signs))
    depth = np.repeat(depth, 2)
    signs[rows, depth] = np.where(rows % 2 == 0, 1, -1)
    return signs


def _best_of(stack: DenseStack, H: np.ndarray, h: np.ndarray, best: float) -> tuple[np.ndarray, float]:
    """Refine the rows of H (k, d), if any; return the best of them and h, and its value."""
    if not len(H):
        return h, best
    H, values = refine(stack, H, 1)
    top = int(np.argmax(values))
    if values[top] > best:
        return H[top], float(values[top])
    return h, best


def enumerate_signs(
    stack: DenseStack, max_time: float = math.inf, *, entries: int = _CHUNK_ENTRIES
) -> tuple[np.ndarray, float]:
    """Maximise sum_c |h' Gamma_c h| over unit h as the largest ||sum_c s_c Gamma_c||_2 over signs s.

    s and -s give the same norm, so 2^(m-1) matrices are decomposed (appendix C of Blondel et al., NIPS 2017),
    together as many as have ``entries`` numbers.
    """
    m, d = stack.shape
    if m > MAX_ENUMERATED:
        raise ValueError(
            f"the oracle 'enumerate' decomposes 2^(m-1) matrices and is refused above m = {MAX_ENUMERATED} outputs, "
            f"got m = {m}; use 'refine'"
        )
    best = -1.0
    best_signs = np.ones(m)
    error = 2.0 * combination_error(stack)
    began = time.perf_counter()
    chunk = max(1, entries // d**2)
    for first in range(0, 2 ** (m - 1), chunk):
        codes = np.arange(first, min(first + chunk, 2 ** (m - 1)))
        # Bit c - 1 of the code is the sign of output c; output 0 keeps +1.
        bits = (codes[:, None] >> np.arange(m - 1)) & 1
        signs = np.hstack([np.ones((len(codes), 1)), 1.0 - 2.0 * bits])
        values = np.linalg.eigvalsh(stack.combine(signs))
        radius = np.maximum(-values[:, 0], values[:, -1])
        top = int(np.argmax(radius))
        if radius[top] > best:
            best = float(radius[top])
            best_signs = signs[top]
        if codes[-1] + 1 < 2 ** (m - 1) and time.perf_counter() - began >= max_time:
            error = math.inf
            break
    values, vectors = np.linalg.eigh(stack.combine(best_signs[None])[0])
    dominant = -1 if values[-1] >= -values[0] else 0
    return vectors[:, dominant], best + error


def majorants(stack: DenseStack, max_time: float = math.inf, steps: int = STEPS) -> tuple[np.ndarray, float]:
    """Return majorants (m, d, d) after some steps, and a bound of sum_c (|h' Gamma_c h| - h' M_c h)."""
    m, d = stack.shape
    began = time.perf_counter()
    M = stack.moduli
    best = _largest_of_sum(stack.moduli)
    P = np.eye(d)
    for _ in range(min(steps, int(_MAX_STEPS_WORK / (m * d**3)))):
        if time.perf_counter() - began >= max_time:
            break
        R = np.sum(_moduli(P @ stack.matrices @ P), axis=0)
        if not np.trace(R) > 0:
            break
        P, inverse = _roots(R / np.trace(R) + _LEAST_EIGENVALUE * np.eye(d))
        candidates = inverse @ _moduli(P @ stack.matrices @ P) @ inverse
        bound = _largest_of_sum(candidates)
        if bound < best:
            M = candidates
            best = bound
    M = 0.5 * (M + M.transpose(0, 2, 1))
    # M_c +- Gamma_c must be positive semidefinite. Rounding may violate this; the violation is added to the bound.
    violations = [-np.linalg.eigvalsh(M + sign * stack.matrices)[:, 0] for sign in (1.0, -1.0)]
    violation = float(np.sum(np.maximum(np.max(violations, axis=0), 0.0)))
    return M, violation + 2.0 * combination_error(DenseStack(M))


def _largest_of_sum(M: np.ndarray) -> float:
    """Return the largest eigenvalue of the sum of majorants, a bound of the root."""
    return float(np.linalg.eigvalsh(np.sum(M, axis=0))[-1])


def _moduli(matrices: np.ndarray) -> np.ndarray:
    """Return the matrix absolute values of symmetric matrices (m, d, d)."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.abs(values)[:, None, :]) @ vectors.transpose(0, 2, 1)


def _roots(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the square root of a positive definite matrix, and its inverse."""
    values, vectors = np.linalg.eigh(X)
    roots = np.sqrt(np.maximum(values, TINY))
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T

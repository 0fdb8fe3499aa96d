"""The least bound for p = 1 by branch and bound on the signs of the outputs, with a biquadratic form at every node.

A node fixes some signs; each makes its form one block smaller (``biquadratic``). It inherits the multipliers of its
parent, which prove the parent's bound there, and takes a few steps from them: two nodes with another sign fixed come
nearer to the maximum than many steps do. The next sign to fix is the one on which the pseudo-moments are least decided.
Nodes are opened best first.
"""

import heapq
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mopn.solvers.sphere.biquadratic import Biquadratic, in_bases
from mopn.solvers.sphere.boundary_point import FEW_STEPS, Multipliers, step_work, tighten
from mopn.solvers.tools.budgets import Budget


class _Node(NamedTuple):
    """The form for the signs y = E' z, and the multipliers of its bound."""

    E: np.ndarray
    form: Biquadratic
    proof: Multipliers


def branch_on_forms(
    root: Biquadratic,
    start: Multipliers,
    look: Callable[[np.ndarray], None],
    target: Callable[[], float],
    budget: Budget,
) -> tuple[float, Multipliers]:
    """Bound a form over all signs; return the bound and the multipliers of the root."""
    proof = _few_steps(root, start, target(), budget)
    if budget.out_of_time:
        return proof.bound, proof
    look(root.starts(proof.X))
    heap = [(-proof.bound, 0, _Node(np.eye(root.shape[0]), root, proof))]
    closed, names = root.t, itertools.count(1)
    while heap and -heap[0][0] > max(target(), closed):
        parent = heap[0][2]
        if not budget.affords(FEW_STEPS * step_work(len(parent.form.matrix))):
            break
        heapq.heappop(heap)
        for sign in (1.0, -1.0):
            node = _child(root, parent, sign, target(), budget)
            if not budget.out_of_time:
                look(node.form.starts(node.proof.X))
            if node.proof.bound <= target() or len(node.E) == 1:
                closed = max(closed, node.proof.bound)
            else:
                heapq.heappush(heap, (-node.proof.bound, next(names), node))
    return max(closed, -heap[0][0] if heap else 0.0), proof


def _few_steps(form: Biquadratic, start: Multipliers, target: float, budget: Budget) -> Multipliers:
    """Tighten a bound by the steps of a node, which the budget pays for."""
    part = budget.part(FEW_STEPS * step_work(len(form.matrix)))
    found = tighten(form, start, target, part)
    budget.spend(part.spent)
    return found


def _child(root: Biquadratic, parent: _Node, sign: float, target: float, budget: Budget) -> _Node:
    """Return the node that fixes one more sign, with a bound of at most its parent's up to rounding."""
    T = np.delete(np.eye(len(parent.E)), column := _least_decided(parent), axis=0)
    T[0, column] = sign
    E = T @ parent.E
    form = root.with_signs(E)
    return _Node(E, form, _few_steps(form, _inherited(parent, T), target, budget))


def _least_decided(node: _Node) -> int:
    """Return the sign y_c with the pseudo-moment of y_0 y_c nearest to 0."""
    k, r = node.form.shape
    moments = np.trace(node.proof.X.reshape(k, r, k, r)[0, :, 1:], axis1=0, axis2=2)
    return 1 + int(np.argmin(np.abs(moments)))


def _inherited(parent: _Node, T: np.ndarray) -> Multipliers:
    """Return multipliers that prove the parent's bound at a node's signs, y = T' z, and its pseudo-moments."""
    k, r = parent.form.shape
    counts = np.sum(T * T, axis=1)
    ratio = len(T) / k
    N = ratio * in_bases(parent.proof.N, T)
    N -= parent.proof.bound * np.kron(np.diag(ratio * counts - 1.0), np.eye(r))
    X = in_bases(parent.proof.X, T / counts[:, None])
    trace = float(np.trace(X))
    return Multipliers(N, X / trace if trace > 0.0 else X)

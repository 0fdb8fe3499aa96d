"""The maximum for p = 2 and p = 1 by biquadratic forms on a growing number of the stack's principal directions.

Loss gradients have few large principal directions. The form includes the others by a Schur complement. So a relaxation
on some dozens of directions is as tight as the largest value of its form, which falls to the maximum as directions are
added. Multipliers also serve more directions, padded by zeros, and similar stacks, in turned bases.

For p = 1 some signs may be fixed, by branch and bound: each makes the form of a node one block smaller. A node inherits
the multipliers of its parent, which prove the parent's bound there, and takes a few steps from them. Two nodes with one
more sign fixed come nearer to the maximum than many steps at their parent. The next sign to fix is the one on which the
pseudo-moments are least decided.
"""

import heapq
import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from mopn.solvers.sphere.biquadratic import Biquadratic, in_bases, rest_majorant
from mopn.solvers.sphere.boundary_point import FEW_STEPS, Multipliers, RelaxationBound, step_work, tighten
from mopn.solvers.sphere.node_matrices import GIVEN_AWAY
from mopn.solvers.sphere.refinement import SAME_MAXIMUM, distinct, dual_vectors, refine
from mopn.solvers.sphere.stack import DenseStack, RotatedOutputs, in_basis, principal_basis, rotated_outputs
from mopn.solvers.tools.budgets import Budget

# Numbers of directions that are tried: the work of a step grows by half or more from one to the next.
_RANKS = (8, 12, 16, 20, 24, 30, 36, 44, 54, 66, 80, 96, 116, 140, 168, 200, 240)
# Fraction of all directions beyond which all are taken.
_MAX_RANK_FRACTION = 0.8
# Loss of too few directions up to which they are tried, as a fraction of the bound's excess over the best value.
_MAX_LOSS = 0.3
# Excess that the relaxation may add to this loss, as a fraction of it.
_RELAXATION_EXCESS = 0.3
# The largest eigenvalue of R, relative to the bound, from which on directions are too few.
_MAX_REST_EIGENVALUE = 0.9
# Relative margin, larger than the rounding of bounds and targets.
_RELATIVE_MARGIN = 1e-13
# Value of active units, at least, as a fraction of the best.
_MIN_ACTIVE_VALUE = 0.9


class Turned(NamedTuple):
    """Multipliers in bases of the outputs (k, m) and of the features (d, r)."""

    multipliers: Multipliers
    outputs: np.ndarray
    features: np.ndarray

    def on(self, outputs: np.ndarray, features: np.ndarray) -> Multipliers:
        """Return the multipliers in other bases; zeros for other numbers of outputs or features."""
        if (outputs.shape[1], len(features)) != (self.outputs.shape[1], len(self.features)):
            return Multipliers.none((len(outputs) + 1) * features.shape[1])
        turn = np.eye(len(outputs) + 1, len(self.outputs) + 1)
        turn[1:, 1:] = outputs @ self.outputs.T
        Q = features.T @ self.features
        return Multipliers(in_bases(self.multipliers.N, turn, Q), in_bases(self.multipliers.X, turn, Q))


def nest_and_bound(
    stack: DenseStack, H: np.ndarray, p: int, tol: float, budget: Budget, last: Turned | None = None
) -> RelaxationBound:
    """Bound ``||q(h)||_p`` over unit h, for a stack scaled to about 1 and starts H (k, d)."""
    m, d = stack.shape

    def affords(r: int) -> bool:
        return budget.affords(FEW_STEPS * step_work((m + 1) * r))

    if not affords(min(d, _RANKS[0])):
        return RelaxationBound(H[:0], math.inf, last)
    units = _UnitPool(stack, p, budget)
    active = units.add(_active(H, np.linalg.norm(stack.forms(H), p, axis=1)))
    bound = math.inf
    turned = _InPrincipalBases(stack, p)
    U = dual_vectors(stack.forms(active), p)

    def tight_form_bound() -> float:
        return turned.form_bound(units.best * (1.0 + tol))

    for r in _ranks(d):
        if not affords(r):
            break
        target = tight_form_bound()
        form = turned.form(r, target * (1.0 - _RELATIVE_MARGIN))
        if form is None:
            continue

        outputs = turned.outputs.basis
        features = turned.features[:, :r]
        reach = form.reach(_unit_rows(active @ features), U @ outputs.T)
        loss = reach - units.best
        enough = loss <= GIVEN_AWAY * tol * units.best
        if not enough:
            if loss > _MAX_LOSS * (bound - units.best):
                continue
            target = max(target, reach + _RELAXATION_EXCESS * loss)

        start = Multipliers.none(len(form.matrix)) if last is None else last.on(outputs, features)
        look = partial(units.look, features)
        if enough and p == 1:
            proven, proof = branch_on_forms(form, start, look, tight_form_bound, budget)
        else:
            proof = tighten(form, start, target, budget)
            proven = proof.bound
            if not budget.out_of_time:
                look(form.starts(proof.X))
        last = Turned(proof, outputs, features)
        bound = min(bound, turned.bound(proven))
        if bound <= units.best * (1.0 + tol):
            break
    return RelaxationBound(np.vstack(units.found), bound, last)


class _UnitPool:
    """The unit vectors found so far, and the best value."""

    def __init__(self, stack: DenseStack, p: int, budget: Budget) -> None:
        self._stack = stack
        self._p = p
        self._budget = budget
        self.found: list[np.ndarray] = []
        self.best = 0.0

    def add(self, H: np.ndarray) -> np.ndarray:
        """Refine the rows of H (k, d); return and keep them."""
        H, values = refine(self._stack, H, self._p, max_time=self._budget.seconds)
        self.found.append(H)
        self.best = max(self.best, float(values.max()))
        return H

    def look(self, features: np.ndarray, starts: np.ndarray) -> None:
        """Add the units found from unit vectors (k, r) in a basis of some features (d, r)."""
        self.add(starts @ features.T)


class _InPrincipalBases:
    """A stack in its principal bases of the outputs (p = 2) and of the features."""

    def __init__(self, stack: DenseStack, p: int) -> None:
        m, _ = stack.shape
        self.p = p
        self.outputs = rotated_outputs(stack) if p == 2 else RotatedOutputs(stack, np.eye(m), 0.0, 0.0)
        self.features = principal_basis(self.outputs.stack)
        self.stack = in_basis(self.outputs.stack, self.features)
        self._error = float(np.linalg.norm(self.stack.error, p))

    def bound(self, t: float) -> float:
        return self.outputs.bound(t + self._error)

    def form_bound(self, target: float) -> float:
        """Return the bound by a form that is tight enough for a target."""
        return max(target * target / self.bound(target), 0.5 * target) * (1.0 - _RELATIVE_MARGIN)

    def form(self, r: int, t: float) -> Biquadratic | None:
        """Return the form on the first r directions, or None if they are too few for a bound t."""
        matrices = self.stack.matrices
        R = rest_majorant(matrices[:, r:, r:], self.p)
        if R.size and np.linalg.eigvalsh(R)[-1] >= _MAX_REST_EIGENVALUE * t:
            return None
        return Biquadratic(matrices, r, t, R, self.p)


def _active(H: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the rows of H with nearly the best value, one of each direction."""
    H, values = distinct(H, values, SAME_MAXIMUM)
    return H[values >= _MIN_ACTIVE_VALUE * values.max()]


def _ranks(d: int) -> list[int]:
    """Return the numbers of directions to try out of d, ascending."""
    return [*(r for r in _RANKS if r <= _MAX_RANK_FRACTION * d), d]


def _unit_rows(A: np.ndarray) -> np.ndarray:
    """Return the rows divided by their lengths; zero rows stay."""
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    return A / np.where(lengths > 0, lengths, 1.0)


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
    closed = root.t
    names = itertools.count(1)
    while heap and -heap[0][0] > max(target(), closed):
        _, _, parent = heap[0]
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
    opened = -heap[0][0] if heap else 0.0
    return max(closed, opened), proof


def _few_steps(form: Biquadratic, start: Multipliers, target: float, budget: Budget) -> Multipliers:
    """Tighten a bound by the steps of a node, which the budget pays for."""
    part = budget.part(FEW_STEPS * step_work(len(form.matrix)))
    found = tighten(form, start, target, part)
    budget.spend(part.spent)
    return found


def _child(root: Biquadratic, parent: _Node, sign: float, target: float, budget: Budget) -> _Node:
    """Return the node that fixes one more sign, with a bound of at most its parent's up to rounding."""
    column = _least_decided(parent)
    T = np.delete(np.eye(len(parent.E)), column, axis=0)
    T[0, column] = sign
    E = T @ parent.E
    form = root.with_signs(E)
    start = _inherited(parent, T)
    return _Node(E, form, _few_steps(form, start, target, budget))


def _least_decided(node: _Node) -> int:
    """Return the index c of the sign whose pseudo-moment of y_0 y_c is nearest to 0."""
    k, r = node.form.shape
    moments = np.trace(node.proof.X.reshape(k, r, k, r)[0, :, 1:], axis1=0, axis2=2)
    return 1 + int(np.argmin(np.abs(moments)))


def _inherited(parent: _Node, T: np.ndarray) -> Multipliers:
    """Return multipliers that prove the parent's bound at a node's signs, y = T' z, with pseudo-moments."""
    k, r = parent.form.shape
    counts = np.sum(T * T, axis=1)
    ratio = len(T) / k
    N = ratio * in_bases(parent.proof.N, T)
    N -= parent.proof.bound * np.kron(np.diag(ratio * counts - 1.0), np.eye(r))
    X = in_bases(parent.proof.X, T / counts[:, None])
    trace = float(np.trace(X))
    return Multipliers(N, X / trace if trace > 0.0 else X)

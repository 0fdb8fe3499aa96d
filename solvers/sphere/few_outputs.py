"""The maximum for p = 2 and few independent outputs: cones of their directions, by eigenvalues of single matrices.

Three classes have two independent outputs, as their gradients sum to zero; a dozen eigenvalue problems of order d then
prove the maximum to 1e-4. Three independent outputs take a hundred, and four some hundreds.
"""

from __future__ import annotations

import numpy as np

from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere.bounds import eigen_scale
from mopn.solvers.sphere.budget import Budget
from mopn.solvers.sphere.cones import bound_by_cones
from mopn.solvers.sphere.principal_directions import rotated_outputs
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack

# Rounds of splits, several times as many as 1e-6 takes unless g is constant; directions at a time.
_ROUNDS, _AT_A_TIME = 100, 16


def bound_by_eigenvalues(stack: DenseStack, H: np.ndarray, tol: float, budget: Budget) -> tuple[np.ndarray, float]:
    """Bound ``||q(h)||_2`` over unit h, for a stack scaled to about 1; return unit vectors found, and the bound."""
    outputs = rotated_outputs(stack)
    norm = _Largest(outputs.stack, H, budget)
    bound = bound_by_cones(norm, np.eye(len(outputs.basis)), tol, _ROUNDS)
    return np.vstack(norm.found), outputs.bound(bound + float(np.linalg.norm(outputs.stack.error)))


class _Largest:
    """Upper bounds of g(w) = max over unit h of |h' (sum_c w_c Gamma_c) h| by eigenvalues."""

    at_a_time = _AT_A_TIME

    def __init__(self, stack: DenseStack, H: np.ndarray, budget: Budget) -> None:
        self.stack, self.budget = stack, budget
        self.best, self.found = float(np.linalg.norm(stack.forms(H), axis=1).max()), [H[:0]]
        m, d = stack.shape
        self._work = 0.5 * d**3 + 1e5
        # Rounding error of the sum of m terms, and of its eigenvalues, for unit w.
        self._error = (eigen_scale(d) + m + 2) * EPS * float(np.linalg.norm(stack.matrices))

    @property
    def exhausted(self) -> bool:
        return not self.budget.affords(self.at_a_time * self._work)

    def __call__(self, W: np.ndarray) -> np.ndarray:
        """Return the bounds (k,); the eigenvector of the largest one starts a search."""
        if not self.budget.affords(len(W) * self._work):
            return np.full(len(W), np.inf)
        self.budget.spend(len(W) * self._work)
        matrices = self.stack.combine(W)
        bounds = np.abs(np.linalg.eigvalsh(matrices)).max(axis=1) + self._error * np.linalg.norm(W, axis=1)
        if bounds.max() > self.best:
            values, vectors = np.linalg.eigh(matrices[np.argmax(bounds)])
            h = vectors[:, [np.argmax(np.abs(values))]].T
            h, value = refine(self.stack, h, 2, max_time=self.budget.seconds)
            self.best = max(self.best, float(value[0]))
            self.found.append(h)
        return bounds

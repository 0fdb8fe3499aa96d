"""The linear term of a network problem, X W' and constants, with its squared penalty and its dual side."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mopn.core.datafit import DataFit
from mopn.core.designs import Design, linear_design
from mopn.core.validation import check_strength
from mopn.solvers.numerics.dot import dot

__all__ = ["Ridge"]

_EPS = float(np.finfo(float).eps)
# What constants pay of alpha: next to nothing, as features are to be shrunk to what is common; but without a penalty
# their dual constraint, sum_i G_i = 0, would hold at no gradient but the last.
_OF_CONSTANTS = 0.01


class Ridge:
    """Outputs [1, X] W' for coefficients W (m, 1 + d), which cost sum_j alpha_j / 2 ||w_j||^2.

    alpha_j is alpha, and a hundredth of it for the constants w_0. Without ``alpha``, W is (m, 0). The penalty shrinks
    each coefficient by itself: a linear term in the units, through 1-features, pays the norm of whole units instead.

    Parameters
    ----------
    design : Design, optional
    alpha : float, optional
    """

    design: Design

    def __init__(self, design: Design | None = None, alpha: float | None = None) -> None:
        if alpha is not None and check_strength(alpha, "alpha") == 0:
            raise ValueError("alpha must be > 0, or None for no linear term: without it no certificate exists")
        self.active = alpha is not None
        self.alphas = np.zeros(0)
        if design is not None and alpha is not None:
            self.design = linear_design(design)
            self.alphas = np.full(self.design.shape[1], float(alpha))
            self.alphas[0] *= _OF_CONSTANTS

    def shape(self, n_outputs: int) -> tuple[int, int]:
        """Return that of W."""
        return n_outputs, len(self.alphas)

    def outputs(self, W: np.ndarray) -> np.ndarray:
        """Return [1, X] W' (n, m), each output contiguous."""
        return np.asfortranarray(self.design.project(W))

    def value(self, W: np.ndarray) -> float:
        """Return the penalty."""
        return 0.5 * dot(self.slope(W).ravel(), W.ravel())

    def slope(self, W: np.ndarray) -> np.ndarray:
        """Return its gradient (m, 1 + d)."""
        return self.alphas * W

    def pulled(self, G: np.ndarray) -> np.ndarray:
        """Return G' [1, X] (m, 1 + d), the gradient of the losses, whose slopes are G (n, m), with respect to W."""
        return self.design.adjoint(G) if self.active else np.zeros((G.shape[1], 0))

    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``step * value(Z) + ||Z - W||^2 / 2`` over Z."""
        return W / (1.0 + step * self.alphas)

    def least(self, G: np.ndarray) -> np.ndarray:
        """Return the W that minimises <G, [1, X] W'> + value(W)."""
        return -self.pulled(G) / self.alphas

    def conjugate(self, G: np.ndarray) -> float:
        """Return the conjugate of the penalty at -G' [1, X], rounded up; that of s G is s^2 times it."""
        if not self.active:
            return 0.0
        pulled = self.pulled(G)
        # Each entry is a sum of n products, whose moduli add up to the product of two lengths at most.
        error = (len(G) + 4) * _EPS * np.linalg.norm(G, axis=0)[:, None] * self._lengths
        total = float(np.sum((np.abs(pulled) + error) ** 2 / self.alphas))
        return 0.5 * total * (1.0 + (pulled.size + 4) * _EPS)

    @cached_property
    def _lengths(self) -> np.ndarray:
        """Lengths of the columns of [1, X] (1 + d,)."""
        return np.sqrt(self.design.adjoint_squares(np.ones((self.design.shape[0], 1)))[0]) * (
            1.0 + self.design.shape[0] * _EPS
        )

    def rounding(self, W: np.ndarray, G: np.ndarray) -> float:
        """Bound what rounding of [1, X] W' may add to the losses, whose slopes are G."""
        if not self.active:
            return 0.0
        sizes = np.abs(G) @ np.linalg.norm(W, axis=1)
        return (W.shape[1] + 4) * _EPS * float(np.sqrt(self.design.squared_norms) @ sizes)

    def scales(self, fit: DataFit) -> np.ndarray:
        """Return (1 + d,): in coefficients divided by these, the objective's curvature is at most 1 in each."""
        if not self.active:
            return self.alphas
        return 1.0 / np.sqrt(self.alphas + fit.smoothness * self.design.adjoint_squares(fit.sample_weights[:, None])[0])

    def curvature(self, fit: DataFit) -> float:
        """Return a bound of the Lipschitz constant of the losses' gradient with respect to W."""
        if not self.active:
            return 0.0
        absolute, weights = self.design.absolute, fit.sample_weights
        # ||X' diag(w) X|| is at most its trace, and the product of the largest sums of columns and rows.
        sums = absolute.adjoint(weights[:, None]).max() * absolute.project(np.ones((1, self.design.shape[1]))).max()
        return fit.smoothness * min(float(weights @ self.design.squared_norms), float(sums))

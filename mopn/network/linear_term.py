"""The linear term of a network problem, [1, X] W': outputs, ridge penalty, conjugate and scaling.

The ridge penalises each coefficient separately, whereas a linear term that is a part of the units, through dummies, is
penalised with the norm of whole units.

Points contain its coefficients W (m, 1 + d), constants first. A problem without a linear term has an inactive one: W is
(m, 0), and penalty and outputs are zero, so that other files need not distinguish the two cases. Only
:mod:`mopn.compiled.degree_two` also computes its outputs, in one pass over sparse rows for units and linear term.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.core.datafit import DataFit
from mopn.core.designs import Design, linear_design
from mopn.core.magnitudes import check_input
from mopn.core.validation import as_numbers, check_nonnegative
from mopn.solvers.numerics.cached import cached_property
from mopn.solvers.numerics.dot import dot

__all__ = ["LinearTerm"]

_EPS = float(np.finfo(float).eps)
# The ridge on the constants, relative to alpha. It is small, as mainly the other coefficients should be shrunk, but not
# zero: without a ridge the dual constraint of the constants, sum_i G_i = 0, would hold at the minimum only.
_OF_CONSTANTS = 0.01


class LinearTerm:
    """Outputs [1, X] W' for coefficients W (m, 1 + d), with the ridge penalty sum_j alpha_j / 2 ||w_j||^2.

    alpha_j is alpha for the features, and a hundredth of it for the constants w_0.

    Parameters
    ----------
    design : Design, optional
        The data; dummies in front of X are left out.
    alpha : float, optional
        Default None: the term is inactive, and W is (m, 0).
    """

    design: Design

    def __init__(self, design: Design | None = None, alpha: float | None = None) -> None:
        alpha = None if alpha is None else check_nonnegative(alpha, "alpha")
        if alpha == 0:
            raise ValueError("alpha must be > 0, or None for no linear term: without it no certificate exists")
        check_input(alpha or 0.0, "alpha")
        self.alpha, self.active = alpha, alpha is not None
        self.alphas = np.zeros(0)
        if design is not None and alpha is not None:
            self.design = linear_design(design)
            self.alphas = np.full(self.design.shape[1], alpha)
            self.alphas[0] *= _OF_CONSTANTS

    def on(self, design: Design) -> LinearTerm:
        """Return the same term on other data: on a block of the rows, for instance."""
        return LinearTerm(design, self.alpha)

    # -- coefficients ----------------------------------------------------------------------------------------------

    def shape(self, n_outputs: int) -> tuple[int, int]:
        """Return the shape of W for m outputs."""
        return n_outputs, len(self.alphas)

    def start(self, linear: Any, n_outputs: int) -> np.ndarray:
        """Return a copy of the coefficients to start from; zeros for None, and for the (m, 0) of an inactive term.

        Raises
        ------
        ValueError
            If the shape is another one, or for NaN or infinity.
        """
        shape = self.shape(n_outputs)
        W = np.zeros(shape) if linear is None else as_numbers(linear, "start: linear").astype(np.float64)
        if W.shape[1:] == (0,):
            return np.zeros(shape)
        if W.shape != shape:
            raise ValueError(f"start must have linear of shape {shape}, got {W.shape}; alpha makes a linear term")
        if not np.isfinite(W).all():
            raise ValueError("start contains NaN or infinity")
        return W

    # -- outputs ---------------------------------------------------------------------------------------------------

    def outputs(self, W: np.ndarray) -> np.ndarray:
        """Return [1, X] W' (n, m) of an active term, each output contiguous."""
        return np.asfortranarray(self.design.project(W))

    def add_outputs(self, outputs: np.ndarray, W: np.ndarray) -> None:
        """Add [1, X] W' to the outputs (n, m) in place."""
        if self.active:
            outputs += self.design.project(W)

    def adjoint(self, G: np.ndarray) -> np.ndarray:
        """Return G' [1, X] (m, 1 + d): the gradient of the losses with respect to W for loss gradients G (n, m)."""
        return self.design.adjoint(G) if self.active else np.zeros((G.shape[1], 0))

    # -- penalty ---------------------------------------------------------------------------------------------------

    def value(self, W: np.ndarray) -> float:
        """Return the penalty."""
        return 0.5 * dot(self.gradient(W).ravel(), W.ravel())

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """Return the gradient (m, 1 + d) of the penalty."""
        return self.alphas * W

    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``step * value(Z) + ||Z - W||^2 / 2`` over Z."""
        return W / (1.0 + step * self.alphas)

    def minimizer(self, G: np.ndarray) -> np.ndarray:
        """Return the W that minimises <G, [1, X] W'> + value(W)."""
        return -self.adjoint(G) / self.alphas

    # -- dual side and rounding ------------------------------------------------------------------------------------

    def conjugate(self, G: np.ndarray) -> float:
        """Return the conjugate of the penalty at -G' [1, X], rounded up; at s G it is s^2 times as large."""
        if not self.active:
            return 0.0
        adjoint = self.adjoint(G)
        # Each entry is a sum of n products; the sum of their moduli is at most the product of two lengths.
        error = (len(G) + 4) * _EPS * np.linalg.norm(G, axis=0)[:, None] * self._lengths
        total = float(np.sum((np.abs(adjoint) + error) ** 2 / self.alphas))
        return 0.5 * total * (1.0 + (adjoint.size + 4) * _EPS)

    @cached_property
    def _lengths(self) -> np.ndarray:
        """Lengths of the columns of [1, X] (1 + d,), rounded up."""
        n = self.design.shape[0]
        return np.sqrt(self.design.squared_column_sizes) * (1.0 + n * _EPS)

    def rounding_error(self, W: np.ndarray, G: np.ndarray) -> float:
        """Bound the effect on the losses of rounding [1, X] W', for loss gradients G (n, m)."""
        if not self.active:
            return 0.0
        sizes = np.abs(G) @ np.linalg.norm(W, axis=1)
        return (W.shape[1] + 4) * _EPS * float(np.sqrt(self.design.squared_sizes) @ sizes)

    # -- scaling ---------------------------------------------------------------------------------------------------

    def scales(self, fit: DataFit) -> np.ndarray:
        """Return (1 + d,): in coefficients divided by these, the curvature along each coordinate is at most 1."""
        if not self.active:
            return np.ones(0)
        return 1.0 / np.sqrt(self.alphas + fit.smoothness * self.design.adjoint_squares(fit.sample_weights[:, None])[0])

    def curvature(self, fit: DataFit) -> float:
        """Return an upper bound of the Lipschitz constant of the losses' gradient with respect to W."""
        if not self.active:
            return 0.0
        absolute, weights = self.design.absolute, fit.sample_weights
        # ||X' diag(w) X|| is at most its trace, and the product of the largest sums of columns and rows.
        sums = absolute.adjoint(weights[:, None]).max() * absolute.project(np.ones((1, self.design.shape[1]))).max()
        return fit.smoothness * min(float(weights @ self.design.squared_norms), float(sums))

"""The linear term of a network problem, [1, X] W': outputs, ridge penalty, conjugate and scaling.

Points contain its coefficients W (m, 1 + d), constants first. A problem without a linear term has an inactive one: W is
(m, 0), and penalty and outputs are zero, so that other files need not distinguish the two cases. Only
:mod:`mopn.compiled.degree_two` also computes its outputs, in one pass over sparse rows for units and linear term.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.core.gap import dual_error
from mopn.data.rows import Block, Rows
from mopn.data.validation import check_input, check_nonnegative, finite_numbers
from mopn.solvers.numerics.precision import EPS, dot
from mopn.solvers.tools.decorators import cached_property

# The ridge on the constants, relative to alpha. It is small, as mainly the other coefficients should be shrunk. It is
# not zero: without a ridge the dual constraint of the constants, sum_i G_i = 0, would hold at the minimum only.
_RIDGE_OF_CONSTANTS = 0.01


class LinearTerm:
    """Outputs [1, X] W' for W (m, 1 + d), with the ridge penalty sum_j alpha_j / 2 ||w_j||^2, alpha_0 = alpha / 100."""

    rows: Rows

    def __init__(self, rows: Rows | None = None, alpha: float | None = None) -> None:
        alpha = None if alpha is None else check_nonnegative(alpha, "alpha")
        if alpha == 0:
            raise ValueError("alpha must be > 0, or None for no linear term: without it no certificate exists")
        check_input(alpha or 0.0, "alpha")
        self.alpha = alpha
        self.active = alpha is not None
        self.alphas = np.zeros(0)
        if rows is not None and alpha is not None:
            self.rows = rows
            self.alphas = np.full(1 + rows.n_features, alpha)
            self.alphas[0] *= _RIDGE_OF_CONSTANTS

    def on(self, rows: Rows) -> LinearTerm:
        """Return the same term on other data: on a sample of the rows, for instance."""
        return LinearTerm(rows, self.alpha)

    def shape(self, n_outputs: int) -> tuple[int, int]:
        return n_outputs, len(self.alphas)

    def start(self, linear: Any, n_outputs: int) -> np.ndarray:
        """Return a copy of the coefficients to start from; zeros for None, and for the (m, 0) of an inactive term."""
        shape = self.shape(n_outputs)
        W = np.zeros(shape) if linear is None else finite_numbers(linear, "start: linear").copy()
        if W.shape[1:] == (0,):
            return np.zeros(shape)
        if W.shape != shape:
            raise ValueError(f"start.linear must have shape {shape}, got {W.shape}; pass alpha= for a linear term")
        return W

    def outputs(self, W: np.ndarray) -> Any:
        return self.rows.map(_outputs, W)

    def added_to(self, outputs: Any, W: np.ndarray) -> Any:
        """Return the outputs (n, m) of units plus the outputs of the linear term."""
        return outputs + self.outputs(W) if self.active else outputs

    def adjoint(self, G: Any) -> np.ndarray:
        """Return G' [1, X] (m, 1 + d): the gradient of the losses with respect to W for loss gradients G (n, m)."""
        if not self.active:
            return np.zeros((G.shape[1], 0))
        return self.rows.sum(lambda block, G: block.linear.adjoint(G), along=(G,))

    def value(self, W: np.ndarray) -> float:
        return 0.5 * dot(self.gradient(W).ravel(), W.ravel())

    def value_error(self, W: np.ndarray, n: int) -> float:
        """Bound the rounding error of the penalty beyond its (n + 64) m eps, which objectives of n rows allow for."""
        m, terms = W.shape
        return max(0.5 * terms - n, 0.0) * m * EPS * self.value(W)

    def gradient(self, W: np.ndarray) -> np.ndarray:
        return self.alphas * W

    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``step * value(Z) + ||Z - W||^2 / 2`` over Z."""
        return W / (1.0 + step * self.alphas)

    def minimizer(self, G: np.ndarray) -> np.ndarray:
        """Return the W that minimises <G, [1, X] W'> + value(W)."""
        return -self.adjoint(G) / self.alphas

    def conjugate(self, G: Any) -> float:
        """Return the conjugate of the penalty at -G' [1, X], rounded up; at s G it is s^2 times as large."""
        if not self.active:
            return 0.0
        slopes = self.slopes(G)
        return 0.5 * float(np.sum(slopes**2 / self.alphas)) * (1.0 + (slopes.size + 4) * EPS)

    def slopes(self, G: Any) -> np.ndarray:
        """Return the moduli (m, 1 + d) of G' [1, X] of an active term, rounded up."""
        # Sums of n products, for a dual point near G; their moduli add up to at most the product of two lengths.
        lengths = np.sqrt(self.rows.sum(lambda block, G: np.sum(G * G, axis=0), along=(G,)))[:, None]
        roundings = self.rows.shape[0] + 4 + dual_error(G.shape[1])
        error = roundings * EPS * lengths * self._column_lengths
        return np.abs(self.adjoint(G)) + error

    @cached_property
    def _column_lengths(self) -> np.ndarray:
        """Lengths of the columns of [1, X] (1 + d,), rounded up."""
        squares = self.rows.sum(lambda block: block.linear.squared_column_sizes)
        return np.sqrt(squares) * (1.0 + self.rows.shape[0] * EPS)

    def rounding_error(self, errors: np.ndarray, G: Any) -> float:
        """Bound the change of the losses, to first order, by errors (m,) of [1, X] W' relative to lengths of rows."""
        return self.rows.sum(_errors_times_gradient, errors, along=(G,)) if self.active else 0.0

    def scales(self, smoothness: float) -> np.ndarray:
        """Return (1 + d,): in coefficients divided by these, losses of this smoothness have curvatures of at most 1."""
        if not self.active:
            return np.ones(0)
        squares = self.rows.sum(lambda block: block.linear.adjoint_squares(block.losses.sample_weights[:, None])[0, :])
        return 1.0 / np.sqrt(self.alphas + smoothness * squares)

    def curvature(self, smoothness: float) -> float:
        """Return an upper bound of the Lipschitz constant of the losses' gradient with respect to W."""
        if not self.active:
            return 0.0
        # ||X' diag(w) X|| is at most its trace, and at most the product of the largest sums of columns and rows.
        trace, columns = self.rows.sum(_weighted_sums)
        row = self.rows.sum(_largest_row_sum, combine=max)
        return smoothness * min(trace, float(columns.max()) * row)


def _outputs(block: Block, W: np.ndarray) -> np.ndarray:
    return block.linear.project(W)


def _errors_times_gradient(block: Block, G: Any, errors: Any) -> Any:
    """Return the sum of |G_ic| e_c ||[1, x_i]|| for errors e (m,) relative to lengths of rows."""
    return block.linear.squared_sizes**0.5 @ (abs(G) @ errors)


def _weighted_sums(block: Block) -> tuple[float, np.ndarray]:
    """Return the trace of [1, X]' diag(w) [1, X], and the sums of the columns of w |[1, X]|."""
    weights = block.losses.sample_weights
    trace = float(weights @ block.linear.squared_norms)
    return trace, block.linear.absolute.adjoint(weights[:, None])[0]


def _largest_row_sum(block: Block) -> float:
    return float(block.linear.absolute.project(np.ones((1, block.linear.shape[1]))).max())

"""Bounds on how rounding errors in the outputs of a network change its losses: docs/mathematics.md, section 5.4."""

import math
from typing import Any

import numpy as np

from mopn.data.rows import Block, Rows
from mopn.network.linear_term import LinearTerm
from mopn.network.point import Network
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.tools.decorators import cached_property


class OutputRounding:
    """Bounds of F(O) - F(O'), for the exact outputs O of a network and the outputs O' that were computed.

    |O - O'|_ic <= a_c ||x_i||^2 + b_c ||[1, x_i]|| + eps |offset_ic|. To first order the losses change by <G, O - O'>,
    where G is their gradient at O'; the rest is at most sum_i w_i L/2 ||O_i - O'_i||^2 for a loss of smoothness L.
    """

    def __init__(self, rows: Rows, linear_term: LinearTerm) -> None:
        self.rows, self.linear_term = rows, linear_term

    def __call__(self, network: Network, G: Any, sizes: np.ndarray) -> float:
        """Return the bound, for the gradient G (n, m) and the sums (m,) of |G_ic| ||x_i||^2."""
        (k, d), W = network.basis.shape, network.linear
        of_units = (k + 2 * d + 4) * EPS * np.abs(network.weights).sum(axis=0)
        of_linear = (W.shape[1] + 4) * EPS * np.linalg.norm(W, axis=1)
        return self.of_errors(network, G, sizes, of_units, of_linear)

    def of_errors(
        self, network: Network, G: Any, sizes: np.ndarray, of_units: np.ndarray, of_linear: np.ndarray
    ) -> float:
        """Return the bound for given errors of the outputs: a (m,) of the units and b (m,) of the linear term."""
        first = float(sizes @ of_units) + self.linear_term.rounding_error(of_linear, G)
        errors = np.array([np.linalg.norm(of_units), np.linalg.norm(of_linear), EPS])
        constant = self.rows.losses.loss.smoothness(self.rows.losses.n_outputs)
        if math.isfinite(constant):
            return first + 0.5 * constant * float(errors @ self._lengths) ** 2
        return first + self.rows.sum(_without_constant, errors, along=(network.outputs,))

    @cached_property
    def _lengths(self) -> np.ndarray:
        """The roots (3,) of the sums of w_i ||x_i||^4, w_i ||[1, x_i]||^2 and w_i ||offset_i||^2, rounded up."""
        return np.sqrt(self.rows.sum(_weighted_squares)) * (1.0 + self.rows.shape[0] * EPS)


def _squares(block: Block) -> tuple[Any, Any, Any]:
    """Return the squares (n,) of what the errors of a row are relative to."""
    offset, sizes = block.losses.offset, block.design.squared_sizes
    offsets = 0.0 * sizes if offset is None else np.sum(offset * offset, axis=1)
    return sizes * sizes, block.linear.squared_sizes, offsets


def _weighted_squares(block: Block) -> Any:
    return tuple(block.losses.sample_weights @ squares for squares in _squares(block))


def _without_constant(block: Block, outputs: np.ndarray, errors: np.ndarray) -> float:
    """Return the sum of w_i ||O_i - O'_i||^2 times the trace of the second derivative; inf for errors above 1.

    Up to there the second derivative is to grow by a factor of e at most, as Poisson's does: then 2 (e - 2) < 2.
    """
    lengths = np.sqrt(np.stack(_squares(block), axis=1)) @ errors
    if lengths.max(initial=0.0) > 1.0:
        return math.inf
    return float(block.losses.hessian(outputs).diagonal.sum(axis=1) @ lengths**2)

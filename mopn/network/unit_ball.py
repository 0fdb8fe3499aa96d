"""The non-convex refit of both layers in the paper's form: min F(K(X, H) V) + R(V) with rows of H in the unit ball."""

from typing import Any

import numpy as np

from mopn.core.kernels import Kernel
from mopn.core.regularizers import Regularizer
from mopn.data.rows import Block, Rows
from mopn.data.validation import check_start
from mopn.network.linear_term import LinearTerm
from mopn.network.point import Network, joined, split
from mopn.network.ridge import Ridge
from mopn.network.two_layers import two_layers
from mopn.solvers import FISTA
from mopn.solvers.interface import Evaluation, Measure, Problem
from mopn.solvers.tools.display import Displayed


class UnitBallProblem(Displayed, Problem):
    """Minimise sum_i w_i l(y_i, (K(X, H) V)_i + offset_i) + R(V) over H (k, d), ||h_r|| <= 1, and V (k, m).

    The second line of the refit in Algorithm 1 of Blondel et al. (NIPS 2017); ``NetworkProblem.joint`` makes it. The
    point is (H, c V, W) flat, where c is the mean square of the stored entries of X, so that a run does not depend on
    its unit. Not convex, without a certificate; oracle: ``composite``.
    """

    oracles = frozenset({"composite"})

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        regularizer: Regularizer,
        linear_term: LinearTerm,
        network: Network,
        ridge: Ridge,
    ) -> None:
        self.regularizer, self.linear_term, self.ridge = regularizer, linear_term, ridge
        self.shapes = network.basis.shape, network.weights.shape, network.linear.shape
        self.layers = two_layers(rows, kernel)
        squares, entries = rows.sum(_squares_and_entries)
        # The mean square of the stored entries; any number will do for features that are all zero.
        unit = squares / max(entries, 1.0) or 1.0
        self._unit = unit
        self._start = joined(network.basis, unit * network.weights, network.linear)
        # A first guess for FISTA, which corrects it by backtracking.
        squared = rows.sum(lambda block: block.losses.squared_length(block.design.squared_norms[:, None] / unit))
        self.curvature = rows.losses.smoothness * squared or 1.0

    def _entries(self) -> dict[str, str]:
        basis, weights, _ = self.shapes
        return {"basis": str(basis), "weights": str(weights)} | dict([self.regularizer.words.split("=")])

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        H, V, W = split(x, self.shapes)
        return H, V / self._unit, W

    def start(self, start: Any = None) -> np.ndarray:
        """Return the point of the constructor's network, or a flat point or the point of a result; made feasible."""
        point = self._start if start is None else check_start(start, self._start.size)
        return self.prox(point, 0.0)

    def default_solver(self) -> FISTA:
        return FISTA()

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        """Named views of the point, with unit vectors in ``basis``: K(h / c, x) = K(h, x) / c^2, so R is no larger."""
        H, V, W = self.split(x)
        lengths = np.linalg.norm(H, axis=1, keepdims=True)
        safe = np.where(lengths > 0, lengths, 1.0)
        unit = np.where(lengths > 0, H / safe, np.eye(1, H.shape[1]))
        return {"x": x, "basis": unit, "weights": V * lengths**2, "linear": W}

    def image(self, x: np.ndarray) -> np.ndarray:
        """Return the point itself, as F depends on it through no smaller linear image."""
        return x

    def smooth_value(self, image: np.ndarray) -> float:
        H, V, W = self.split(image)
        return self.layers.value(H, V, W) + self.ridge.value(H, V)

    def smooth(self, image: np.ndarray) -> Evaluation:
        """F and the ridge, and their gradient, at (H, V, W)."""
        H, V, W = self.split(image)
        value, of_units, of_weights, of_linear = self.layers.value_gradient(H, V, W)
        if self.ridge.active and len(H):
            of_ridge, units, weights = self.ridge.value_gradient(H, V)
            value = value + of_ridge
            of_units = of_units + units
            of_weights = of_weights + weights
        return Evaluation(value, joined(of_units, of_weights / self._unit, of_linear))

    def regularizer_value(self, x: np.ndarray) -> float:
        """R at a feasible V, and the penalty of the linear term."""
        _, V, W = self.split(x)
        return self.regularizer.value(V) + self.linear_term.value(W)

    def prox(self, x: np.ndarray, step: float) -> np.ndarray:
        """Prox of R for V and of the penalty of the linear term, projection of the rows of H onto the unit ball."""
        H, V, W = self.split(x)
        H = H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1.0)
        # With U = c V, minimising step R(V) + ||U - Z||^2 / 2 is a prox of R at Z / c.
        V = self._unit * self.regularizer.prox(V, step / self._unit**2)
        return joined(H, V, self.linear_term.prox(W, step))

    def measure(self, x: np.ndarray) -> Measure:
        return Measure(self.smooth_value(x) + self.regularizer_value(x))


def _squares_and_entries(block: Block) -> tuple[float, float]:
    """Return the sum of the squares of X, and the number of its entries that are not 0."""
    design = block.design
    return float(design.squared_norms.sum()), float(design.occurrences(np.ones(design.shape[0])).sum())

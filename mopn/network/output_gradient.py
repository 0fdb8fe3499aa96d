"""The objective of a network, the loss gradient at its outputs, and the bounds of the minimum that follow from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mopn.core.gap import DualPoint, bound_and_scale, sum_rounding
from mopn.core.kernels import Kernel
from mopn.core.norms import Norm
from mopn.core.regularizers import NormRegularizer
from mopn.data.rows import SumOfLosses
from mopn.network.gradient_forms import GradientForms
from mopn.network.point import Network
from mopn.network.ridge import Ridge
from mopn.network.ridge_bounds import RidgeBounds
from mopn.network.segment import OutputRounding
from mopn.solvers.tools.decorators import cached_property


class OutputGradient:
    """A network's objective, and the loss gradient G = dF/dO (n, m) at its outputs.

    Quantities that depend only on G and the data are cached.
    """

    def __init__(
        self,
        value: float,
        G: Any,
        losses: SumOfLosses,
        network: Network,
        outputs: OutputRounding,
        ridge: Ridge | None = None,
    ) -> None:
        self.value = value
        self.G = G
        self.dual = DualPoint(losses, G, network.outputs)
        self._network = network
        self._outputs = outputs
        self._ridge = ridge
        self._lower: dict[Any, tuple[float, float]] = {}
        self._forms_by_seed: dict[int, GradientForms] = {}

    def forms(self, kernel: Kernel, seed: int = 0) -> GradientForms:
        """Return the matrices of the gradient of the whole objective, for searches that start from a seed."""
        if seed not in self._forms_by_seed:
            data = GradientForms(kernel, self._outputs.rows, self.G, seed)
            self._forms_by_seed[seed] = data
            if self._ridge is not None:
                self._forms_by_seed[seed] = self._ridge.forms(data, self._network.basis, self._network.weights)
        return self._forms_by_seed[seed]

    @cached_property
    def sizes(self) -> np.ndarray:
        """The sums (m,) of |G_ic| times the squared length of the row, which scale rounding errors."""
        return self._outputs.rows.sum(lambda block, G: block.design.squared_sizes @ abs(G), along=(self.G,))

    @cached_property
    def of_linear(self) -> float:
        """The conjugate of the penalty of the linear term."""
        return self._outputs.linear_term.conjugate(self.G)

    @cached_property
    def _ridge_bounds(self) -> RidgeBounds | None:
        if self._ridge is None:
            return None
        forms = next(iter(self._forms_by_seed.values()), None)
        if forms is None:
            forms = self.forms(self._ridge.kernel)
        return RidgeBounds(self._ridge, self._network, forms, self.sizes)

    def restricted_lower(
        self, regularizer: NormRegularizer, bound: float, slopes: np.ndarray, errors: np.ndarray
    ) -> float:
        """Lower bound of the minimum over weights of the network's own units, and over the linear term.

        ``bound`` is the dual norm of their slopes (k, m), the derivatives of losses and ridge, with errors (m,).
        """
        if self._ridge_bounds is None:
            lower, scale = bound_and_scale(self.dual, regularizer, bound, self.of_linear)
            return self._for_features(lower, regularizer, scale)
        conjugate = self._ridge_bounds.of_own_units(regularizer, bound, slopes, errors)
        lower, scale = bound_and_scale(self.dual, conjugate, 1.0, self.of_linear)
        return self._for_features(lower, regularizer, scale)

    def lower_and_scale(self, regularizer: NormRegularizer, bound: float) -> tuple[float, float]:
        """Lower bound of the minimum, given a bound of the dual norm, and the scale of G; it takes several passes."""
        if (regularizer, bound) not in self._lower:
            lower, scale = self._best_lower(regularizer, bound)
            self._lower[regularizer, bound] = self._for_features(lower, regularizer, scale), scale
        return self._lower[regularizer, bound]

    def _best_lower(self, regularizer: NormRegularizer, bound: float) -> tuple[float, float]:
        bounds = self._ridge_bounds
        if bounds is None:
            return bound_and_scale(self.dual, regularizer, bound, self.of_linear)
        found = [bound_and_scale(self.dual, regularizer, bound, self.of_linear + sum(bounds.of_network))]
        conjugates = bounds.conjugates(regularizer, bound)
        found += [bound_and_scale(self.dual, conjugate, 1.0, self.of_linear) for conjugate in conjugates]
        return max(found)

    @cached_property
    def rounding(self) -> float:
        """Upper bound of the exact objective minus ``value``: errors of the sums, and of the outputs."""
        of_sums = sum_rounding(self.dual.losses, abs(self.value), self.dual.slope_size)
        of_penalty = self._outputs.linear_term.value_error(self._network.linear, self.dual.losses.n)
        if self._ridge is not None:
            of_penalty += self._ridge.error(self._network.basis, self._network.weights)
        # Lengths of units and of the linear term change by ``of_span``, so their penalties by four times as much.
        of_span = 5.0 * self._outputs.of_span * self.value
        return of_sums + of_penalty + of_span + self._outputs(self._network, self.G, self.sizes)

    def outside_of_span(self, norm: Norm) -> float:
        """Bound the part of the dual norm that units outside the span of the rows may add."""
        weights = np.abs(self._network.weights).sum(axis=0)
        ridge = 0.0 if self._ridge is None else self._ridge.amount
        return 5.0 * self._outputs.of_span * float(np.linalg.norm(self.sizes + ridge * weights, norm.exponent))

    def _for_features(self, lower: float, regularizer: NormRegularizer, scale: float) -> float:
        """Return a lower bound over all units, given one over units in the span of the rows, at a scale of G."""
        error = self._outputs.of_span
        if not error:
            return lower
        # A minimiser has at most the objective of this network, and so have its penalties.
        most = self.value + self.rounding
        changes = [math.inf]
        if regularizer.active:
            size = float(np.linalg.norm(self.sizes, regularizer.norm.exponent))
            changes.append(regularizer.largest_norm(most) * size)
        if self._ridge is not None:
            changes.append(math.sqrt(2.0 * most / self._ridge.amount) * float(np.linalg.norm(self.sizes)))
        of_outputs = min(changes) + self._outputs.of_linear_term(self.G, most)
        return lower - 5.0 * error * (scale * of_outputs + most)

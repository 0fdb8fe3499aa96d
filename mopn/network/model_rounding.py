"""Rounding errors of models, whose networks are mapped to the user's X and y: docs/mathematics.md, 5.4."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.core.regularizers import Penalty
from mopn.data.rows import Block
from mopn.network.maps import MappingErrors, UserX, UserY
from mopn.network.output_gradient import OutputGradient
from mopn.network.point import Network
from mopn.solvers.numerics.precision import EPS, proven_upper


def _errors_of_targets(block: Block, G: np.ndarray, constant: np.ndarray) -> tuple[float, float]:
    """Return the sums of |G_ic| e_ic and of w_i e_ic^2 for errors e of targets that were shifted and divided."""
    errors = constant + 2.0 * EPS * np.abs(block.losses.y)
    return float(np.sum(np.abs(G) * errors)), float(block.losses.sample_weights @ np.sum(errors**2, axis=1))


class ModelRounding:
    """The part of a network problem that bounds the rounding errors of models."""

    user_X: UserX
    # The user's y, where an estimator has subtracted levels and divided by units.
    user_y: UserY | None = None

    def model_rounding(self: Any, result: Any) -> float:
        """Bound the objective of the model of a result, for the user's X and y, minus the result's own.

        :meth:`mopn.Model.from_result` maps units and linear term to the user's X, where a center that is far away, in
        units of the scale, cancels up to rounding; and the network to the user's y.
        """
        if self.user_X.coordinates is None and self.user_y is None:
            return 0.0
        linear = self.given_linear_term.start(getattr(result, "linear", None), self.losses.n_outputs)
        errors = self.user_X.mapping_errors(result.basis, linear)
        basis, linear = self.inside(result.basis, linear)
        network = self.network(basis, result.weights, linear)
        at = self.output_gradient(network)
        of_units = errors.units @ np.abs(network.weights)
        of_outputs = self._output_rounding.of_errors(network, at.G, at.sizes, of_units, errors.linear)
        if self.user_y is not None:
            # Second-order terms of the sum of two errors are at most twice the sum of both second-order terms.
            of_outputs = 2.0 * (of_outputs + self._user_y_rounding(self.user_y, at))
        of_penalties = self._penalty_rounding(network, errors)
        if self.ridge:
            of_penalties += self._ridge.change(network.weights, errors.units)
        return float(proven_upper(of_outputs + of_penalties))

    def _user_y_rounding(self: Any, user_y: UserY, at: OutputGradient) -> float:
        """Bound the change of the losses by rounding errors of the targets, and of a constant for the user's y."""
        offset = self.losses.offset
        constant = user_y.offset_error(0.0 if offset is None else offset[0])
        first, second = self.rows.sum(_errors_of_targets, constant, along=(at.G,))
        return float(first + 0.5 * self.losses.smoothness * second)

    def _penalty_rounding(self: Any, network: Network, errors: MappingErrors) -> float:
        """Bound the error of penalties by errors of constants; models in a ball may leave it by rounding."""
        longer = errors.units[:, None] * np.abs(network.weights)
        of_units = self.regularizer.value(longer) if isinstance(self.regularizer, Penalty) else 0.0
        if not self.linear_term.active:
            return of_units
        W = np.abs(network.linear)
        W[:, 0] += errors.linear
        return of_units + max(self.linear_term.value(W) - self.linear_term.value(network.linear), 0.0)

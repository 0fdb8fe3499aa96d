"""The segment of a plain conditional gradient step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mopn.core.regularizers import Ball, Penalty
from mopn.network.point import Network
from mopn.solvers.sphere.refinement import dual_vectors

if TYPE_CHECKING:
    from mopn.network.problem import NetworkProblem, Residual

__all__ = ["Line"]


class Line:
    """U(gamma) = (1 - gamma) U + gamma Delta, 0 <= gamma <= 1, with Delta an extreme point for the gradient at U.

    In a ball, Delta is ``radius`` times the best atom. Under a penalty the same step is taken in the epigraph
    {(U, omega): Omega(U) <= omega <= radius} (Harchaoui, Juditsky and Nemirovski, 2015), with the radius
    ``least / strength`` that no minimiser exceeds, as losses are nonnegative; its extreme points are that multiple
    of the atom, if it is worth its penalty, and 0. With several units Delta is the mean of their extreme points.

    The linear term moves towards the minimiser -G' [1, X] / alpha of its linearised objective, as in the generalised
    conditional gradient of Bredies, Lorenz and Maass (2009); or it stays.
    """

    def __init__(
        self,
        problem: NetworkProblem,
        network: Network,
        residual: Residual,
        units: np.ndarray,
        least: float,
        whole: bool,
    ) -> None:
        features = problem.features(units)
        self.problem, self.network = problem, network.with_units(units, features)
        G = residual.gradient
        q = features.T @ G
        directions = -dual_vectors(q, problem.norm.exponent) / len(units)
        regularizer = problem.regularizer
        size, price = _vertex_size(regularizer, least, -float(np.vdot(directions, q)))
        self.weights = size * directions
        of_units = network.unit_outputs
        self.outputs = of_units + network.linear_outputs if network.linear.size else of_units
        self.step = features @ self.weights - of_units
        self.linear, self.linear_term = network.linear, problem.linear_term
        self.linear_step = self.linear_term.minimizer(G) - self.linear if whole else np.zeros_like(self.linear)
        if self.linear_step.any():
            self.step += self.linear_term.outputs(self.linear_step)
        self.penalty = regularizer.value(network.weights)
        self.vertex_penalty = price * size
        fall = self.linear_term.value(self.linear) - self.linear_term.value(self.linear + self.linear_step)
        self.gap = self.penalty - self.vertex_penalty + fall - float(np.vdot(G, self.step))
        self.curvature = problem.fit.smoothness
        self.squared_length = problem.fit.squared_length(self.step)

    def value(self, gamma: float) -> float:
        """Objective at U(gamma), with the penalty's upper bound (1 - gamma) Omega(U) + gamma Omega(Delta)."""
        penalty = (1.0 - gamma) * self.penalty + gamma * self.vertex_penalty
        penalty += self.linear_term.value(self.linear + gamma * self.linear_step)
        return self.problem.fit.value(self.outputs + gamma * self.step) + penalty

    def point(self, gamma: float) -> Network:
        """Return the network U(gamma)."""
        weights = (1.0 - gamma) * self.network.weights
        weights[len(weights) - len(self.weights) :] = gamma * self.weights
        network = self.network.with_weights(weights)
        return network.with_linear(self.linear + gamma * self.linear_step) if self.linear_step.any() else network


def _vertex_size(regularizer: Ball | Penalty, least: float, value: float) -> tuple[float, float]:
    """Return the norm of the extreme point, given the atom's value, and the price of a unit of norm."""
    if isinstance(regularizer, Ball):
        return regularizer.radius, 0.0
    if value <= regularizer.strength:
        return 0.0, regularizer.strength
    if regularizer.strength == 0:
        raise ValueError(
            "with strength=0 nothing bounds a step: give a radius or a positive strength, or use refit='output' or "
            "joint_solver=FISTA()"
        )
    return least / regularizer.strength, regularizer.strength

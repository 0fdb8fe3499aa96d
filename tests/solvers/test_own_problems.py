"""Problems of users, whose members are attributes, properties or fields, against SciPy."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

import mopn
from mopn.solvers import FISTA, LBFGS
from mopn.solvers.interface import Composite, Evaluation, Measure, Smooth

RNG = np.random.default_rng(0)
A = RNG.normal(size=(30, 6))
B = A @ np.array([1.0, -2.0, 0.5, 0.0, 3.0, -1.0]) + 0.1 * RNG.normal(size=30)
CURVATURE = float(np.linalg.norm(A, 2) ** 2)


class LeastSquares:
    """|A x - b|^2 / 2."""

    def start(self, start=None):
        return np.zeros(A.shape[1]) if start is None else start

    def unpack(self, x):
        return {"x": x}

    def value_gradient(self, x):
        residuals = A @ x - B
        return Evaluation(0.5 * float(residuals @ residuals), A.T @ residuals)

    def measure(self, x):
        return Measure(self.value_gradient(x).value)


class Nonnegative(LeastSquares, Composite):
    """Least squares with x >= 0."""

    def image(self, x):
        return A @ x

    def smooth_value(self, image):
        return 0.5 * float((image - B) @ (image - B))

    def smooth(self, image):
        return Evaluation(self.smooth_value(image), A.T @ (image - B))

    def regularizer_value(self, x):
        return 0.0

    def prox(self, x, step):
        return np.maximum(x, 0.0)


class SetByInit(Nonnegative):
    def __init__(self):
        self.oracles = frozenset({"composite"})
        self.curvature = CURVATURE
        self.reasons = {"gradient": "x >= 0"}


class OfTheClass(Nonnegative):
    oracles = frozenset({"composite"})
    curvature = CURVATURE
    starts_at_random = False


class Properties(Nonnegative):
    @property
    def oracles(self):
        return frozenset({"composite"})

    @cached_property
    def curvature(self):
        return CURVATURE


@dataclass
class Fields(Nonnegative):
    curvature: float
    oracles: frozenset[str]
    name: str


@pytest.mark.parametrize(
    "make", [SetByInit, OfTheClass, Properties, lambda: Fields(CURVATURE, frozenset({"composite"}), "fields")]
)
def test_members_are_attributes_properties_or_fields(make):
    problem = make()
    result = mopn.minimize(problem, FISTA(), tol=0.0, max_iter=2000)
    np.testing.assert_allclose(result.x, nnls(A, B)[0], atol=1e-7)
    assert not problem.starts_at_random
    with pytest.raises(TypeError, match="gradient"):
        mopn.minimize(problem, LBFGS())


@pytest.mark.parametrize("bounded", [True, False])
def test_bounds_and_scales_are_attributes(bounded):
    class Bounded(LeastSquares, Smooth):
        oracles = frozenset({"gradient"})

        def __init__(self):
            if bounded:
                self.bounds = np.full(6, -1.0), np.full(6, 1.0)
                self.scales = np.full(6, 0.5)

    result = mopn.minimize(Bounded(), LBFGS(), tol=1e-12, max_iter=500)
    bounds = (-1.0, 1.0) if bounded else (-np.inf, np.inf)
    np.testing.assert_allclose(result.x, lsq_linear(A, B, bounds, tol=1e-14).x, atol=1e-5)


def test_a_field_without_a_value_is_named():
    with pytest.raises(TypeError, match="curvature"):
        Fields(oracles=frozenset(), name="")

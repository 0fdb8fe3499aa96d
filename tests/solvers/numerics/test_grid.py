"""Grids for points and gradients."""

import numpy as np
import pytest

from mopn.solvers.interface import Evaluation
from mopn.solvers.numerics.grid import OnGrid, on_grid

SIZES = 10.0 ** np.arange(-300, 301, 50)


def test_points_are_the_nearest_of_24_bits():
    x = np.append(np.random.default_rng(0).standard_normal(100), [0.0, 1.0, -1.0])
    np.testing.assert_array_equal(on_grid(x), x.astype(np.float32).astype(float))
    for size in SIZES:
        np.testing.assert_allclose(on_grid(size * x), size * x, rtol=2.0**-24)


@pytest.mark.parametrize("size", SIZES)
def test_gradients_do_not_see_rounding_errors_and_are_near(size):
    rng = np.random.default_rng(0)
    scales, gradient = np.exp(rng.uniform(-3, 3, 50)), rng.standard_normal(50) * size
    found = []
    for noise in (0.0, 1e-14):
        errors = 1.0 + noise * rng.standard_normal(50)
        at = OnGrid(lambda x, e=errors: Evaluation(size * e[0], gradient / scales * e), scales * errors)(scales)
        found.append(at)
    np.testing.assert_array_equal(found[0].gradient, found[1].gradient)
    assert found[0].value == found[1].value
    np.testing.assert_allclose(found[0].gradient * scales, gradient, atol=size * 2.0**-23)
    assert found[0].value == pytest.approx(size, rel=2.0**-34)


def test_what_is_not_finite_stays():
    assert OnGrid(lambda x: Evaluation(np.inf, np.zeros(2)), np.ones(2))(np.ones(2)).value == np.inf

"""The study of direct and lifted problems, on small synthetic data."""

import numpy as np
import pytest

from benchmarks.direct_lifted import budget, wide
from benchmarks.direct_lifted import fitted_lambda as fitted

# -- Figure 1 ----------------------------------------------------------------------------------------------------------


def test_enough_units_reach_the_proven_minimum_and_four_do_not():
    few, enough = (fitted.run(fitted.Task("standardised", "homogeneous", "fit", k, 0), "") for k in (4, 20))
    least, lower, units = fitted.proven_minimum("standardised", "homogeneous")
    assert 4 < units <= 10
    assert least - lower <= 1e-5 * least
    assert float(enough["gap"]) < 1e-3
    assert abs(float(enough["excess"])) < 1e-6
    assert float(few["excess"]) > 1e-3
    # Lambda of one cannot predict negative targets.
    ones = fitted.run(fitted.Task("standardised", "homogeneous", "ones", 20, 0), "")
    assert float(ones["excess"]) > 0.1
    # The gap that the point proves itself is never less than its distance from the minimum.
    assert float(few["gap"]) >= float(few["excess"]) / (1 + float(few["excess"])) - 1e-6


# -- Figure 2 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
def test_all_methods_start_at_the_same_model(kernel):
    names = [name for name in wide.METHODS if (kernel, name) != ("homogeneous", "direct CD")]
    outputs, objectives = {}, {}
    for name in names:
        problem, start = wide.problem_and_start(wide.Task(kernel, name, 60, 400, 10, 1.0))
        x = problem.start(start)
        outputs[name], objectives[name] = problem.outputs(x), problem.measure(x).fun
    reference = outputs["lifted CD"]
    for name in names:
        np.testing.assert_allclose(outputs[name], reference, atol=1e-10 * np.abs(reference).max())
    direct = [objectives[name] for name in names if not name.startswith("lifted")]
    np.testing.assert_allclose(direct, direct[0], rtol=1e-12)
    # Equation 12 at unbalanced factors is above equation 13 at their eigenvectors; random ones are nearly balanced.
    assert direct[0] <= objectives["lifted CD"] <= 1.05 * direct[0]


# -- Figure 4 ----------------------------------------------------------------------------------------------------------


def test_nystrom_on_all_rows_is_kernel_ridge_regression():
    rng = np.random.default_rng(0)
    X, Z, y = rng.uniform(-1, 1, (40, 4)), rng.uniform(-1, 1, (15, 4)), rng.standard_normal(40)
    for strength in (0.01, 1.0):
        expected = (1.0 + Z @ X.T) ** 3 @ np.linalg.solve((1.0 + X @ X.T) ** 3 + strength * np.eye(40), y)
        features = budget.nystrom_features(X)
        (w,) = budget.ridge_path(features(X), y, [strength])
        np.testing.assert_allclose(features(Z) @ w, expected, atol=1e-6)
        (w,) = budget.ridge_path(budget.cubic_features(X), y, [strength])
        np.testing.assert_allclose(budget.cubic_features(Z) @ w, expected, atol=1e-8)
        by_method = budget.nystrom(budget.Task("abalone", "nystrom", 40, 0, 0, 0), X, y, [strength])[0](Z)
        np.testing.assert_allclose(by_method, expected, atol=1e-6)

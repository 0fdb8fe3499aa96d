"""The study of direct and lifted problems, on small synthetic data."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.direct_lifted import budget, wide
from benchmarks.direct_lifted import fitted_lambda as fitted
from benchmarks.direct_lifted.__main__ import FIGURES

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
    # What the point proves itself is never less than what it lacks.
    assert float(few["gap"]) >= float(few["excess"]) / (1 + float(few["excess"])) - 1e-6


# -- Figure 2 ----------------------------------------------------------------------------------------------------------


def test_sparse_rows_are_distinct_columns_of_norm_one_and_every_column_occurs():
    X, y = wide.make_sparse(80, 300, 12)
    assert X.shape == (80, 300)
    assert (np.diff(X.indptr) == 12).all()
    assert all(len(np.unique(X.indices[12 * i : 12 * i + 12])) == 12 for i in range(80))
    counts = np.bincount(X.indices, minlength=300)
    assert counts.min() >= 1
    assert counts[:20].sum() > 5 * counts[-20:].sum()
    np.testing.assert_allclose(X.power(2).sum(axis=1), 1.0)
    np.testing.assert_allclose([y.mean(), y.std()], [-3.7, 0.6])


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


def test_sgd_is_tuned_and_its_curve_never_rises():
    task = wide.Task("anova", "direct SGD", 60, 200, 10, 0.05)
    row = {name: str(value) for name, value in wide.run(task, "").items()}
    assert float(row["step"]) in (3e-2, 1e-2, 3e-3, 1e-3)
    assert float(row["objective"]) < float(row["start"])
    _, curve = wide._curve(row)
    assert (np.diff(curve) <= 0).all()
    frame = pd.DataFrame([row])
    frame[wide.NUMBERS] = frame[wide.NUMBERS].apply(pd.to_numeric)
    assert "direct SGD" in wide.table(frame)


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


def test_abalone_codes_sex_as_numbers_and_splits_take_every_row_once(abalone):
    X, y = budget.load("abalone", str(abalone))
    assert X.shape == (120, 4)
    assert set(X[:, 0]) == {1.0, 2.0, 3.0}
    parts = budget.split(X, y, 2)
    assert (len(parts.X), len(parts.X_test), parts.held_out.sum()) == (90, 30, 22)
    assert parts.X.min() == -1.0
    assert parts.X.max() == 1.0
    np.testing.assert_allclose([parts.y.mean(), parts.y.std()], [0.0, 1.0], atol=1e-12)
    back = np.concatenate([parts.y, parts.y_test])
    np.testing.assert_allclose(np.corrcoef(np.sort(back), np.sort(y))[0, 1], 1.0)


@pytest.mark.parametrize("method", ["lifted", "direct", "nystrom", "selection", "kernel-ridge"])
def test_every_method_predicts_a_cubic_target(abalone, method):
    row = budget.run(budget.Task("abalone", method, 30, 0, 0, 30), str(abalone))
    assert float(row["test"]) > 0.8
    assert float(row["strength"]) in [float(f"{value:.3g}") for value in budget.METHODS[method][1]]


def test_quick_is_a_part_of_the_study_in_all_three_figures():
    for figure in FIGURES.values():
        quick, full = figure.tasks(True), figure.tasks(False)
        assert 0 < len(quick) <= len(full) == len(set(full))

"""SHAP values and importances, against the definitions: sums over all coalitions, second differences."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from fitted_models import KINDS, SECOND, TABLES, factors, network
from scipy import sparse

from mopn.data.designs import make_design
from mopn.data.feature_scaling import Coordinates
from mopn.estimators import FactorizationMachineRegressor
from mopn.explain import contributions, shap_interaction_values, shap_values, to_shap
from mopn.explain.margins import importances_without_rows

D = 4
SIGNS = np.array([1.0, -2.0])
# Besides models of every kind: fewer units than features, coefficients of both signs, and lower powers.
MODELS = KINDS | {
    "few units": network(k=2),
    "few units, linear": network(k=1, kernel="anova", linear=np.arange(15.0).reshape(3, 5)),
    "both signs": factors(2, degree=2, w=np.arange(4.0), lams=SIGNS),
    "second power": factors(degree=2, kernel="homogeneous", dummies=1, lams=SIGNS),
    "third and lower powers": factors(3, degree=3, kernel="homogeneous", w=np.arange(4.0), lams=SIGNS),
}
OF_DEGREE_TWO = [
    name for name in MODELS if MODELS[name].n_features == D and name in {*SECOND, *(MODELS.keys() - KINDS)}
]
OF_DEGREE_TWO.remove("third and lower powers")
ONE_OUTPUT = KINDS["two classes"]
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def rows(n, seed, d=D):
    return np.random.default_rng(seed).standard_normal((n, d))


def coalition_values(model, x, background, players):
    """The mean outputs for every coalition of players, whose features come from x, as a mapping from sets."""
    values = {}
    for size in range(len(players) + 1):
        for members in itertools.combinations(range(len(players)), size):
            mixed, switched = background.copy(), [j for member in members for j in players[member]]
            mixed[:, switched] = x[switched]
            values[frozenset(members)] = model.outputs(mixed).mean(axis=0)
    return values


def shapley(values, d):
    """phi_j = sum_T |T|! (d - |T| - 1)! / d! (v(T + j) - v(T)), shape (d, m)."""
    phi = []
    for j in range(d):
        gains = (
            math.factorial(len(T)) * math.factorial(d - len(T) - 1) / math.factorial(d) * (values[T | {j}] - values[T])
            for T in values
            if j not in T
        )
        phi.append(sum(gains))
    return np.array(phi)


def shapley_interactions(values, d):
    """Phi_ij = sum_T |T|! (d - |T| - 2)! / (2 (d - 1)!) of the second differences; rows add up to phi."""
    Phi = np.zeros((d, d, len(values[frozenset()])))
    for i, j in itertools.permutations(range(d), 2):
        for T in values:
            if not T & {i, j}:
                second = values[T | {i, j}] - values[T | {i}] - values[T | {j}] + values[T]
                share = math.factorial(len(T)) * math.factorial(d - len(T) - 2) / (2 * math.factorial(d - 1))
                Phi[i, j] += share * second
    phi = shapley(values, d)
    for i in range(d):
        Phi[i, i] = phi[i] - Phi[i].sum(axis=0)
    return Phi


@every_model
@pytest.mark.parametrize("size", [1, 7])
def test_values_are_those_of_the_definition(model, size):
    d = model.n_features
    X, background = rows(3, 0, d), rows(size, 5, d)
    games = [coalition_values(model, x, background, [[j] for j in range(d)]) for x in X]
    expected, pairs = (np.stack([f(v, d) for v in games]) for f in (shapley, shapley_interactions))
    if expected.shape[2] == 1:
        expected, pairs = expected[..., 0], pairs[..., 0]
    close = {"rtol": 0, "atol": 1e-11 * max(np.abs(expected).max(), 1.0)}
    np.testing.assert_allclose(shap_values(model, X, background), expected, **close)
    np.testing.assert_allclose(shap_interaction_values(model, X, background), pairs, **close)


@every_model
def test_sparse_rows_and_backgrounds_are_dense_ones(model):
    X, background = rows(4, 0, model.n_features), rows(6, 5, model.n_features)
    X[X < 0.2] = 0.0
    background[background < -0.3] = 0.0
    expected = shap_values(model, X, background)
    pairs = shap_interaction_values(model, X, background)
    for storage in (sparse.csr_array, sparse.csc_array):
        found = shap_values(model, storage(X), storage(background))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
        found = shap_interaction_values(model, storage(X), storage(background))
        np.testing.assert_allclose(found, pairs, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_shap_agrees():
    """An implementation of the definition by others, by enumeration."""
    shap = pytest.importorskip("shap")
    model = MODELS["softmax"]
    X, background = rows(3, 0), rows(6, 5)
    masker = shap.maskers.Independent(background, max_samples=len(background))
    expected = shap.explainers.Exact(model.outputs, masker)(X)
    found = to_shap(replace(model, feature_names=list("abcd")), X, background)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.base_values, expected.base_values, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found.data, X)
    assert found.feature_names == list("abcd")
    single = to_shap(ONE_OUTPUT, X)
    assert single.values.shape == X.shape
    assert single.base_values.shape == (3,)


def test_outputs_of_an_explanation_are_named_by_classes():
    pytest.importorskip("shap")
    assert list(to_shap(KINDS["labels"], rows(3, 0)).output_names) == KINDS["labels"].classes.tolist()


@pytest.mark.parametrize(
    ("X", "background", "message"),
    [
        (rows(1, 0), None, "X has a single row, which cannot be compared with itself: give a background"),
        (rows(2, 0)[:, :3], None, "X has 3 features"),
        (rows(2, 0), rows(2, 0)[:, :3], "background has 3 features"),
        (rows(2, 0), np.full((1, D), np.nan), "background contains NaN"),
    ],
)
def test_bad_rows(X, background, message):
    with pytest.raises((TypeError, ValueError), match=message):
        shap_values(ONE_OUTPUT, X, background)


FIELDS = {"user": [0, 3], "item": [1], "rest": range(2, 3)}


@pytest.mark.parametrize("name", OF_DEGREE_TWO)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_contributions_are_interaction_values_with_fields_as_players(name, storage):
    model, x, background, names = MODELS[name], rows(1, 0), rows(6, 5), list(FIELDS)
    values = coalition_values(model, x[0], background, [list(field) for field in FIELDS.values()])
    Phi = shapley_interactions(values, 3)
    expected = {(names[g],): Phi[g, g] for g in range(3)}
    expected |= {(names[g], names[h]): 2 * Phi[g, h] for g, h in itertools.combinations(range(3), 2)}
    found = contributions(model, storage(x), storage(background), FIELDS)
    assert {item.fields for item in found} == expected.keys()
    for item in found:
        np.testing.assert_allclose(np.ravel(item.value), expected[item.fields], rtol=0, atol=1e-10)
    total = found.base + sum(item.value for item in found)
    np.testing.assert_allclose(np.ravel(total), model.outputs(x)[0], rtol=0, atol=1e-10)
    sizes = [np.linalg.norm(item.value) for item in found]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"a": [0, 1], "b": [1, 2, 3]}, ValueError, "each of the 4 features once, by index; got 5"),
        ({"a": [0, 1]}, ValueError, "each of the 4 features once, by index; got 2"),
        ({"a": [0.5], "b": range(1, 4)}, ValueError, "each of the 4 features once"),
        ({"a": 3}, TypeError, "fields must hold sequences of indices"),
        ([0, 1], TypeError, "fields must be a mapping"),
    ],
)
def test_bad_fields(fields, error, message):
    with pytest.raises(error, match=message):
        contributions(ONE_OUTPUT, rows(1, 0), rows(3, 1), fields)


def test_contributions_are_those_of_one_row_and_degree_two():
    with pytest.raises(ValueError, match=r"x must be a single row, of shape \(1, 4\), got 2 rows"):
        contributions(ONE_OUTPUT, rows(2, 0), rows(3, 1), FIELDS)
    for name in ("shared", "all subsets"):
        with pytest.raises(ValueError, match="models of degree 2; this one has the kernel"):
            contributions(MODELS[name], rows(1, 0), rows(3, 1), FIELDS)
    with pytest.raises(TypeError, match="model must be a Model, a FactorizationModel or a fitted estimator, got int"):
        contributions(1, rows(1, 0), rows(3, 1), FIELDS)


# -- importances without rows, against second differences of the outputs -----------------------------------------------


@pytest.mark.parametrize("model", [KINDS[name] for name in SECOND] + [*TABLES.values()], ids=[*SECOND, *TABLES])
def test_importances_are_deviations_times_mean_slopes(model):
    """With differences by one deviation slopes and second derivatives of polynomials of degree 2 are exact."""
    d, rng = model.formula().linear.shape[1], np.random.default_rng(0)
    center, deviations = rng.uniform(-1, 1, d), rng.uniform(0.5, 2, d)

    def outputs(X):
        values = model.formula().outputs(make_design(X.reshape(-1, d))).reshape(*X.shape[:-1], -1)
        return values - values.mean(axis=-1, keepdims=True) if model.link == "softmax" else values

    steps = np.diag(deviations)
    slopes = (outputs(center + steps) - outputs(center - steps)) / 2
    sums, differences = steps[:, None] + steps, steps[:, None] - steps
    corners = [outputs(center + step) for step in (sums, -sums, differences, -differences)]
    second = (corners[0] + corners[1] - corners[2] - corners[3]) / 4
    squares = (slopes**2 + (second**2).sum(axis=1)).sum(axis=1)
    if model.encoding is not None:
        squares = [squares[model.encoding.owners == j].sum() for j in range(model.n_features)]
    found = importances_without_rows(model, Coordinates(center, np.ones(d), deviations=deviations))
    np.testing.assert_allclose(found, np.sqrt(squares), rtol=1e-9, atol=1e-9)


def test_higher_degrees_have_none():
    fitted = FactorizationMachineRegressor(degree=3, n_components=1, tol=0.5).fit(np.eye(4), np.arange(4.0))
    assert not hasattr(fitted, "feature_importances_")
    with pytest.raises(AttributeError, match=r"mopn.explain.shap_values\(model, X\)"):
        fitted.feature_importances_  # noqa: B018

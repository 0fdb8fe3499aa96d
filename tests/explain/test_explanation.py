"""SHAP values, against the definition: sums over all coalitions of the features."""

import itertools
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.explain import contributions, shap_interaction_values, shap_values, to_shap

D = 5


def network(kernel, *, outputs=3, units=4, augment=True, linear=False, **fields):
    rng = np.random.default_rng(1)
    dummies = {"homogeneous": 1, "anova": 2}[kernel] if augment else 0
    W = rng.standard_normal((outputs, 1 + D)) if linear else None
    H, V = rng.standard_normal((units, dummies + D)), rng.standard_normal((units, outputs))
    V[rng.uniform(size=V.shape) < 0.3] = 0.0
    return mopn.Model(H, V, kernel=kernel, augment=augment, offset=0.3, linear=W, **fields)


def factors(degree, *, orders=1, dummies=0, form="direct", units=3, **fields):
    rng = np.random.default_rng(2)
    lams = rng.standard_normal(units) if form == "direct" else None
    P = rng.standard_normal((orders, units, dummies + D))
    return mopn.FactorizationModel(
        factors=P, degree=degree, dummies=dummies, form=form, lams=lams, intercept=0.3, **fields
    )


w, theta = np.arange(1.0, D + 1), np.array([0.5, -1.0, 2.0])
MODELS = {
    "polynomial network": network("homogeneous"),
    "without dummies": network("homogeneous", augment=False, linear=True),
    "more units than features": network("homogeneous", units=9),
    "factorization machine": network("anova"),
    "linear term": network("anova", augment=False, linear=True, units=9),
    "groups": network("anova", groups=np.array([0, 1, 0, -1, 1])),
    "one output": network("anova", outputs=1),
    "no units": network("homogeneous", units=0, linear=True),
    "degree 1": factors(1, w=w),
    "degree 2": factors(2, orders=2, w=w),
    "degree 2, dummies": factors(2, dummies=2),
    "degree 2, theta": factors(2, theta=theta[:2]),
    "degree 2, powers": factors(2, kernel="homogeneous", dummies=1),
    "degree 2, lifted": factors(2, orders=2, form="lifted", w=w),
    "degree 3": factors(3, orders=2, w=w),
    "degree 4, dummies": factors(4, dummies=3),
    "degree 3, theta": factors(3, theta=theta),
    "degree 6": factors(6, dummies=3),
    "all subsets": factors(2, kernel="all-subsets", w=w),
    "degree 3, powers": factors(3, orders=3, kernel="homogeneous", w=w),
    "degree 4, powers": factors(4, kernel="homogeneous", dummies=1),
    "degree 3, lifted": factors(3, orders=3, form="lifted", kernel="homogeneous", dummies=1),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def rows(n, seed):
    return np.random.default_rng(seed).standard_normal((n, D))


def coalition_values(model, x, background):
    """The mean outputs for every coalition, whose features are those of x, as a mapping from sets."""
    values = {}
    for size in range(D + 1):
        for members in itertools.combinations(range(D), size):
            mixed = background.copy()
            mixed[:, members] = x[list(members)]
            values[frozenset(members)] = model.outputs(mixed).mean(axis=0)
    return values


def shapley(values, d=D):
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


def shapley_interactions(values, d=D):
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
    X, background = rows(3, 0), rows(size, 5)
    games = [coalition_values(model, x, background) for x in X]
    expected, pairs = (np.stack([f(v) for v in games]) for f in (shapley, shapley_interactions))
    if expected.shape[2] == 1:
        expected, pairs = expected[..., 0], pairs[..., 0]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(shap_values(model, X, background), expected, rtol=0, atol=1e-11 * scale)
    np.testing.assert_allclose(shap_interaction_values(model, X, background), pairs, rtol=0, atol=1e-11 * scale)


@every_model
def test_sparse_rows_and_backgrounds_are_dense_ones(model):
    X, background = rows(4, 0), rows(6, 5)
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
    model = MODELS["factorization machine"]
    X, background = rows(3, 0), rows(6, 5)
    masker = shap.maskers.Independent(background, max_samples=len(background))
    expected = shap.explainers.Exact(model.outputs, masker)(X)
    found = to_shap(replace(model, feature_names=list("abcde")), X, background)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.base_values, expected.base_values, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found.data, X)
    assert found.feature_names == list("abcde")
    single = to_shap(MODELS["one output"], X)
    assert single.values.shape == X.shape
    assert single.base_values.shape == (3,)


def test_outputs_of_an_explanation_are_named_by_classes():
    pytest.importorskip("shap")
    model = network("anova", outputs=3, classes=np.array(["x", "y", "z"]))
    assert list(to_shap(model, rows(3, 0)).output_names) == ["x", "y", "z"]


def test_missing_shap_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="pip install shap"):
        to_shap(MODELS["one output"], rows(3, 0))


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
        shap_values(MODELS["one output"], X, background)


FIELDS = {"user": [0, 3], "item": [1], "rest": range(2, 5, 2)}


@pytest.mark.parametrize("name", [name for name in MODELS if name.split(",")[0] not in ("degree 3", "degree 4")][:-2])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_contributions_are_interaction_values_with_fields_as_players(name, storage):
    model, x, background = MODELS[name], rows(1, 0), rows(6, 5)
    groups = [list(field) for field in FIELDS.values()]
    values = {}
    for size in range(4):
        for members in itertools.combinations(range(3), size):
            mixed = background.copy()
            switched = [j for g in members for j in groups[g]]
            mixed[:, switched] = x[0, switched]
            values[frozenset(members)] = model.outputs(mixed).mean(axis=0)
    Phi = shapley_interactions(values, 3)
    names = list(FIELDS)
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
        ({"a": [0, 1], "b": [1, 2, 3, 4]}, ValueError, "each of the 5 features once, by index; got 6"),
        ({"a": [0, 1]}, ValueError, "each of the 5 features once, by index; got 2"),
        ({"a": [0.5], "b": range(1, 5)}, ValueError, "each of the 5 features once"),
        ({"a": 3}, TypeError, "fields must hold sequences of indices"),
        ([0, 1], TypeError, "fields must be a mapping"),
    ],
)
def test_bad_fields(fields, error, message):
    with pytest.raises(error, match=message):
        contributions(MODELS["one output"], rows(1, 0), rows(3, 1), fields)


def test_contributions_are_those_of_one_row_and_degree_two():
    with pytest.raises(ValueError, match=r"x must be a single row, of shape \(1, 5\), got 2 rows"):
        contributions(MODELS["one output"], rows(2, 0), rows(3, 1), FIELDS)
    for name in ("degree 3", "all subsets"):
        with pytest.raises(ValueError, match="models of degree 2; this one has the kernel"):
            contributions(MODELS[name], rows(1, 0), rows(3, 1), FIELDS)
    with pytest.raises(TypeError, match="model must be a Model, a FactorizationModel or a fitted estimator, got int"):
        contributions(1, rows(1, 0), rows(3, 1), FIELDS)

"""A scale for every field of features, chosen on held-out samples."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import mopn
from mopn.estimators import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    FieldScaleCV,
    MultiOutputFMClassifier,
    MultiOutputFMRegressor,
    OrdinalFMRegressor,
    OrdinalPNRegressor,
    PathCV,
    PolynomialNetworkRegressor,
    TableRegressor,
    field_scales,
)
from mopn.estimators.field_scales import field_of_features, in_one_order, readied
from mopn.estimators.strength_choice import splits

RNG = np.random.default_rng(0)
SIZES = (6, 4, 20)
N = 200
PLACES = np.column_stack([RNG.integers(0, size, N) for size in SIZES])
BLOCKS = mopn.RelationBlocks([np.eye(size) for size in SIZES], PLACES)
X = BLOCKS.tocsr().toarray()
D = X.shape[1]
# Users and items decide; the last field is noise.
SCORES = 2.0 * RNG.normal(size=SIZES[:2])[PLACES[:, 0], PLACES[:, 1]] + RNG.normal(size=N)
LEVELS = np.digitize(SCORES, [-1.0, 1.0])
FACTORIZED = {"n_components": 2, "random_state": 0, "tol": 1e-6}
KINDS = {
    "regressor": FactorizationMachineRegressor(**FACTORIZED),
    "classifier": FactorizationMachineClassifier(loss="logistic", **FACTORIZED),
    "degree 3": FactorizationMachineRegressor(degree=3, init_lambdas="random_signs", **FACTORIZED),
    "dummies": FactorizationMachineRegressor(fit_linear=False, fit_lower="augment", **FACTORIZED),
    "passes": FactorizationMachineRegressor(solver="adagrad", n_components=2, random_state=0, max_iter=5),
    "lifted": PolynomialNetworkRegressor(**FACTORIZED),
    "ordinal": OrdinalFMRegressor(max_units=2, strength=1.0),
    "ordinal, networks": OrdinalPNRegressor(max_units=2, strength=1.0),
    "classes": MultiOutputFMClassifier(max_units=3, strength=1.0),
    "targets": MultiOutputFMRegressor(max_units=2, strength=1.0),
}
every_kind = pytest.mark.parametrize("kind", KINDS)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def targets(kind):
    return {"classifier": SCORES > 0, "ordinal": LEVELS, "ordinal, networks": LEVELS, "classes": LEVELS}.get(
        kind, SCORES
    )


def outputs(estimator, X):
    return estimator.model_.outputs(X)


# -- fields ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "data", "expected"),
    [
        ([2, 1], X[:, :3], [0, 0, 1]),
        (np.array([1, 2]), X[:, :3], [0, 1, 1]),
        ({"a": [2, 0], "b": range(1, 2)}, X[:, :3], [0, 1, 0]),
        ({"a": ["x", "z"], "b": [1]}, pd.DataFrame(X[:, :3], columns=["x", "y", "z"]), [0, 1, 0]),
        (None, X[:, :3], [0, 0, 0]),
        (None, BLOCKS, np.repeat(range(3), SIZES)),
        ([10, 20], BLOCKS, np.repeat(range(2), [10, 20])),
    ],
    ids=["sizes", "array", "columns", "names", "one", "tables", "sizes of tables"],
)
def test_fields_by_size_column_and_name(fields, data, expected):
    found = field_of_features(fields, data, data.shape[1], list(getattr(data, "columns", ())))
    np.testing.assert_array_equal(found, expected)
    expected_shape = (max(expected) + 1,)
    assert FieldScaleCV(KINDS["regressor"], fields).fit(data, SCORES).field_scales_.shape == expected_shape


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ([2, 2], ValueError, "sizes that add up to the 3 features, got .*: 4"),
        ([4, -1], ValueError, "fields: a size must be an integer >= 1, got -1"),
        ([3, 0], ValueError, "fields: a size must be an integer >= 1, got 0"),
        ([1.5, 1.5], TypeError, "fields: a size must be an integer >= 1, got 1.5"),
        ([True, 2], TypeError, "fields: a size must be an integer"),
        ([], ValueError, "add up to the 3 features"),
        ("abc", TypeError, "fields must be sizes of fields, or a mapping"),
        (3, TypeError, "fields must be sizes of fields, or a mapping"),
        ({"a": [0, 1]}, ValueError, "fields must hold each of the 3 features once, got 2 in 1 fields"),
        ({"a": [0, 1], "b": [1, 2]}, ValueError, "fields must hold each of the 3 features once, got 4"),
        ({"a": [0, 1], "b": [3]}, ValueError, "fields must be tuples of distinct indices below 3, or of names"),
        ({"a": [0, 1], "b": ["z"]}, ValueError, "fields must be tuples of distinct indices below 3, or of names"),
        ({}, ValueError, "fields must hold each of the 3 features once"),
    ],
)
def test_bad_fields(fields, error, words):
    with pytest.raises(error, match=words):
        FieldScaleCV(KINDS["regressor"], fields).fit(X[:, :3], SCORES)


@pytest.mark.parametrize(
    ("estimator", "data", "words"),
    [
        (OneHotEncoder(), X, "estimator must be one of mopn.estimators with a penalty"),
        (TableRegressor(), X, "estimator must take columns of numbers in memory, and TableRegressor does not"),
        (KINDS["regressor"], mopn.RowBlocks([X]), "needs X in memory"),
    ],
    ids=["other", "table", "blocks"],
)
def test_estimators_and_data_that_it_does_not_take(estimator, data, words):
    with pytest.raises(TypeError, match=words):
        FieldScaleCV(estimator).fit(data, SCORES)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e8])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_units_and_their_order_do_not_depend_on_the_size_of_the_features(size, form):
    rng = np.random.default_rng(0)
    data, y = np.repeat(rng.normal(size=(100, 17)), 2, axis=0), np.repeat(rng.normal(size=100), 2)
    plain = in_one_order(*readied(FactorizationMachineRegressor(), data, y, None))
    order = rng.permutation(200)
    _, found, units = in_one_order(*readied(FactorizationMachineRegressor(), form(size * data[order]), y[order], None))
    np.testing.assert_array_equal(units, np.repeat(np.arange(100), 2))
    np.testing.assert_array_equal(found.y, plain[1].y)


def test_samples_that_repeat_are_held_out_one_by_one():
    """Of 64 pairs, each of which was rated many times, other scales are not worse than ones."""
    M = np.random.default_rng(0).normal(size=(8, 8))

    def draw(seed):
        rng = np.random.default_rng(seed)
        i, j = rng.integers(0, 8, (2, 2000))
        return np.hstack([np.eye(8)[i], np.eye(8)[j]]), np.clip(
            np.round(3 + M[i, j] + 0.5 * rng.normal(size=2000)), 1, 5
        )

    single = FactorizationMachineRegressor(random_state=0)
    search, plain = FieldScaleCV(single, [8, 8]).fit(*draw(1)), clone(single).fit(*draw(1))
    assert search.score(*draw(2)) >= plain.score(*draw(2)) - 1e-3
    assert search.field_scales_.min() >= 1.0


def test_too_few_samples():
    with pytest.raises(ValueError, match="too few samples to hold some out: 2; give more of each class"):
        FieldScaleCV(KINDS["classifier"]).fit(X[:2], [True, False])
    # A single sample has no standard error.
    search = FieldScaleCV(KINDS["regressor"], SIZES).fit(X[:3], SCORES[:3])
    np.testing.assert_array_equal(search.field_scales_, 1.0)


# -- fits with given scales --------------------------------------------------------------------------------------------


@pytest.mark.covering(1)
@every_kind
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix, "blocks"])
def test_a_fit_with_scales_is_that_of_scaled_columns(kind, form):
    """Its coefficients and its model are for X as given."""
    lengths = np.repeat([0.5, 2.0, 1.5], SIZES)
    # Scales of an estimator come before those of fields.
    plain = clone(KINDS[kind]).set_params(**({"scale": None} if "scale" in KINDS[kind].get_params() else {}))
    data, scaled = (X, X * lengths) if form == "blocks" else (form(X), form(X * lengths))
    found, expected = clone(plain), clone(plain).fit(scaled, targets(kind))
    found._lengths = lengths
    found.fit(BLOCKS if form == "blocks" else data, targets(kind))
    # Networks merge equal samples in the order of their bytes, and refits end within their tolerance.
    of_networks = 1e-2 if isinstance(plain, OrdinalFMRegressor | OrdinalPNRegressor) else 1e-3
    rtol = of_networks if "scale" in plain.get_params() else 1e-6
    close = {"rtol": rtol, "atol": rtol * np.abs(outputs(expected, scaled)).max()}
    np.testing.assert_allclose(outputs(found, data), outputs(expected, scaled), **close)
    assert found.objective_ == pytest.approx(expected.objective_, rel=rtol)
    if kind in ("regressor", "degree 3"):
        np.testing.assert_allclose(found.P_, expected.P_ * lengths, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.w_, expected.w_ * lengths, rtol=1e-6, atol=1e-9)
    # A fit that goes on starts where this one ended.
    again = found.set_params(warm_start=True).fit(data, targets(kind))
    assert again.objective_ <= found.objective_ * (1 + 1e-9)
    np.testing.assert_allclose(outputs(again, data), outputs(found, data), atol=0.05 * np.abs(SCORES).max())


@pytest.mark.parametrize("scale", [None, "features", "data", "large"])
@pytest.mark.parametrize("center", [False, True])
def test_lengths_of_a_problem_come_after_its_scale(scale, center):
    data, lengths = RNG.normal(1.0, 1.0, (50, 4)), np.array([0.5, 2.0, 3.0, 1.0])
    options = {"loss": "squared", "strength": 1.0, "augment": True, "scale": scale, "center": center}
    first = mopn.NetworkProblem(data, data[:, 0], **options)
    found = mopn.NetworkProblem(data, data[:, 0], lengths=lengths, **options)
    dummy = np.ones((50, 1))
    expected = first.design.project(np.eye(5)) * np.append(1.0, lengths)
    np.testing.assert_allclose(found.design.project(np.eye(5)), expected, rtol=1e-12)
    H, V = RNG.normal(size=(2, 5)), RNG.normal(size=(2, 1))
    basis, weights, _ = found.user_X.network(H, V, None)
    user = (np.hstack([dummy, data]) @ basis.T) ** 2 @ weights
    np.testing.assert_allclose(user, (expected @ H.T) ** 2 @ V, rtol=1e-9)


@pytest.mark.parametrize("lengths", [[1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0], [1.0, np.nan, 1.0], [1e300] * 3])
def test_bad_lengths(lengths):
    with pytest.raises(ValueError, match="lengths"):
        mopn.NetworkProblem(X[:, :3], SCORES, loss="squared", strength=1.0, lengths=lengths)


def test_partial_fits_go_on_with_the_scales():
    estimator = clone(KINDS["passes"])
    estimator._lengths = np.repeat([0.5, 2.0, 1.5], SIZES)
    plain = clone(KINDS["passes"])
    for _ in range(3):
        estimator.partial_fit(X, SCORES)
        plain.partial_fit(X * np.repeat([0.5, 2.0, 1.5], SIZES), SCORES)
    np.testing.assert_allclose(estimator.predict(X), plain.predict(X * np.repeat([0.5, 2.0, 1.5], SIZES)), rtol=1e-9)


@pytest.mark.parametrize("scale", [None, "data", "features", "large"])
def test_a_new_feature_has_the_scale_one(scale):
    """The fit with lengths of ones and that without fold in the same model."""
    models = []
    for lengths in (None, np.ones(D)):
        estimator = OrdinalFMRegressor(max_units=2, strength=1.0, scale=scale)
        estimator._lengths = lengths
        models.append(estimator.fit(X, LEVELS).fold_in(X[:9], LEVELS[:9]))
    row = np.append(X[0], 1.0)[None]
    np.testing.assert_allclose(models[0].predict(row), models[1].predict(row), rtol=1e-6)


# -- the choice --------------------------------------------------------------------------------------------------------


@every_kind
def test_the_choice_is_no_worse_on_held_out_samples(kind):
    search = FieldScaleCV(KINDS[kind], SIZES).fit(X, targets(kind))
    table = search.cv_results_
    assert table["field_scales"].shape == (len(table["mean_test_loss"]), 3)
    np.testing.assert_array_equal(table["field_scales"][0], 1.0)
    np.testing.assert_array_equal(table["field_scales"][search.best_index_], search.field_scales_)
    assert table["mean_test_loss"][search.best_index_] <= table["mean_test_loss"][0]
    assert search.best_index_ in (0, len(table["mean_test_loss"]) - 1)
    best = search.best_estimator_
    assert best.get_params() == KINDS[kind].get_params()
    np.testing.assert_array_equal(search.predict(X), best.predict(X))
    assert search.score(X, targets(kind)) == best.score(X, targets(kind))
    same = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(same.predict(X), search.predict(X))


def test_a_clone_chooses_the_same():
    search = FieldScaleCV(KINDS["regressor"], SIZES).fit(X, SCORES)
    again = clone(search).fit(X, SCORES)
    np.testing.assert_array_equal(again.field_scales_, search.field_scales_)
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), n=st.integers(8, 60), alpha=st.sampled_from([1e-3, 1.0, 1e3]))
def test_held_out_losses_are_those_of_fits_to_the_others(seed, n, alpha):
    rng = np.random.default_rng(seed)
    data, y, weights = rng.normal(size=(n, 4)), rng.normal(size=n), rng.integers(1, 3, n).astype(float)
    single = FactorizationMachineRegressor(alpha=alpha, n_components=1, random_state=0)
    search = FieldScaleCV(single, [3, 1]).fit(data, y, weights)
    found = search.cv_results_["mean_test_loss"]
    assert found[search.best_index_] <= found[0]
    samples, targets, units = in_one_order(*readied(clone(single), data, y, weights))
    halves = next(splits(targets, 3, units))
    parts = [(samples[part], targets.y[part], targets.rows(part).weights) for part in halves]
    errors = (clone(single).fit(*parts[0]).predict(parts[1][0]) - parts[1][1]) ** 2 / 2
    assert found[0] == pytest.approx(np.average(errors, weights=parts[1][2]), rel=1e-9)


@pytest.mark.parametrize("kind", ["regressor", "classifier", "ordinal"])
def test_scales_of_ones_are_the_plain_fit(kind, monkeypatch):
    monkeypatch.setattr(field_scales.Trial, "is_better_than", lambda self, other: False)
    search, plain = FieldScaleCV(KINDS[kind], SIZES).fit(X, targets(kind)), clone(KINDS[kind]).fit(X, targets(kind))
    np.testing.assert_array_equal(search.field_scales_, 1.0)
    assert search.best_index_ == 0
    # All scales together, and those of each field, longer and shorter.
    assert len(search.cv_results_["mean_test_loss"]) == 1 + 2 * 4
    np.testing.assert_array_equal(search.predict(X), plain.predict(X))


@pytest.mark.parametrize("kind", ["regressor", pytest.param("ordinal", marks=pytest.mark.slow)])
def test_it_finds_the_field_of_noise_and_helps(kind):
    rng = np.random.default_rng(1)
    places = np.column_stack([rng.integers(0, size, 3000) for size in (20, 10, 200)])
    data, y = OneHotEncoder().fit_transform(places), rng.normal(size=(20, 10))[places[:, 0], places[:, 1]]
    y = y + rng.normal(size=3000)
    y = np.digitize(y, [-1.0, 0.0, 1.0]) if kind == "ordinal" else y
    single = OrdinalFMRegressor(max_units=4, strength=0.5, alpha=0.1, scale=None)
    single = single if kind == "ordinal" else FactorizationMachineRegressor(random_state=0)
    search = FieldScaleCV(single, [20, 10, 200]).fit(data[:2000], y[:2000])
    users, items, noise = search.field_scales_
    assert noise < min(users, items)
    error, plain = (
        np.mean((m.predict(data[2000:]) - y[2000:]) ** 2) for m in (search, single.fit(data[:2000], y[:2000]))
    )
    assert error < 0.95 * plain


@pytest.mark.parametrize("kind", ["regressor", "ordinal", "classes"])
def test_relation_blocks_are_the_plain_matrix(kind):
    # Of more samples of the classes two steps tie, and rounding decides.
    some = np.arange(190)
    found = FieldScaleCV(KINDS[kind]).fit(BLOCKS[some], targets(kind)[some])
    expected = FieldScaleCV(KINDS[kind], SIZES).fit(X[some], targets(kind)[some])
    np.testing.assert_array_equal(found.field_scales_, expected.field_scales_)
    np.testing.assert_allclose(found.cv_results_["mean_test_loss"], expected.cv_results_["mean_test_loss"], rtol=1e-2)
    np.testing.assert_allclose(found.predict(BLOCKS), found.predict(X), rtol=1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_ratio_is_the_strength_without_scales(fit_intercept):
    """A ratio to the smallest strength whose solution is zero would undo scales, which make that larger."""
    single = MultiOutputFMRegressor(max_units=2, strength=mopn.Ratio(0.5), fit_intercept=fit_intercept)
    search = FieldScaleCV(single, SIZES).fit(X, SCORES)
    number = clone(single).fit(X, SCORES).strength_
    found = FieldScaleCV(clone(single).set_params(strength=number), SIZES).fit(X, SCORES)
    np.testing.assert_array_equal(search.field_scales_, found.field_scales_)
    assert (search.field_scales_ > 1.0).any()
    assert search.best_estimator_.strength == pytest.approx(number, rel=1e-9)
    np.testing.assert_allclose(search.predict(X), found.predict(X), rtol=1e-6)


@pytest.mark.parametrize("search", [FieldScaleCV(KINDS["ordinal"]), PathCV(KINDS["ordinal"], strengths=[1.0, 0.5])])
def test_an_interrupted_last_fit_is_kept(search, monkeypatch):
    def interrupt(self, result):
        raise KeyboardInterrupt

    monkeypatch.setattr(OrdinalFMRegressor, "_raise_interruption", interrupt)
    interrupted = clone(search)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X, LEVELS)
    assert np.isfinite(interrupted.predict(X)).all()


def test_what_is_not_fitted_has_no_score():
    with pytest.raises(NotFittedError, match="FieldScaleCV instance is not fitted yet"):
        FieldScaleCV(KINDS["regressor"]).score(X, SCORES)


def test_an_estimator_with_scales_takes_no_other_features():
    estimator = clone(KINDS["regressor"])
    estimator._lengths = np.repeat([0.5, 2.0, 1.5], SIZES)
    # Not a single column, either, which could be repeated.
    for data in (X[:, :5], X[:, :1], sparse.csr_array(X[:, :5])):
        words = f"X has {data.shape[1]} features, but there are scales of {D}, which FieldScaleCV chose; fit a clone"
        with pytest.raises(ValueError, match=words):
            estimator.fit(data, SCORES)
    with pytest.raises(TypeError, match="scales of fields need X in memory"):
        estimator.set_params(solver="lbfgs").fit(mopn.RowBlocks([X]), SCORES)


def test_samples_of_weight_zero_do_not_count():
    weights = np.r_[np.ones(N), np.zeros(20)]
    data, y = np.vstack([X, X[:20]]), np.r_[SCORES, np.full(20, 1e6)]
    found, expected = (
        FieldScaleCV(KINDS["regressor"], SIZES).fit(data, y, weights),
        FieldScaleCV(KINDS["regressor"], SIZES).fit(X, SCORES),
    )
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6)


def test_the_saved_model_is_one_for_x_as_given(tmp_path):
    search = FieldScaleCV(KINDS["regressor"], SIZES).fit(X, SCORES)
    assert search.best_index_
    search.save(tmp_path / "model")
    np.testing.assert_allclose(mopn.load(tmp_path / "model").predict(X), search.predict(X), rtol=1e-12)


def test_it_is_searched_in_and_stands_in_pipelines():
    pipeline = make_pipeline(OneHotEncoder(), FieldScaleCV(KINDS["regressor"], SIZES))
    found = GridSearchCV(pipeline, {"fieldscalecv__estimator__alpha": [1.0, 10.0]}, cv=2).fit(PLACES, SCORES)
    assert found.best_estimator_[-1].field_scales_.shape == (3,)

"""Estimators on relation blocks, against the plain matrix."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import mopn
from mopn import estimators
from mopn.data.relation_design import RelationDesign
from mopn.network import gradient_forms

RNG = np.random.default_rng(0)
N = 120
# Users with their rated items, items with their users; a context.
TABLES = [
    np.hstack([np.eye(6), RNG.random((6, 4)) < 0.5]),
    np.hstack([np.eye(5), RNG.random((5, 3)) / 2.0]),
    np.eye(3),
]
ROWS = np.column_stack([RNG.integers(0, len(table), N) for table in TABLES])
RELATED = mopn.RelationBlocks(TABLES, ROWS)
PLAIN = RELATED.tocsr()
D = PLAIN.shape[1]
SCORES = RNG.normal(size=(6, 2))[ROWS[:, 0]] * RNG.normal(size=(5, 2))[ROWS[:, 1]]
Y = np.digitize(SCORES.sum(axis=1), [-0.7, 0.7])
WEIGHTS = RNG.integers(0, 3, N).astype(float)
BY_TABLE = {
    "labels": estimators.MultiOutputFMClassifier(max_units=None, strength=mopn.Ratio(0.2)),
    "labels of networks": estimators.MultiOutputPNClassifier(
        max_units=3, strength=mopn.Ratio(0.1), fit_intercept=False
    ),
    "ordered": estimators.OrdinalFMRegressor(max_units=2),
    "ordered, networks": estimators.OrdinalPNRegressor(max_units=2),
    # Fits of two units end in different minima.
    "numbers": estimators.MultiOutputFMRegressor(max_units=4, strength=mopn.Ratio(0.1)),
    "a choice": estimators.PathCV(estimators.OrdinalFMRegressor(max_units=1), strengths=(2.0,), cv=2),
    "one output": estimators.FactorizationMachineRegressor(random_state=0, n_components=2, max_iter=20),
}
PLAINLY = {
    "two classes": estimators.FactorizationMachineClassifier(random_state=0, n_components=2, max_iter=20),
    "degree 3": estimators.FactorizationMachineRegressor(degree=3, random_state=0, n_components=2, max_iter=10),
    "steps": estimators.FactorizationMachineRegressor(solver="adagrad", random_state=0, n_components=3, max_iter=3),
    "lifted": estimators.PolynomialNetworkRegressor(random_state=0, n_components=2, max_iter=10),
}


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def targets(estimator):
    return Y > 0 if isinstance(estimator, estimators.FactorizationMachineClassifier) else Y


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("estimator", (BY_TABLE | PLAINLY).values(), ids=BY_TABLE | PLAINLY)
def test_fits_and_predictions(estimator, weights):
    y = targets(estimator)
    found, expected = (clone(estimator).fit(X, y, sample_weight=weights) for X in (RELATED, PLAIN))
    assert found.n_features_in_ == D
    best, right = (getattr(fitted, "best_estimator_", fitted) for fitted in (found, expected))
    # Samples are merged in another order, and fits end within their tolerance.
    assert best.objective_ == pytest.approx(right.objective_, rel=1e-2)
    np.testing.assert_allclose(found.predict(RELATED), found.predict(PLAIN), rtol=1e-10, atol=1e-10)
    assert found.score(RELATED, y) == pytest.approx(found.score(PLAIN, y), rel=1e-10)


@pytest.mark.parametrize("estimator", BY_TABLE.values(), ids=BY_TABLE)
def test_neither_fits_nor_predictions_form_the_plain_matrix(estimator, monkeypatch):
    monkeypatch.setattr(RelationDesign, "matrix", lambda self: pytest.fail("formed"))
    # Bounds from all pairs of a few samples do.
    monkeypatch.setattr(gradient_forms, "MAX_GRAM_SAMPLES", 0)
    clone(estimator).fit(RELATED, Y).predict(RELATED[:9])


def test_repeated_and_weighted_samples_are_the_same():
    counts = RNG.integers(1, 4, N)
    repeated = np.repeat(np.arange(N), counts)[RNG.permutation(counts.sum())]
    once = estimators.OrdinalFMRegressor(max_units=1).fit(RELATED, Y, sample_weight=counts)
    often = estimators.OrdinalFMRegressor(max_units=1).fit(RELATED[repeated], Y[repeated])
    np.testing.assert_array_equal(once.basis_, often.basis_)


def test_cross_validation():
    model = estimators.FactorizationMachineRegressor(random_state=0, n_components=2, max_iter=10)
    scores = [cross_val_score(model, X, Y, cv=2) for X in (RELATED, PLAIN)]
    np.testing.assert_allclose(*scores, rtol=1e-9)


@pytest.mark.parametrize("estimator", [BY_TABLE["ordered"], BY_TABLE["one output"]], ids=["ordered", "one output"])
def test_a_new_user(estimator):
    model = clone(estimator).fit(RELATED, Y)
    found, expected = (model.fold_in(X[:4], Y[:4]) for X in (RELATED, PLAIN))
    new = [np.zeros((1, 10)), *TABLES[1:], [[1.0]]]
    rows = np.column_stack([np.zeros(4, int), ROWS[:4, 1:], np.zeros(4, int)])
    grown = mopn.RelationBlocks(new, rows)
    np.testing.assert_allclose(found.predict(grown), expected.predict(grown.tocsr()), rtol=1e-6)


def test_names_of_an_earlier_fit_are_forgotten():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PLAIN.toarray(), columns=[f"x{j}" for j in range(D)])
    model = estimators.OrdinalFMRegressor(max_units=2).fit(frame, Y)
    assert not hasattr(model.fit(RELATED, Y), "feature_names_in_")


def test_errors():
    model = estimators.OrdinalFMRegressor(max_units=2)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(RELATED, Y[:-1])
    with pytest.raises(ValueError, match="y contains NaN; drop these samples"):
        model.fit(RELATED, np.where(Y == 1, np.nan, Y))
    model.fit(RELATED, Y)
    with pytest.raises(ValueError, match="X has 18 features, but OrdinalFMRegressor is expecting 21 features"):
        model.predict(mopn.RelationBlocks(TABLES[:2], ROWS[:, :2]))
    with pytest.raises(ValueError, match="takes no RelationBlocks"):
        estimators.MultiOutputPNClassifier().fit(RELATED, Y)

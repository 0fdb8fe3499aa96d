"""The choice of strength and size on held-out samples."""

import doctest
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold, StratifiedKFold

from mopn.estimators import MultiOutputPNClassifier, MultiOutputPNClassifierCV, cross_validation
from mopn.solvers import FullRefit

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 4))
# Three classes, how many of two quadratic conditions hold, with some noise in the labels.
HOLDING = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] ** 2 > 0.3)
Y = np.array(["b", "c", "a"])[np.where(RNG.random(60) < 0.1, RNG.integers(0, 3, 60), HOLDING)]
Y_TWO = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(60) > 0, "yes", "no")
Y_INDICATOR = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 2] > 0.2, X[:, 3] ** 2 > 0.3]).astype(int)


def cross_validated(**options):
    return MultiOutputPNClassifierCV(**({"strengths": [0.03, 0.3, 3.0, 300.0], "max_units": (1, 2, 6)} | options))


def mean_and_error(scores, weights):
    """Weighted mean over the folds of each column, and its standard error, by their definitions."""
    shares = [weight / sum(weights) for weight in weights]
    mean = [sum(p * x for p, x in zip(shares, column, strict=True)) for column in scores.T]
    squares = [
        sum(p * (x - m) ** 2 for p, x in zip(shares, column, strict=True))
        for column, m in zip(scores.T, mean, strict=True)
    ]
    return mean, [np.sqrt(square / (len(weights) - 1)) for square in squares]


# -- what is chosen ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [3, [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(5))]])
def test_the_scores_choose(cv):
    model = cross_validated(cv=cv).fit(X, Y)
    assert model.strengths_.tolist() == [300.0, 3.0, 0.3, 0.03]
    assert model.sizes_.tolist() == [6, 2, 1]
    assert model.scores_.shape == (len(model.fold_weights_), 4)
    assert model.size_scores_.shape == (len(model.fold_weights_), 3)
    mean, _ = mean_and_error(model.scores_, model.fold_weights_)
    best = mean.index(max(mean))
    assert model.strength_ == model.strengths_[best]
    # Nothing is cut off for the largest size.
    assert_array_equal(model.size_scores_[:, 0], model.scores_[:, best])
    mean, error = mean_and_error(model.size_scores_, model.fold_weights_)
    best = mean.index(max(mean))
    near = [size for size, m in zip(model.sizes_, mean, strict=True) if m >= mean[best] - error[best]]
    assert model.max_units_ == min(near)


def test_the_choice_is_fitted_to_all_samples():
    model = cross_validated().fit(X, Y)
    alone = MultiOutputPNClassifier(strength=model.strength_, max_units=model.max_units_).fit(X, Y)
    assert_array_equal(model.decision_function(X), alone.decision_function(X))
    assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    assert model.gap_ == alone.gap_


def test_more_units_are_chosen_where_one_is_not_enough():
    """Two products of different features need two units each, and one unit tells the classes apart no better."""
    data = np.random.default_rng(1).uniform(-1, 1, (400, 4))
    y = data[:, 0] * data[:, 1] + data[:, 2] * data[:, 3] > 0
    model = MultiOutputPNClassifierCV(max_units=(1, 4, 8)).fit(data, y)
    assert model.max_units_ > 1
    mean = dict(zip(model.sizes_, model.size_scores_.mean(axis=0), strict=True))
    assert mean[4] > mean[1] + 0.05


def test_one_fold_has_no_standard_error():
    model = cross_validated(cv=[(np.arange(40), np.arange(40, 60))]).fit(X, Y)
    assert model.max_units_ == max(zip(model.size_scores_[0], -model.sizes_, strict=True))[1] * -1


@pytest.mark.parametrize("size", [4, (4,), np.array([4])])
def test_a_single_size(size):
    model = cross_validated(max_units=size).fit(X, Y)
    assert model.max_units_ == 4
    assert len(model.basis_) <= 4


def test_shares_are_those_of_a_single_fit():
    model = MultiOutputPNClassifierCV(shares=[0.01, 0.2], max_units=3).fit(X, Y)
    alone = [MultiOutputPNClassifier(share=share, max_units=3).fit(X, Y).strength_ for share in (0.2, 0.01)]
    assert_allclose(model.strengths_, alone, rtol=1e-12)


# -- the scores --------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_folds():
    model = cross_validated(n_jobs=2).fit(X, Y)
    for scores, (train, test) in zip(model.scores_, StratifiedKFold(3).split(X, Y), strict=True):
        # A strength of 300 leaves nothing, so that all outputs are equal and the first class is predicted.
        assert scores[0] == np.mean(Y[test] == "a")
        alone = MultiOutputPNClassifier(strength=0.2, max_units=6).fit(X[train], Y[train])
        assert abs(scores[2] - alone.score(X[test], Y[test])) <= 0.25
    again = cross_validated().fit(X, Y)
    assert_array_equal(model.scores_, again.scores_)
    assert_array_equal(model.size_scores_, again.size_scores_)


def test_converged_scores_are_those_of_fits_to_the_folds():
    """With refits to the end the network of a path is that of a fit alone, up to a sample on the boundary."""
    options = {"refit": FullRefit(max_iter=2000, polish_iter=2000), "max_units": 8}
    model = MultiOutputPNClassifierCV(strengths=[3.0], **options).fit(X, Y)
    for scores, (train, test) in zip(model.scores_, StratifiedKFold(3).split(X, Y), strict=True):
        # Two thirds of the samples are trained on.
        alone = MultiOutputPNClassifier(strength=2.0, **options).fit(X[train], Y[train])
        assert abs(scores[0] - alone.score(X[test], Y[test])) <= 1.5 / len(test)


def test_strengths_are_for_all_samples():
    """Half of the samples, twice, have half of the losses and of the largest strength of use."""
    twice, labels = np.vstack([X, X]), np.concatenate([Y, Y])
    halves = [(np.arange(60), np.arange(60, 120))]
    strength = 0.6 * MultiOutputPNClassifier(share=0.5, max_units=1).fit(twice, labels).strength_ / 0.5
    model = MultiOutputPNClassifierCV(strengths=[strength], max_units=8, cv=halves).fit(twice, labels)
    empty = np.mean(Y == "a")
    alone = MultiOutputPNClassifier(strength=strength, max_units=8).fit(X, Y)
    assert len(alone.basis_) == 0
    assert model.scores_[0, 0] > empty + 0.1


def test_weights_count_in_the_scores_and_of_the_folds():
    weights = np.where(np.arange(60) < 20, 3.0, 1.0)
    folds = list(KFold(3).split(X))
    model = cross_validated(cv=folds, class_weight={"a": 1.0, "b": 2.0, "c": 1.0}).fit(X, Y, weights)
    weights = weights * np.where(Y == "b", 2.0, 1.0)
    assert_allclose(model.fold_weights_, [weights[test].sum() for _, test in folds], rtol=1e-12)
    empty = [np.average(Y[test] == "a", weights=weights[test]) for _, test in folds]
    assert_allclose(model.scores_[:, 0], empty, rtol=1e-12)


@pytest.mark.parametrize("y", [Y_TWO, Y_INDICATOR])
def test_every_kind_of_target(y):
    model = cross_validated(loss="binary-logistic", cv=KFold(3), class_weight=None).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert model.score(X, y) > 0.4


@pytest.mark.parametrize("options", [{"alpha": 0.1}, {"refit": "output"}, {"norm": "l1"}, {"loss": "squared"}])
def test_networks_of_every_kind_are_cut_down(options):
    model = cross_validated(strengths=[0.3, 0.1], **options).fit(X, Y)
    assert np.all(model.size_scores_ >= 0.2)
    assert len(model.basis_) <= model.max_units_


@pytest.mark.parametrize("cv", [3, KFold(3), "indices"])
def test_samples_without_weight_are_left_out(cv):
    weights = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    folds = list(KFold(3).split(X)) if cv == "indices" else cv
    model = cross_validated(cv=folds, class_weight="balanced").fit(X, np.where(weights == 0, "none", Y), weights)
    assert model.classes_.tolist() == ["a", "b", "c"]
    if cv == "indices":
        kept = weights > 0
        inner = [(train[kept[train]], test[kept[test]]) for train, test in KFold(3).split(X)]
        place = np.cumsum(kept) - 1
        alone = cross_validated(cv=[(place[a], place[b]) for a, b in inner], class_weight="balanced")
        assert_array_equal(model.scores_, alone.fit(X[kept], Y[kept]).scores_)


def test_a_second_fit_forgets_the_first():
    model = cross_validated().fit(X, Y_TWO)
    model.fit(X[:, :3], Y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    assert model.basis_.shape[1] == 4


# -- errors ------------------------------------------------------------------------------------------------------------


def test_folds_without_a_class_are_refused():
    rare = np.where(np.arange(60) < 20, "rare", Y)
    with pytest.raises(ValueError, match=r"a fold has no sample of the classes \['rare'\] to train on"):
        cross_validated(cv=KFold(3)).fit(X, rare)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": 5}, "shares must be finite numbers > 0 in one dimension, got 5"),
        ({"shares": [0.1, 1.0]}, "shares must be less than 1, for which the network is empty, got"),
        ({"shares": [0.1, -0.1]}, "shares must be finite numbers > 0"),
        ({"strengths": 5}, "strengths must be finite numbers > 0 in one dimension, got 5"),
        ({"strengths": []}, "strengths must be finite numbers > 0"),
        ({"max_units": 0}, "max_units must be an integer >= 1 or several, got 0"),
        ({"max_units": None}, "max_units must be an integer >= 1 or several, got None"),
        ({"max_units": ()}, "max_units must be an integer >= 1 or several"),
        ({"max_units": (5, 2.5)}, "max_units must be an integer >= 1 or several"),
        ({"max_units": "many"}, "max_units must be an integer >= 1 or several, got 'many'"),
    ],
)
def test_errors_of_what_is_chosen_from(options, message):
    with pytest.raises(ValueError, match=message):
        MultiOutputPNClassifierCV(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], "cv has no folds"),
        ("five", "cv must be an integer >= 2, a splitter, folds of indices or None, got 'five'"),
        (1, "cv must be an integer >= 2"),
        (True, "cv must be an integer >= 2"),
        ([1, 2], "cv must hold pairs of indices, of training and of test samples, got 1"),
        ([(np.arange(30), np.arange(30, 60), np.arange(3))], "cv must hold pairs of indices"),
        ([("train", "test")], "cv must hold pairs of indices"),
        ([(np.arange(30.0), np.arange(30, 60))], "cv must hold pairs of indices"),
    ],
)
def test_errors_of_folds(cv, message):
    with pytest.raises(ValueError, match=message):
        cross_validated(cv=cv).fit(X, Y)


# -- documentation -----------------------------------------------------------------------------------------------------


def test_examples():
    tried = doctest.testmod(cross_validation)
    assert tried.failed == 0
    assert tried.attempted > 0


def test_the_documentation_covers_every_parameter_and_attribute():
    model = cross_validated().fit(X, Y)
    attributes = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in [*model.get_params(), *attributes]:
        assert re.search(rf"^(\w+, )*{name}(, \w+)* : ", model.__doc__, re.MULTILINE), name

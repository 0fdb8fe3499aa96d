"""The choice of strengths and sizes of the estimators of one output."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from mopn.estimators import (
    FactorizationMachineClassifier,
    FactorizationMachineClassifierCV,
    FactorizationMachineRegressor,
    FactorizationMachineRegressorCV,
    PolynomialNetworkClassifier,
    PolynomialNetworkClassifierCV,
    PolynomialNetworkRegressor,
    PolynomialNetworkRegressorCV,
)
from mopn.estimators.single_output_cross_validation import _cut, _revived

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 4))
NUMBERS = 3.0 * X[:, 0] * X[:, 1] - X[:, 3] + 0.2 * RNG.standard_normal(60)
LABELS = np.where(NUMBERS > 0.2, "yes", "no")
FMS = {
    FactorizationMachineClassifierCV: FactorizationMachineClassifier,
    FactorizationMachineRegressorCV: FactorizationMachineRegressor,
}
PNS = {
    PolynomialNetworkClassifierCV: PolynomialNetworkClassifier,
    PolynomialNetworkRegressorCV: PolynomialNetworkRegressor,
}
SINGLES = FMS | PNS
every_kind = pytest.mark.parametrize("kind", SINGLES)


def y_of(kind):
    return LABELS if "Classifier" in kind.__name__ else NUMBERS


def cross_validated(kind, **options):
    return kind(**({"strengths": [0.1, 1.0, 30.0], "n_components": 3, "random_state": 0} | options))


def alone(kind, **options):
    return SINGLES[kind](**({"n_components": 3, "random_state": 0} | options))


def mean(scores, weights):
    """The weighted mean over the folds by its definition."""
    return sum(weight * score for weight, score in zip(weights, scores, strict=True)) / sum(weights)


# -- what is chosen ----------------------------------------------------------------------------------------------------


@every_kind
def test_the_best_strength_is_fitted_to_all_samples(kind):
    y = y_of(kind)
    found = cross_validated(kind).fit(X, y)
    assert found.strengths_.tolist() == [30.0, 1.0, 0.1]
    means = mean(found.scores_, found.fold_weights_).ravel().tolist()
    assert found.strength_ == found.strengths_[means.index(max(means))] < 30.0
    assert (found.n_components_, found.sizes_.tolist()) == (3, [3])
    single = alone(kind, beta=found.strength_).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), single.predict(X))
    assert found.objective_ == single.objective_
    assert not hasattr(found, "partial_fit")


@pytest.mark.parametrize("kind", FMS)
def test_every_alpha_is_tried_with_every_strength(kind):
    y = y_of(kind)
    found = cross_validated(kind, alpha=(0.01, 1000.0)).fit(X, y)
    assert found.alphas_.tolist() == [1000.0, 0.01]
    assert found.scores_.shape == (3, 2, 3)
    means = mean(found.scores_, found.fold_weights_)
    assert means[1].max() == means.max() > means[0].max()
    assert (found.alpha_, found.strength_) == (0.01, found.strengths_[np.argmax(means[1])])
    single = alone(kind, alpha=0.01, beta=found.strength_).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), single.predict(X))


@every_kind
def test_the_smallest_size_within_a_standard_error(kind):
    found = cross_validated(kind, n_components=(1, 6, 2), cv=4).fit(X, y_of(kind))
    assert found.sizes_.tolist() == [6, 2, 1]
    at = (slice(None), 0) if kind in FMS else (slice(None),)
    scores = found.scores_[at][:, list(found.strengths_).index(found.strength_)]
    np.testing.assert_array_equal(found.size_scores_[:, 0], scores)
    means = mean(found.size_scores_, found.fold_weights_)
    best = np.argmax(means)
    squares = mean((found.size_scores_[:, best] - means[best]) ** 2, found.fold_weights_)
    near = [size for size, m in zip(found.sizes_, means, strict=True) if m >= means[best] - np.sqrt(squares / 3)]
    assert found.n_components_ == min(near)
    assert found.get_params()["n_components"] == (1, 6, 2)
    assert (found.P_ if kind in FMS else found.U_).shape[1] == found.n_components_


def test_the_largest_units_stay():
    """With lambda a unit counts by |lambda| ||p||^2."""
    machine = FactorizationMachineRegressor(n_components=3)
    machine.P_, machine.lams_ = np.array([[[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]]), np.array([-10.0, 1.0, 1.0])
    cut = _cut(machine, 2)
    assert cut.lams_.tolist() == [-10.0, 1.0]
    assert cut.P_.tolist() == [[[1.0, 0.0], [0.0, 3.0]]]
    assert (cut.n_components, machine.n_components) == (2, 3)
    network = PolynomialNetworkRegressor(n_components=2)
    network.U_ = np.array([[[1.0], [0.5]], [[0.1], [1.5]]])
    assert _cut(network, 1).U_.tolist() == [[[0.5]], [[1.5]]]


# -- the scores --------------------------------------------------------------------------------------------------------


@every_kind
def test_scores_are_those_of_fits_to_the_folds(kind):
    """The first fit of a path is a fit alone, with the strengths of the fold's part of the samples."""
    y = y_of(kind)
    splitter = StratifiedKFold(3) if y is LABELS else KFold(3, shuffle=True, random_state=0)
    strengths = {"beta": 0.5} | ({"alpha": 0.3} if kind in FMS else {})
    options = {"strengths": [0.5]} | ({"alpha": 0.3} if kind in FMS else {})
    found = cross_validated(kind, **options).fit(X, y)
    for fold, (train, test) in enumerate(splitter.split(X, y)):
        of_part = {name: strength * len(train) / 60 for name, strength in strengths.items()}
        expected = alone(kind, **of_part).fit(X[train], y[train]).score(X[test], y[test])
        assert found.scores_[fold].ravel().tolist() == [pytest.approx(expected, rel=1e-12)]
        assert found.fold_weights_[fold] == len(test)


@every_kind
def test_fits_along_a_path_are_as_good_as_fits_alone(kind):
    """Also after a strength that shrinks all units to nothing, from which no solver would come back."""
    y, folds = y_of(kind), list(KFold(2).split(X))
    found = cross_validated(kind, strengths=[1e4, 0.2], cv=folds, scoring="r2" if y is NUMBERS else None).fit(X, y)
    for fold, (train, test) in enumerate(folds):
        expected = alone(kind, beta=0.1, **({"alpha": 0.5} if kind in FMS else {})).fit(X[train], y[train])
        first, second = found.scores_[fold].ravel()
        assert second == pytest.approx(expected.score(X[test], y[test]), abs=0.07)
        assert second > first + 0.1


def test_small_units_get_those_of_the_start():
    machine, start = FactorizationMachineRegressor(), FactorizationMachineRegressor()
    machine.P_ = np.array([[[1.0, 1.0], [1e-9, 0.0]]])
    start.P_ = np.array([[[0.1, 0.2], [0.3, 0.4]]])
    assert _revived(machine, start).P_.tolist() == [[[1.0, 1.0], [0.3, 0.4]]]
    assert machine.P_[0, 1, 0] == 1e-9


@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
def test_stochastic_solvers_start_anew(solver):
    """Else a later strength would have the epochs of all before it."""
    folds, options = [(np.arange(40), np.arange(40, 60))], {"solver": solver, "max_iter": 5, "alpha": 0.3}
    found = cross_validated(FactorizationMachineRegressorCV, cv=folds, **options).fit(X, NUMBERS)
    part = 40 / 60
    for strength, score in zip(found.strengths_, found.scores_[0, 0], strict=True):
        options = options | {"alpha": part * 0.3, "beta": part * strength}
        single = alone(FactorizationMachineRegressorCV, **options).fit(X[:40], NUMBERS[:40])
        assert score == pytest.approx(single.score(X[40:], NUMBERS[40:]), rel=1e-12)


@every_kind
def test_weights_count_in_the_strengths_and_in_the_scores(kind):
    y, folds = y_of(kind), list(KFold(3).split(X))
    weights = np.where(np.arange(60) % 3 == 0, 3.0, 1.0)
    found = cross_validated(kind, strengths=[0.5], cv=folds).fit(X, y, weights)
    for fold, (train, test) in enumerate(folds):
        part = weights[train].sum() / weights.sum()
        single = alone(kind, beta=0.5 * part, **({"alpha": part} if kind in FMS else {}))
        expected = single.fit(X[train], y[train], weights[train]).score(X[test], y[test], weights[test])
        assert found.scores_[fold].ravel().tolist() == [pytest.approx(expected, rel=1e-12)]
        assert found.fold_weights_[fold] == weights[test].sum()


def test_samples_without_weight_are_left_out():
    kept, folds = np.arange(60) % 5 > 0, list(KFold(3).split(X))
    place = np.cumsum(kept) - 1
    inner = [(place[train[kept[train]]], place[test[kept[test]]]) for train, test in folds]
    odd = np.where(kept, NUMBERS, 1e3)
    found = cross_validated(PolynomialNetworkRegressorCV, cv=folds).fit(X, odd, kept.astype(float))
    expected = cross_validated(PolynomialNetworkRegressorCV, cv=inner).fit(X[kept], NUMBERS[kept])
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-9)


@pytest.mark.parametrize("kind", [FactorizationMachineClassifierCV, PolynomialNetworkClassifierCV])
@pytest.mark.parametrize("scoring", ["roc_auc", "own"])
def test_scores_of_ones_own(kind, scoring):
    folds = [(np.arange(40), np.arange(40, 60))]

    def own(estimator, X, y):
        return roc_auc_score(y, estimator.decision_function(X))

    found = cross_validated(kind, strengths=[0.5], cv=folds, scoring=own if scoring == "own" else scoring)
    found.fit(X, LABELS)
    single = alone(kind, beta=0.5 * 40 / 60, **({"alpha": 40 / 60} if kind in FMS else {})).fit(X[:40], LABELS[:40])
    assert found.scores_.item() == pytest.approx(own(single, X[40:], LABELS[40:]), rel=1e-12)


# -- folds -------------------------------------------------------------------------------------------------------------


@every_kind
def test_an_evaluation_set_of_ones_own(kind):
    y = y_of(kind)
    fold = np.where(np.arange(60) < 45, -1, 0)
    split, indices = PredefinedSplit(fold), [(np.arange(45), np.arange(45, 60))]
    found, again = (cross_validated(kind, cv=cv).fit(X, y) for cv in (split, indices))
    assert found.fold_weights_.tolist() == [15.0]
    np.testing.assert_array_equal(found.scores_, again.scores_)
    np.testing.assert_array_equal(found.predict(X), again.predict(X))


def test_folds_in_parallel_are_the_same():
    serial, parallel = (cross_validated(PolynomialNetworkRegressorCV, n_jobs=n).fit(X, NUMBERS) for n in (None, 2))
    np.testing.assert_array_equal(serial.scores_, parallel.scores_)
    np.testing.assert_array_equal(serial.size_scores_, parallel.size_scores_)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_probabilities_are_those_of_the_loss(loss):
    found = cross_validated(FactorizationMachineClassifierCV, loss=loss).fit(X, LABELS)
    assert hasattr(found, "predict_proba") == (loss == "logistic")
    assert found.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (FactorizationMachineRegressorCV, {"degree": 3}),
        (FactorizationMachineRegressorCV, {"degree": 3, "fit_lower": "augment"}),
        (FactorizationMachineRegressorCV, {"degree": 3, "fit_lower": "shared"}),
        (FactorizationMachineRegressorCV, {"init_lambdas": "fit"}),
        (FactorizationMachineRegressorCV, {"init_lambdas": "random_signs"}),
        (FactorizationMachineRegressorCV, {"solver": "lbfgs", "loss": "huber"}),
        (FactorizationMachineRegressorCV, {"kernel": "all-subsets"}),
        (PolynomialNetworkRegressorCV, {"degree": 3, "fit_lower": None}),
        (PolynomialNetworkRegressorCV, {"solver": "lbfgs"}),
    ],
)
def test_models_of_every_kind_are_continued_and_cut_down(kind, options):
    y = NUMBERS if options.get("fit_lower", "") is not None else X[:, 0] * X[:, 1] * X[:, 2]
    found = cross_validated(kind, n_components=(4, 2), strengths=(1.0, 0.1), cv=2, **options).fit(X, y)
    assert found.size_scores_.shape == (2, 2)
    assert found.score(X, y) > 0.5


# -- errors, and what scikit-learn asks for ----------------------------------------------------------------------------


def test_folds_without_a_class_are_refused():
    rare = np.where(np.arange(60) < 20, "rare", "other")
    with pytest.raises(ValueError, match=r"a fold has no sample of the classes \['rare'\] to train on"):
        cross_validated(PolynomialNetworkClassifierCV, cv=KFold(3)).fit(X, rare)


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_a_score_that_is_not_defined_is_refused():
    with pytest.raises(ValueError, match="scoring is NaN on the held-out part of a fold"):
        cross_validated(PolynomialNetworkRegressorCV, cv=[(np.arange(50), [55])]).fit(X, NUMBERS)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (FactorizationMachineRegressorCV, {"strengths": None}, "strengths must be"),
        (PolynomialNetworkRegressorCV, {"strengths": [0.0]}, "strengths must be finite numbers > 0"),
        (FactorizationMachineRegressorCV, {"alpha": -1.0}, "alpha must be a finite number >= 0 or several, got -1"),
        (FactorizationMachineRegressorCV, {"alpha": []}, "alpha must be a finite number >= 0 or several"),
        (PolynomialNetworkRegressorCV, {"n_components": (3, 0)}, "n_components must be an integer >= 1 or several"),
        (PolynomialNetworkRegressorCV, {"cv": 1}, "cv must be an integer >= 2"),
        (PolynomialNetworkRegressorCV, {"scoring": "speed"}, "scoring must be a name of sklearn"),
    ],
)
def test_errors_of_what_is_chosen_from(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options).fit(X, NUMBERS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [kind(strengths=(10.0, 1.0), n_components=2, cv=2, max_iter=10, random_state=0) for kind in SINGLES]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_kind
def test_the_documentation_covers_every_parameter_and_attribute(kind):
    model = cross_validated(kind).fit(X, y_of(kind))
    attributes = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in [*model.get_params(), *attributes]:
        assert re.search(rf"^(\w+, )*{name}(, \w+)* : ", model.__doc__, re.MULTILINE), name
    assert clone(model).get_params() == model.get_params()

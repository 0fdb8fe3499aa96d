"""The choice of strength and size on held-out samples, for every estimator of networks."""

import numpy as np
import pytest
from estimator_names import OF_SAMPLES
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

import mopn
from mopn import estimators
from mopn.estimators import (
    FactorizationMachineRegressor,
    MultiOutputPNClassifier,
    OrdinalFMRegressor,
    PathCV,
    TableClassifier,
    TableEncoder,
    network_estimator,
)
from mopn.solvers import FullRefit

# Searches among few strengths may choose one of no effect.
pytestmark = pytest.mark.filterwarnings("ignore:.*predictions are the same")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 4))
# Three classes, how many of two quadratic conditions hold, with some noise in the labels.
HOLDING = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] ** 2 > 0.3)
Y = np.array(["b", "c", "a"])[np.where(RNG.random(60) < 0.1, RNG.integers(0, 3, 60), HOLDING)]


SEARCHED = {"strengths", "max_units", "cv", "scoring", "n_jobs"}


def search(kind=MultiOutputPNClassifier, **options):
    """A search; unknown options are parameters of the estimator. Few units are to serve all classes."""
    options = {"norm": "l1/l2", "refit": "output"} | options
    own = {name: options.pop(name) for name in SEARCHED & set(options)}
    return PathCV(kind(**options), **({"strengths": [0.3, 3.0, 300.0], "max_units": (1, 2, 4)} | own))


def scores_of(found):
    """The scores of a search, (folds, rows)."""
    return np.array([found.cv_results_[f"split{fold}_test_score"] for fold in range(found.n_splits_)])


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
    found = search(cv=cv).fit(X, Y)
    table = found.cv_results_
    assert table["param_strength"][:3].tolist() == [300.0, 3.0, 0.3]
    assert table["param_max_units"].tolist() == [4, 4, 4, 2, 1]
    assert table["params"][1] == {"strength": 3.0, "max_units": 4}
    weights = [len(test) for _, test in cv] if cv != 3 else [20, 20, 20]
    mean, error = mean_and_error(scores_of(found), weights)
    assert_allclose(table["mean_test_score"], mean, rtol=1e-12)
    assert_allclose(table["std_test_score"], np.sqrt(len(weights) - 1) * np.array(error), rtol=1e-9, atol=1e-12)
    assert table["rank_test_score"].tolist() == [1 + sum(other > m for other in mean) for m in mean]
    best = mean[:3].index(max(mean[:3]))
    assert set(table["param_strength"][3:]) == {table["param_strength"][best]}
    sizes = [best, 3, 4]
    top = max(sizes, key=lambda row: mean[row])
    near = [row for row in sizes if mean[row] >= mean[top] - error[top]]
    assert found.best_index_ == near[-1]
    assert found.best_params_ == table["params"][near[-1]]
    assert found.best_score_ == table["mean_test_score"][near[-1]]


def test_more_units_are_chosen_where_one_is_not_enough():
    """Two products of different features need two units each, and one unit tells the classes apart no better."""
    data = np.random.default_rng(1).uniform(-1, 1, (400, 4))
    y = data[:, 0] * data[:, 1] + data[:, 2] * data[:, 3] > 0
    found = PathCV(MultiOutputPNClassifier(), max_units=(1, 4, 8)).fit(data, y)
    assert found.best_params_["max_units"] > 1
    mean = dict(zip(found.cv_results_["param_max_units"], found.cv_results_["mean_test_score"], strict=True))
    assert mean[4] > mean[1] + 0.05


def test_ratios_are_those_of_a_single_fit():
    ratios = (mopn.Ratio(0.01), mopn.Ratio(0.2))
    found = search(strengths=ratios, max_units=3).fit(X, Y)
    alone = [
        MultiOutputPNClassifier(norm="l1/l2", strength=ratio, max_units=3).fit(X, Y).strength_
        for ratio in reversed(ratios)
    ]
    assert_allclose(found.cv_results_["param_strength"], alone, rtol=1e-12)


USERS, ITEMS = np.repeat(np.arange(8), 15), RNG.integers(0, 6, 120)
IDS = np.column_stack([np.eye(8)[USERS], np.eye(6)[ITEMS]])
RATINGS = np.clip(3 + (USERS % 3 == 0) + np.where(USERS % 2 == ITEMS % 2, 1, -1), 1, 5)


TARGETS = {
    "MultiOutputPNClassifier": [RATINGS > 2, RATINGS, np.column_stack([USERS % 2, ITEMS % 2])],
    "MultiOutputFMClassifier": [RATINGS > 2, RATINGS, np.column_stack([USERS % 2, ITEMS % 2])],
    "MultiOutputPNRegressor": [RATINGS, np.column_stack([RATINGS, RATINGS**2])],
    "MultiOutputFMRegressor": [RATINGS, np.column_stack([RATINGS, RATINGS**2])],
    "OrdinalPNRegressor": [RATINGS],
    "OrdinalFMRegressor": [RATINGS],
}


# The two kernels share every line but the kernel's own, and two classes are labels, too.
CASES = [
    pytest.param(
        name, y, marks=[pytest.mark.slow] * (name.startswith(("MultiOutputFM", "OrdinalPN")) or y.dtype == bool)
    )
    for name, kinds in TARGETS.items()
    for y in kinds
]


@pytest.mark.parametrize(("name", "y"), CASES)
def test_every_estimator_of_networks(name, y):
    kind = getattr(estimators, name)
    loss = {"loss": "binary-logistic"} if name.endswith("Classifier") and y.ndim > 1 else {}
    found = search(kind, refit="full", tol=0.1, strengths=(0.05, 1.0, 500.0), max_units=(4, 2), **loss).fit(IDS, y)
    # The frequencies of two classes may score as well as a network.
    assert found.best_params_["strength"] < 500.0 or y.dtype == bool
    alone = kind(norm="l1/l2", tol=0.1, **loss, **found.best_params_).fit(IDS, y)
    assert found.score(IDS, y) == alone.score(IDS, y)
    assert_array_equal(found.model_.basis, alone.basis_)
    assert_array_equal(getattr(found, "classes_", None), getattr(alone, "classes_", None))
    for method in ("predict", "predict_proba", "decision_function"):
        assert hasattr(found, method) == hasattr(alone, method)
        if hasattr(alone, method):
            assert_array_equal(getattr(found, method)(IDS), getattr(alone, method)(IDS))


def test_no_estimator_of_networks_is_left_out():
    kinds = {name: getattr(estimators, name) for name in OF_SAMPLES}
    assert TARGETS.keys() == {
        name for name, kind in kinds.items() if issubclass(kind, network_estimator.NetworkEstimator)
    }


@pytest.mark.slow
def test_a_number_of_folds_is_shuffled_and_a_splitter_is_not():
    """The rows are sorted by user: folds in their order hold out whole users, who are then known by nothing."""
    options = {"strengths": (0.05, 1.0), "max_units": 4}
    shuffled, again = (search(OrdinalFMRegressor, **options, cv=4).fit(IDS, RATINGS) for _ in range(2))
    assert_array_equal(scores_of(shuffled), scores_of(again))
    in_order = search(OrdinalFMRegressor, **options, cv=KFold(4)).fit(IDS, RATINGS)
    assert scores_of(shuffled).max(axis=1).mean() > scores_of(in_order).max(axis=1).mean()
    groups = search(OrdinalFMRegressor, **options, cv=GroupKFold(4)).fit(IDS, RATINGS, groups=USERS)
    assert groups.n_splits_ == 4


# -- the scores --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_change_no_scores():
    assert_array_equal(*(scores_of(search(n_jobs=n_jobs).fit(X, Y)) for n_jobs in (None, 2)))


@pytest.mark.slow
def test_converged_scores_are_those_of_fits_to_the_folds():
    """With refits to the end, a path and a fit alone give the same network, up to a sample on the boundary."""
    refit = FullRefit(max_iter=2000, polish_iter=2000)
    found = search(refit=refit, strengths=[3.0], max_units=4).fit(X, Y)
    for scores, (train, test) in zip(scores_of(found), StratifiedKFold(3).split(X, Y), strict=True):
        # Two thirds of the samples are trained on.
        alone = MultiOutputPNClassifier(norm="l1/l2", refit=refit, strength=2.0, max_units=4).fit(X[train], Y[train])
        assert abs(scores[0] - alone.score(X[test], Y[test])) <= 1.5 / len(test)


def test_strengths_are_for_all_samples():
    """Half of the samples, twice, have half of the losses and of the smallest strength whose solution is zero."""
    twice, labels = np.vstack([X, X]), np.concatenate([Y, Y])
    halves = [(np.arange(60), np.arange(60, 120))]
    half = MultiOutputPNClassifier(norm="l1/l2", strength=mopn.Ratio(0.5), max_units=1).fit(twice, labels).strength_
    found = search(strengths=[1.2 * half], max_units=8, cv=halves).fit(twice, labels)
    alone = MultiOutputPNClassifier(norm="l1/l2", strength=1.2 * half, max_units=8).fit(X, Y)
    assert len(alone.basis_) == 0
    assert scores_of(found)[0, 0] > np.mean(Y == "a") + 0.1


def test_a_score_of_ones_own():
    found = search(scoring="neg_log_loss", strengths=[0.3], max_units=6, cv=[(np.arange(40), np.arange(40, 60))])
    found.fit(X, Y)
    assert found.score(X, Y) == pytest.approx(-log_loss(Y, found.predict_proba(X)))


def test_weights_count_in_the_scores_and_of_the_folds():
    weights = np.where(np.arange(60) < 20, 3.0, 1.0)
    folds = list(KFold(3).split(X))
    found = search(cv=folds, class_weight={"a": 1.0, "b": 2.0, "c": 1.0}).fit(X, Y, weights)
    weights = weights * np.where(Y == "b", 2.0, 1.0)
    # A network without units predicts the heaviest class of its training samples.
    heaviest = ["abc"[np.argmax([weights[train] @ (Y[train] == label) for label in "abc"])] for train, _ in folds]
    empty = [
        np.average(Y[test] == label, weights=weights[test]) for (_, test), label in zip(folds, heaviest, strict=True)
    ]
    assert_allclose(scores_of(found)[:, 0], empty, rtol=1e-12)
    mean, _ = mean_and_error(scores_of(found), [weights[test].sum() for _, test in folds])
    assert_allclose(found.cv_results_["mean_test_score"], mean, rtol=1e-12)


@pytest.mark.parametrize("options", [{"alpha": 0.1}, {"refit": "full"}, {"norm": "l1"}, {"loss": "squared"}])
def test_networks_of_every_kind_are_cut_down(options):
    found = search(strengths=[0.3, 0.1], **options).fit(X, Y)
    assert np.all(scores_of(found)[:, 2:] >= 0.2)
    assert len(found.best_estimator_.basis_) <= found.best_params_["max_units"]


@pytest.mark.parametrize("cv", [3, KFold(3), "indices"])
def test_samples_without_weight_are_left_out(cv):
    weights = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    folds = list(KFold(3).split(X)) if cv == "indices" else cv
    found = search(cv=folds, class_weight="balanced").fit(X, np.where(weights == 0, "none", Y), weights)
    assert found.classes_.tolist() == ["a", "b", "c"]
    if cv == "indices":
        kept = weights > 0
        inner = [(train[kept[train]], test[kept[test]]) for train, test in KFold(3).split(X)]
        place = np.cumsum(kept) - 1
        alone = search(cv=[(place[a], place[b]) for a, b in inner], class_weight="balanced")
        assert_array_equal(scores_of(found), scores_of(alone.fit(X[kept], Y[kept])))


# -- errors ------------------------------------------------------------------------------------------------------------


def test_folds_without_a_class_are_refused():
    rare = np.where(np.arange(60) < 20, "rare", Y)
    with pytest.raises(ValueError, match=r"a fold has no sample of the classes \['rare'\] to train on"):
        search(cv=KFold(3)).fit(X, rare)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strengths": [mopn.Ratio(0.1), -0.1]}, "strengths must be finite numbers > 0"),
        ({"cv": []}, "cv has no folds"),
        ({"cv": [1, 2]}, "cv must hold pairs of indices, of training and of test samples, got 1"),
        ({"cv": [(np.arange(30), np.arange(30, 60), np.arange(3))]}, "cv must hold pairs of indices"),
        ({"cv": [("train", "test")]}, "cv must hold pairs of indices"),
        ({"cv": [(np.arange(30.0), np.arange(30, 60))]}, "cv must hold pairs of indices"),
        ({"cv": [(np.arange(30), np.arange(30, 61))]}, "cv must hold indices of the 60 samples, from 0, or 60 flags"),
        ({"cv": [(np.arange(30), np.arange(-30, 0))]}, "cv must hold indices of the 60 samples"),
        ({"cv": [(np.arange(50) < 30, np.arange(50) >= 30)]}, "cv must hold indices of the 60 samples"),
        ({"cv": [(np.arange(60), np.arange(0))]}, "a fold with no sample of positive weight to train on, or none to"),
        ({"cv": [(np.arange(0), np.arange(60))]}, "cv has a fold with no sample of positive weight to train on"),
        ({"scoring": lambda *_: np.nan}, "scoring is NaN on the held-out part of a fold"),
        ({"scoring": ["accuracy"]}, r"scoring must be the name of one score, a callable or None, got \['accuracy'\]"),
    ],
)
def test_errors_of_parameters(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        search(**options).fit(X, Y)


@pytest.mark.parametrize(
    "estimator",
    [FactorizationMachineRegressor(), LogisticRegression(), make_pipeline(MultiOutputPNClassifier()), "PN", None],
)
def test_estimators_without_paths_are_refused(estimator):
    with pytest.raises(TypeError, match=r"estimator must be a multi-output or ordinal estimator of mopn\.estimators"):
        PathCV(estimator).fit(X, Y)


def test_the_size_is_that_of_the_estimator_by_default():
    found = PathCV(MultiOutputPNClassifier(max_units=7), strengths=[0.3, 0.1]).fit(X, Y)
    assert found.best_params_["max_units"] == 7
    assert set(found.cv_results_["param_max_units"]) == {7}
    with pytest.raises((TypeError, ValueError), match="max_units must be an integer >= 1 or several, got None"):
        PathCV(MultiOutputPNClassifier(max_units=None)).fit(X, Y)


def test_tables_choose_their_own_strength():
    with pytest.raises(TypeError, match=r"estimator must be a multi-output .* TableClassifier.*TableEncoder.*PathCV"):
        PathCV(TableClassifier()).fit(X, Y)
    found = make_pipeline(TableEncoder(), PathCV(MultiOutputPNClassifier(), strengths=[0.3, 0.1])).fit(X, Y)
    assert found.predict(X).shape == Y.shape

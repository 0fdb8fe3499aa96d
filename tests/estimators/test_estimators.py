"""The scikit-learn estimators: what scikit-learn's own checks do not cover."""

import re
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from own_losses import OfParent
from reference import loss_of_sample, norm_of_rows
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags

import mopn
from mopn.estimators import (
    FactorizationMachineRegressor,
    MultiOutputFMClassifier,
    MultiOutputFMRegressor,
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    OrdinalFMRegressor,
    PathCV,
    network_estimator,
    network_fit,
    targets,
)
from mopn.losses.hessians import Diagonal
from mopn.losses.losses import Squared
from mopn.solvers import FullRefit, Status

CLASSIFIERS = [MultiOutputPNClassifier, MultiOutputFMClassifier]
REGRESSORS = [MultiOutputPNRegressor, MultiOutputFMRegressor]
ESTIMATORS = CLASSIFIERS + REGRESSORS
LOSSES = ["logistic", "smoothed-hinge", "squared-hinge", "binary-logistic", "binary-squared-hinge", "squared"]

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 4))
# Three classes, how many of two quadratic conditions hold, with some noise in the labels.
HOLDING = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] ** 2 > 0.3)
Y_LABELS = np.array(["b", "c", "a"])[np.where(RNG.random(60) < 0.1, RNG.integers(0, 3, 60), HOLDING)]
Y_TWO = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(60) > 0, "yes", "no")
Y_INDICATOR = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 2] > 0.2, X[:, 3] ** 2 > 0.3]).astype(int)
Y_NUMBERS = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] ** 2 - 2.0, X @ [1.0, 2.0, 0.0, -1.0]])
Y_NUMBERS += 0.1 * RNG.standard_normal(Y_NUMBERS.shape)
# Centered, as the problem for X minus its mean is then that for X.
X -= X.mean(axis=0)


def default_y(cls):
    return Y_LABELS if cls in CLASSIFIERS else Y_NUMBERS


def raw(estimator, X=X):
    """Return the numbers behind the predictions."""
    return estimator.decision_function(X) if hasattr(estimator, "decision_function") else estimator.predict(X)


def few(cls, **options):
    """Return an estimator of few units, fast to fit."""
    return cls(**{"max_units": 3, "strength": mopn.Ratio(0.1), **options})


def as_given(cls, **options):
    """Return an estimator of few units whose objective is the model's for X as it is."""
    return few(cls, **{"scale": None, "ridge": 0.0, **options})


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_tags(cls):
    tags, classifies = get_tags(cls()), cls in CLASSIFIERS
    assert tags.input_tags.sparse
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert tags.target_tags.multi_output != classifies
    assert not (tags.classifier_tags if classifies else tags.regressor_tags).poor_score
    if classifies:
        assert tags.classifier_tags.multi_label
        assert tags.classifier_tags.multi_class
        assert not get_tags(cls(loss="smoothed-hinge")).classifier_tags.multi_label


# -- what is fitted ---------------------------------------------------------------------------------------------------


def check_objective(model, rows, y, loss, weights, norm="l1/l2", unit=1.0):
    """Check the objective at strength 0.7: y is a class's number, or a target for each output, in units (m,)."""
    outputs = raw(model, rows).reshape(len(rows), -1) / unit
    total = sum(w * loss_of_sample(loss, *pair) for w, *pair in zip(weights, y, outputs, strict=True))
    assert model.objective_ == pytest.approx(total + 0.7 * norm_of_rows(model.weights_ / unit, norm), rel=1e-10)


def relative_spreads(Y, weights=None):
    """Return the units of targets (n, m) whose losses add up: deviations, of a mean of 1."""
    spreads = np.sqrt(np.average((Y - np.average(Y, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    return spreads / spreads.mean()


@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_of_a_classifier_is_that_of_its_labels(loss, norm):
    weights = np.random.default_rng(1).integers(1, 4, 60)
    rows = X - np.average(X, axis=0, weights=weights)
    model = as_given(MultiOutputPNClassifier, loss=loss, norm=norm, strength=0.7).fit(rows, Y_LABELS, weights)
    assert_array_equal(model.classes_, ["a", "b", "c"])
    codes = np.searchsorted(model.classes_, Y_LABELS)
    check_objective(model, rows, codes if loss in LOSSES[:3] else 2.0 * np.eye(3)[codes] - 1.0, loss, weights, norm)
    assert model.basis_.shape == (len(model.weights_), 5)
    assert_allclose(np.linalg.norm(model.basis_, axis=1), 1.0)


SIGNS = np.where(Y_TWO == "yes", 1.0, -1.0)[:, None]
MEANINGS = {"logistic": "binary-logistic", "squared-hinge": "binary-squared-hinge"} | {
    name: name for name in LOSSES[3:]
}
# Two classes have a single output if the loss is one per output; indicators add up over their columns.
OBJECTIVES = [
    *((MultiOutputFMClassifier, Y_TWO, SIGNS, loss, loss) for loss in LOSSES[3:]),
    *((MultiOutputPNClassifier, Y_INDICATOR, 2.0 * Y_INDICATOR - 1.0, *losses) for losses in MEANINGS.items()),
    *((cls, Y_NUMBERS, Y_NUMBERS, "squared", "squared") for cls in REGRESSORS),
]


@pytest.mark.parametrize(("cls", "y", "targets", "loss", "meaning"), OBJECTIVES)
def test_the_objective_is_that_of_the_outputs(cls, y, targets, loss, meaning):
    model = as_given(cls, loss=loss, strength=0.7).fit(X, y)
    assert model.weights_.shape[1] == targets.shape[1]
    unit = relative_spreads(targets) if cls in REGRESSORS else np.ones(targets.shape[1])
    check_objective(model, X, targets / unit, meaning, np.ones(60), unit=unit)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_gap_and_trace_agree(cls):
    model = cls(norm="l1", strength=2.0, tol=1e-2).fit(X, default_y(cls))
    assert model.proof_ == "deterministic"
    assert model.status_ == Status.CONVERGED
    assert model.gap_ <= 1e-2 * model.objective_
    assert model.n_iter_ == len(model.trace_) - 1 >= 1
    assert model.trace_["fun"].min() == pytest.approx(model.objective_, rel=1e-12)
    assert model.validation_scores_ is None
    assert model.relative_gap_ == pytest.approx(model.gap_ / model.objective_)
    assert 0 <= model.estimated_gap_ <= model.gap_


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_the_gap_of_a_small_network_is_that_of_its_size(cls):
    """The weights are fitted to ``tol``: with these units nothing can be gained, with others much."""
    model = cls(strength=0.1, max_units=2, refit="output", tol=1e-6).fit(X, default_y(cls))
    assert len(model.basis_) == 2
    assert 0 <= model.restricted_gap_ <= 1e-2 * model.objective_ < 0.1 * model.gap_
    # A round adds one unit, and a refit takes several iterations.
    assert model.n_refit_iter_ > model.n_iter_ >= 2
    assert cls(strength=0.1, max_units=3, refit="none").fit(X, default_y(cls)).n_refit_iter_ == 0


def test_without_regularisation_there_is_no_certificate():
    model = few(MultiOutputPNRegressor, strength=0.0, tol=0.0).fit(X, Y_NUMBERS)
    assert (model.proof_, model.gap_) == ("none", np.inf)


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_too_few_units_for_all_outputs_are_told(cls):
    """Where outputs get none, unless they have a linear term; one of several classes needs none."""
    y, options = default_y(cls), {"norm": "l1", "strength": 1.0}
    with pytest.warns(UserWarning, match=r"max_units=1 is less than the 3 outputs, and 2 of them, such as number \d, "):
        model = cls(**options, max_units=1).fit(X, y)
    assert (~model.weights_.any(axis=0)).sum() == 2
    cls(**options, max_units=1, alpha=1.0).fit(X, y)
    cls(norm="l1/l2", strength=1.0, max_units=1).fit(X, y)
    cls(norm="l1", strength=1e6, max_units=3).fit(X, y)
    if cls in CLASSIFIERS:
        cls(**options, max_units=2).fit(X, y)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_strength_that_no_unit_is_worth_leaves_the_network_empty(cls):
    y = default_y(cls)
    with pytest.warns(UserWarning, match="no unit has an effect of X at strength=1e"):
        model = cls(strength=1e6).fit(X, y)
    assert model.basis_.shape[0] == 0
    assert model.n_iter_ == 1
    assert model.gap_ <= 1e-3 * model.objective_
    if cls in REGRESSORS:
        assert_allclose(model.predict(X), np.tile(y.mean(axis=0), (60, 1)))
    else:
        shares = np.unique(y, return_counts=True)[1] / 60
        assert_allclose(model.predict_proba(X), np.tile(shares, (60, 1)))


@pytest.mark.parametrize("second_order", [True, False])
def test_a_loss_of_ones_own(second_order):
    class Doubled(OfParent):
        name, parent, targets, factor = "doubled", Squared(), "numbers", 2.0

    class WithHessian(Doubled):
        def hessian(self, y, O):  # noqa: E741
            return Diagonal(np.full_like(O, 2.0))

    loss = WithHessian() if second_order else Doubled()
    assert loss.has_hessian == second_order
    Y = Y_NUMBERS / relative_spreads(Y_NUMBERS)
    doubled = few(MultiOutputPNRegressor, loss=loss, strength=2.0, max_units=3, refit="output").fit(X, Y)
    plain = few(MultiOutputPNRegressor, strength=1.0, max_units=3, refit="output").fit(X, Y)
    assert doubled.objective_ == pytest.approx(2 * plain.objective_, rel=1e-4 if second_order else 2e-2)
    assert not hasattr(MultiOutputPNClassifier(loss=Doubled()), "predict_proba")


# -- kinds of X -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, list])
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_storage_does_not_matter(cls, norm, form):
    """Sums in another order, as other storage and other processors have them, change the last digits alone."""
    # Rounding may lead refits of both layers, which are not convex, to another optimum.
    estimator = few(cls, norm=norm, refit="output")
    some = np.where(np.abs(X) > 0.5, X, 0.0)
    y = default_y(cls)
    dense, other = (clone(estimator).fit(samples, y) for samples in (some, form(some)))
    assert other.objective_ == pytest.approx(dense.objective_, rel=1e-12)
    assert_allclose(raw(other, form(some)), raw(dense, some), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csc_array])
def test_float32_is_kept(monkeypatch, form):
    kept = []

    class Recording(mopn.NetworkProblem):
        def __init__(self, X, *args, **options):
            kept.append(X.dtype)
            super().__init__(X, *args, **options)

    monkeypatch.setattr(network_fit, "NetworkProblem", Recording)
    single = X.astype(np.float32)
    a = few(MultiOutputPNRegressor, max_units=3).fit(form(single), Y_NUMBERS)
    b = few(MultiOutputPNRegressor, max_units=3).fit(form(single.astype(np.float64)), Y_NUMBERS)
    assert kept == [np.float32, np.float64]
    assert_allclose(a.predict(form(single)), b.predict(form(single)), rtol=1e-5, atol=1e-6)


# -- kinds of y -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes(loss):
    model = few(MultiOutputPNClassifier, loss=loss).fit(X, Y_TWO)
    decision = model.decision_function(X)
    assert decision.shape == (60,)
    assert_array_equal(model.predict(X), np.where(decision > 0, "yes", "no"))
    assert model.score(X, Y_TWO) > 0.6
    if hasattr(model, "predict_proba"):
        assert_allclose(model.predict_proba(X), np.column_stack([expit(-decision), expit(decision)]))


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_several_classes(cls):
    model = few(cls).fit(X, Y_LABELS)
    decision = model.decision_function(X)
    assert decision.shape == (60, 3)
    assert_array_equal(model.predict(X), model.classes_[decision.argmax(axis=1)])
    assert_allclose(model.predict_proba(X), softmax(decision, axis=1))
    rest = few(cls, loss="binary-logistic").fit(X, Y_LABELS)
    probabilities = expit(rest.decision_function(X))
    assert_allclose(rest.predict_proba(X), probabilities / probabilities.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, np.ndarray.tolist])
@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", *LOSSES[3:]])
def test_an_indicator_matrix(loss, form):
    model = few(MultiOutputPNClassifier, loss=loss, max_units=5).fit(X, form(Y_INDICATOR))
    assert_array_equal(model.classes_, np.arange(3))
    decision = model.decision_function(X)
    prediction = model.predict(X)
    assert_array_equal(prediction, decision > 0)
    assert prediction.dtype.kind == "i"
    assert (prediction == Y_INDICATOR).mean() > 0.75
    if hasattr(model, "predict_proba"):
        assert_allclose(model.predict_proba(X), expit(decision))


@pytest.mark.parametrize("kind", ["indicator", "one against the rest", "targets"])
@pytest.mark.parametrize("pn", [True, False])
def test_l1_makes_the_outputs_independent_problems(pn, kind):
    cls = (REGRESSORS if kind == "targets" else CLASSIFIERS)[0 if pn else 1]
    options = {"norm": "l1", "strength": 0.5, "max_units": None, "tol": 1e-2}
    if cls in CLASSIFIERS:
        options["loss"] = "binary-logistic"
    labels = np.column_stack([label == Y_LABELS for label in "abc"]).astype(int)
    targets = Y_NUMBERS / relative_spreads(Y_NUMBERS)
    Y = {"indicator": Y_INDICATOR, "one against the rest": labels, "targets": targets}[kind]
    joint = cls(**options).fit(X, Y_LABELS if kind == "one against the rest" else Y)
    single = [cls(**options).fit(X, column) for column in Y.T]
    assert joint.proof_ == "deterministic"
    # Both are within their proven gaps of the same minimum.
    total = sum(model.objective_ for model in single)
    assert total - sum(model.gap_ for model in single) <= joint.objective_
    assert joint.objective_ - joint.gap_ <= total
    assert joint.gap_ <= 1e-2 * joint.objective_


@pytest.mark.parametrize("cls", REGRESSORS)
def test_shapes_of_targets(cls):
    vector = few(cls, strength=0.01).fit(X, Y_NUMBERS[:, 0])
    column = few(cls, strength=0.01).fit(X, Y_NUMBERS[:, :1])
    assert vector.predict(X).shape == (60,)
    assert column.predict(X).shape == (60, 1)
    assert_array_equal(column.predict(X)[:, 0], vector.predict(X))
    several = few(cls, strength=0.01, max_units=12).fit(X, Y_NUMBERS)
    assert several.predict(X).shape == (60, 3)
    assert several.score(X, Y_NUMBERS) > 0.5


@pytest.mark.parametrize("cls", REGRESSORS)
def test_a_constant_added_to_y_is_added_to_the_predictions(cls):
    shift = np.array([1.0, -50.0, 8.0])
    model = few(cls, max_units=3, refit="output").fit(X, Y_NUMBERS)
    shifted = few(cls, max_units=3, refit="output").fit(X, Y_NUMBERS + shift)
    assert_allclose(shifted.predict(X), model.predict(X) + shift, atol=1e-5)


# -- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize("cls", REGRESSORS)
def test_the_mean_is_weighted(cls):
    weights = np.random.default_rng(1).uniform(0, 3, 60)
    model = cls(strength=1e6).fit(X, Y_NUMBERS, weights)
    assert_allclose(model.predict(X[:1])[0], weights @ Y_NUMBERS / weights.sum())


@pytest.mark.slow
def test_the_oracle_of_an_estimator_is_that_of_its_solver():
    y = default_y(MultiOutputPNClassifier)
    # Without a limit of units the aim is a proof, and the last one is random.
    probable = few(MultiOutputPNClassifier, norm="l1/linf", oracle="lanczos", max_units=None).fit(X, y)
    assert probable.proof_.startswith("probability")
    with pytest.raises(ValueError, match="oracle must be one of"):
        MultiOutputPNClassifier(oracle="best").fit(X, y)


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.slow
def test_large_data_are_not_merged_but_the_objective_is_the_same(monkeypatch, cls):
    y = default_y(cls)
    twice = np.tile(np.arange(60), 2)
    merged = few(cls, max_units=3, refit=FullRefit(polish_tol=1e-8)).fit(X[twice], y[twice])
    monkeypatch.setattr(targets, "MERGE_LIMIT", 10)
    direct = few(cls, max_units=3, refit=FullRefit(polish_tol=1e-8)).fit(X[twice], y[twice])
    assert direct.objective_ == pytest.approx(merged.objective_, rel=1e-6)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csc_array])
def test_equal_samples_with_different_targets_stay_apart(form):
    rows = form(np.array([[1.0, 0.0], [0.5, -1.0], [1.0, 0.0], [1.0, 0.0]]))
    y = np.array([1.0, 2.0, 3.0, 1.0])
    merged_X, merged = targets.merge_equal_samples(rows, targets.Targets(y, y, Squared(), "vector"))
    dense = merged_X.toarray() if sparse.issparse(merged_X) else merged_X
    found = {(*row, value): weight for row, value, weight in zip(dense, merged.y, merged.weights, strict=True)}
    assert found == {(1.0, 0.0, 1.0): 2.0, (0.5, -1.0, 2.0): 1.0, (1.0, 0.0, 3.0): 1.0}


@pytest.mark.parametrize(
    "X",
    [
        np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 0.0]]),
        sparse.csr_array((np.array([0.0, 1.0, -0.0, 1.0, 2.0, 3.0]), [0, 1, 0, 1, 0, 1], [0, 2, 4, 6])),
        sparse.csr_array((np.array([0.0, 1.0, -0.0, 1.0, 2.0]), [0, 1, 0, 1, 0], [0, 2, 4, 5])),
    ],
    ids=["dense", "rows of equal length", "rows of other lengths"],
)
def test_zeros_of_either_sign_are_equal(X):
    """Rounded data have both, and the values alone tell the order of the samples and which are copies."""
    y = np.array([1.0, 1.0, 2.0])
    _, merged = targets.merge_equal_samples(X, targets.Targets(y, y, Squared(), "vector"))
    assert_array_equal(np.sort(merged.weights), [1.0, 2.0])


def test_a_sparse_matrix_stored_in_parts_is_merged_as_its_sum():
    parts = sparse.csr_array((np.ones(4), np.array([1, 0, 0, 0]), np.array([0, 2, 4])), shape=(2, 2))
    whole = sparse.csr_array(np.array([[1.0, 1.0], [2.0, 0.0]]))
    y = np.array([0.0, 1.0, 0.0, 1.0])
    both = sparse.csr_array(
        (np.append(parts.data, whole.data), np.append(parts.indices, whole.indices), np.array([0, 2, 4, 6, 7])),
        shape=(4, 2),
    )
    merged_X, merged = targets.merge_equal_samples(both, targets.Targets(y, y, Squared(), "vector"))
    assert_array_equal(merged.weights, [2.0, 2.0])
    assert sorted(map(tuple, merged_X.toarray())) == [(1.0, 1.0), (2.0, 0.0)]
    assert both.nnz == 7


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_the_order_of_samples_is_not_that_of_their_last_digits(form):
    rows = np.random.default_rng(0).integers(1, 9, (40, 6)) / 10.0
    y = np.arange(40.0)
    noise = 1.0 + 1e-13 * np.random.default_rng(1).standard_normal(rows.shape)
    orders = [
        targets.merge_equal_samples(form(X), targets.Targets(y, y, Squared(), "vector"))[1].y
        for X in (rows, rows * noise)
    ]
    assert_array_equal(*orders)


def test_a_class_whose_samples_weigh_nothing_does_not_exist():
    """One whose class weight is 0 stays, but is not predicted."""
    model = few(MultiOutputPNClassifier).fit(X, Y_LABELS, (Y_LABELS != "b").astype(float))
    assert_array_equal(model.classes_, ["a", "c"])
    assert model.decision_function(X).shape == (60,)
    model = few(MultiOutputPNClassifier, class_weight={"a": 1.0, "b": 0.0, "c": 1.0}).fit(X, Y_LABELS)
    assert_array_equal(model.classes_, ["a", "b", "c"])
    assert set(model.predict(X)) == {"a", "c"}


@pytest.mark.parametrize("class_weight", [{"a": 2.0, "b": 0.3, "c": 5.0}, "balanced"])
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_class_weights_are_sample_weights(cls, class_weight):
    """Balanced classes weigh the same."""
    weights = np.random.default_rng(1).integers(1, 3, 60)
    counts = {label: weights[label == Y_LABELS].sum() for label in "abc"}
    balanced = {label: weights.sum() / (3 * count) for label, count in counts.items()}
    factors = balanced if class_weight == "balanced" else class_weight
    by_class = few(cls, class_weight=class_weight).fit(X, Y_LABELS, weights)
    by_sample = few(cls).fit(X, Y_LABELS, weights * np.array([factors[label] for label in Y_LABELS]))
    assert_allclose(raw(by_class), raw(by_sample), rtol=1e-9, atol=1e-9)


# -- validation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "y", "form"),
    [
        (MultiOutputPNClassifier, Y_LABELS, np.asarray),
        (MultiOutputFMClassifier, Y_TWO, sparse.csr_array),
        (MultiOutputPNClassifier, Y_INDICATOR, np.asarray),
        (MultiOutputFMRegressor, Y_NUMBERS, np.asarray),
        (MultiOutputPNRegressor, Y_NUMBERS[:, 0], sparse.csr_array),
        (OrdinalFMRegressor, HOLDING, np.asarray),
    ],
)
def test_validation_keeps_the_network_that_is_best_on_the_held_out_part(cls, y, form, monkeypatch):
    seen = []
    watch(monkeypatch, lambda intermediate_result: seen.append(intermediate_result))
    monkeypatch.setattr(cls, "_policy", replace(cls._policy, patience=4))
    options = {"strength": 0.01, "fit_intercept": False, "scale": None, "max_units": 25}
    weights = np.random.default_rng(1).integers(1, 3, 60)
    train, held_out = np.arange(42), np.arange(42, 60)
    given = {"X_val": form(X[held_out]), "y_val": y[held_out], "sample_weight_val": weights[held_out]}
    model = cls(**options).fit(form(X[train]), y[train], weights[train], **given)
    scores = model.validation_scores_
    assert len(scores) == len(seen) == len(model.trace_)
    best = 1 + np.argmax(scores[1:])
    assert_array_equal(model.basis_, seen[best].basis)
    unit = relative_spreads(y[train], weights[train]) if y is Y_NUMBERS else 1.0
    assert_allclose(model.weights_, seen[best].weights * unit, rtol=1e-12)
    if model.status_ == Status.STOPPED:
        assert len(scores) - 1 - best == 4
    else:
        assert len(scores) - 1 - best < 4
    assert model.score(X[held_out], y[held_out], weights[held_out]) == pytest.approx(scores[best])
    # The gap is for the network kept, on the training part, whose minimum no network of the trace undercuts.
    assert model.objective_ - model.gap_ <= model.trace_["fun"].min()
    assert model.trace_["fun"][best] == pytest.approx(model.objective_)
    # A bound that a later round proved holds for these units, too.
    assert model.restricted_gap_ == pytest.approx(min(model.trace_["restricted_gap"][best], model.gap_), rel=1e-6)


@pytest.mark.parametrize(
    ("cls", "y"),
    [(MultiOutputPNClassifier, Y_LABELS), (MultiOutputPNRegressor, Y_NUMBERS), (OrdinalFMRegressor, HOLDING)],
)
def test_the_training_does_not_see_the_held_out_samples(cls, y):
    own = ({"X_val": X[rows], "y_val": y[rows]} for rows in (slice(40, 50), slice(50, 60)))
    assert_array_equal(*(few(cls, refit="output").fit(X[:40], y[:40], **given).trace_["fun"] for given in own))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"X_val": X}, "y_val is missing: X_val and y_val go together"),
        ({"y_val": Y_LABELS}, "X_val is missing: X_val and y_val go together"),
        ({"X_val": X[:, :2], "y_val": Y_LABELS}, "features"),
        ({"X_val": X, "y_val": np.full(60, "other")}, "y_val has the label 'other', which is not among the classes"),
        ({"X_val": X, "y_val": Y_INDICATOR}, "y_val must be like y"),
    ],
)
def test_errors_of_samples_to_validate_on(own, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MultiOutputPNClassifier().fit(X, Y_LABELS, **own)


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
def test_an_empty_network_is_kept_only_if_there_is_no_other():
    # Labels are noise, and the first class is frequent: the empty network, which predicts it, often scores best.
    y = np.where(np.random.default_rng(1).random(60) < 0.8, 0, 1)
    parts = {"X": X[:30], "y": y[:30], "X_val": X[30:], "y_val": y[30:]}
    model = few(MultiOutputPNClassifier).fit(**parts)
    assert len(model.basis_) > 0
    empty = few(MultiOutputPNClassifier, strength=1e6).fit(**parts)
    assert len(empty.basis_) == 0


# -- warm start -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_warm_start_ends_where_a_cold_start_does(cls):
    options = {"norm": "l1", "strength": 2.0, "max_units": None, "tol": 1e-2}
    y = default_y(cls)
    cold = cls(**options).fit(X, y)
    warm = cls(**options, warm_start=True).set_params(max_units=3).fit(X, y)
    first = warm.objective_
    warm.set_params(max_units=None).fit(X, y)
    assert warm.trace_["fun"][0] == pytest.approx(first, rel=1e-12)
    assert warm.status_ == cold.status_ == Status.CONVERGED
    assert warm.objective_ - warm.gap_ <= cold.objective_ <= warm.objective_ + cold.gap_
    warm.fit(X, y)
    assert warm.n_iter_ == 1


@pytest.mark.parametrize("alpha", [None, 1.0])
@pytest.mark.parametrize("cls", REGRESSORS)
def test_a_warm_start_predicts_as_the_model_before_whatever_the_mean_of_the_targets(cls, alpha):
    """With more samples, which are far out: the fit ends at its start, as any gap will do."""
    order = np.argsort(-np.linalg.norm(Y_NUMBERS, axis=1))
    warm = few(cls, norm="l1", strength=0.2, max_units=None, tol=1e-2, alpha=alpha, warm_start=True)
    warm.fit(X[order[2:]], Y_NUMBERS[order[2:]])
    before, units = warm.predict(X), len(warm.basis_)
    for rows in (order[1:], order):
        warm.set_params(tol=1e3).fit(X[rows], Y_NUMBERS[rows])
        assert_allclose(warm.predict(X), before, rtol=1e-9, atol=1e-9)
    assert len(warm.basis_) <= units + (alpha is None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: model.fit(X[:, :3], Y_LABELS), "X has 3 features, but MultiOutputPNClassifier is expecting 4"),
        (
            lambda model: model.fit(X, Y_TWO),
            "5 inputs .* and 3 outputs, but this fit has 5 and 2; set warm_start=False",
        ),
        (lambda model: model.fit(X, np.char.upper(Y_LABELS)), "for the classes .*'a'.* but this fit has .*'A'"),
        (lambda model: model.set_params(fit_intercept=False).fit(X, Y_LABELS), "5 inputs .* but this fit has 4 and 3"),
    ],
)
def test_a_warm_start_from_another_shape_is_refused_and_the_model_is_kept(change, message):
    model = few(MultiOutputPNClassifier, warm_start=True).fit(X, Y_LABELS)
    before = raw(model)
    with pytest.raises((TypeError, ValueError), match=message):
        change(model)
    assert_array_equal(raw(model), before)
    assert model.n_features_in_ == 4


# -- the end of a fit -------------------------------------------------------------------------------------------------


def watch(monkeypatch, own):
    """Let the fits of networks call a function of one's own after every round."""

    def minimize(*problem, callback, **options):
        def both(intermediate_result):
            own(intermediate_result)
            if callback is not None:
                callback(intermediate_result)

        return mopn.minimize(*problem, callback=both, **options)

    monkeypatch.setattr(network_estimator, "minimize", minimize)


def after(rounds, act):
    """Return a callback that does something once, after some rounds."""

    def callback(intermediate_result):
        if intermediate_result.nit == rounds:
            act()

    return callback


def fail(error):
    raise error


@pytest.mark.parametrize("held_out", [0, 18])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_the_best_network_is_kept_when_a_callback_fails(cls, held_out, monkeypatch):
    y = default_y(cls)
    problem = RuntimeError("the plot window is gone")
    watch(monkeypatch, after(3, lambda: fail(problem)))
    model, n = cls(refit="output"), 60 - held_out
    given = {"X_val": X[n:], "y_val": y[n:]} if held_out else {}
    with pytest.raises(RuntimeError, match="the plot window is gone") as raised:
        model.fit(X[:n], y[:n], **given)
    assert raised.value is problem
    assert len(model.trace_) == 4
    assert model.status_ == Status.CALLBACK_FAILED
    assert 1 <= len(model.basis_) <= 3
    assert np.isfinite(raw(model)).all()


@pytest.fixture
def sigint():
    """Python's own handler, which a test run started in the background lacks."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("act", [lambda: signal.raise_signal(signal.SIGINT), lambda: fail(KeyboardInterrupt())])
def test_the_best_network_is_kept_on_ctrl_c(act, sigint, monkeypatch):
    watch(monkeypatch, after(3, act))
    model = MultiOutputPNClassifier(refit="output")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y_LABELS)
    assert model.status_ == Status.INTERRUPTED
    watch(monkeypatch, after(3, lambda: fail(StopIteration())))
    reference = MultiOutputPNClassifier(refit="output").fit(X, Y_LABELS)
    assert reference.status_ == Status.STOPPED
    assert_array_equal(raw(model), raw(reference))


def test_too_few_rounds_are_worth_a_warning(monkeypatch):
    monkeypatch.setattr(MultiOutputPNClassifier, "_policy", replace(MultiOutputPNClassifier._policy, max_rounds=2))
    with pytest.warns(ConvergenceWarning, match=r"done; raise max_iter.* the gap .* \(at most .* with these units"):
        model = MultiOutputPNClassifier(refit="output").fit(X, Y_LABELS)
    assert model.status_ == Status.MAX_ITER
    assert model.n_iter_ == 2


class Breaking(OfParent):
    """A loss that breaks after some evaluations, more than its check takes."""

    parent, targets = Squared(), "numbers"

    def __init__(self, calls, act):
        self.left, self.act = calls, act

    def value_gradient(self, y, O):  # noqa: E741
        self.left -= 1
        value, gradient = super().value_gradient(y, O)
        return (self.act(self.left, value), gradient) if self.left < 0 and O.any() else (value, gradient)


def no_number(left, value):
    return value * np.nan


def no_convergence(left, value):
    return fail(np.linalg.LinAlgError("no convergence")) if left == -1 else value


@pytest.mark.parametrize(
    ("act", "status", "message"),
    [
        (no_number, Status.NONFINITE, "became infinite or NaN"),
        (no_convergence, Status.FAILED, r"numerical routine failed.*no convergence"),
    ],
)
def test_a_loss_that_breaks_is_worth_a_warning(act, status, message):
    with pytest.warns(ConvergenceWarning, match=message):
        model = MultiOutputPNRegressor(loss=Breaking(100, act), tol=1e-9).fit(X, Y_NUMBERS)
    assert model.status_ == status


# -- errors -----------------------------------------------------------------------------------------------------------


def with_entry(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (with_entry(np.nan), ValueError, "contains NaN; TableClassifier .* take missing values"),
        (X[:59], ValueError, "inconsistent numbers of samples"),
        (np.full((60, 2), "red"), TypeError, "X must be numeric.*could not convert string to float.*TableClassifier"),
        (None, ValueError, "Expected 2D array, got scalar array"),
    ],
)
def test_errors_of_x(bad, error, message):
    with pytest.raises(error, match=message):
        few(MultiOutputPNClassifier).fit(bad, Y_LABELS)


def with_index(X, index):
    """A sparse matrix whose first index is another one."""
    X = X.copy()
    (X.coords[1] if X.format == "coo" else X.indices)[0] = index
    return X


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        few(MultiOutputPNClassifier),
        PathCV(few(MultiOutputPNClassifier), max_units=2, strengths=(1.0, 0.1), cv=2),
        OrdinalFMRegressor(max_units=1),
        FactorizationMachineRegressor(max_iter=1),
    ],
)
def test_malformed_sparse_matrices_are_refused_before_they_are_converted(estimator):
    estimator.fit(X, HOLDING)
    for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        for call in (lambda X: estimator.fit(X, HOLDING), estimator.predict):
            with pytest.raises(ValueError, match=f"X is not a valid {form.__name__[:3].upper()} matrix"):
                call(with_index(form(X), 10**6))
    if isinstance(estimator, MultiOutputPNClassifier):
        with pytest.raises(ValueError, match="y is not a valid CSR matrix"):
            estimator.fit(X, with_index(sparse.csr_array(Y_INDICATOR), -(10**6)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "squared-l2"}, "makes no unit zero"),
        ({"strength": 0.0, "ridge": 0.0}, "a strength of 0.*no certificate exists"),
    ],
)
def test_errors_of_parameters(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        few(MultiOutputPNClassifier, **options).fit(X, Y_LABELS)


REFUSED_Y = [
    (np.ones(60), {}, r"y has one class only \(1.0\); classification needs at least 2"),
    (Y_LABELS[:-1], {}, "inconsistent numbers of samples"),
    (Y_NUMBERS[:, 0], {}, "Unknown label type: continuous"),
    (np.tile([0.0, np.nan], 30), {}, "y has missing labels"),
    (np.tile([[0, 1, 2]], (60, 1)), {}, r"labels \(n,\) or an indicator matrix .* got shape \(60, 3\)"),
    (3 * Y_INDICATOR, {}, r"an indicator matrix y must hold 0 and 1 only, got \[0 3\]"),
    (
        Y_INDICATOR,
        {"loss": "smoothed-hinge"},
        "loss='smoothed-hinge' compares classes.*use 'logistic', 'squared-hinge'",
    ),
    (Y_INDICATOR, {"class_weight": "balanced"}, "class_weight is for labels"),
    (Y_LABELS, {"class_weight": "even"}, "class_weight must be a dict, 'balanced' or None, got 'even'"),
    (Y_LABELS, {"class_weight": {"a": -1.0, "b": 1.0, "c": 1.0}}, "class_weight must hold finite weights >= 0"),
    (Y_LABELS, {"class_weight": {"a": 0.0, "b": 0.0, "c": 0.0}}, "not all 0"),
    (Y_LABELS, {"class_weight": {"x": 1.0, "y": 1.0}}, "not in class_weight|class_weight"),
]
REFUSED_NUMBERS = [
    (np.full(60, np.inf), {}, "contains infinity"),
    (Y_NUMBERS[:, :0], {}, "0 feature|shape"),
    (["red"] * 60, {}, "y holds texts such as 'red': MultiOutputPNClassifier takes them as classes"),
    *((Y_NUMBERS, {"loss": loss}, f"loss must be one of 'squared', .* got '{loss}'") for loss in LOSSES[:4]),
]


@pytest.mark.parametrize(
    ("cls", "y", "options", "message"),
    [(MultiOutputPNClassifier, *case) for case in REFUSED_Y]
    + [(MultiOutputPNRegressor, *case) for case in REFUSED_NUMBERS],
)
def test_errors_of_y(cls, y, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        few(cls, **options).fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(60), "sample_weight is zero for all samples"),
        (np.ones((60, 2)), r"sample_weight must have shape \(60,\)"),
        (-np.ones(60), "sample_weight must be finite and >= 0"),
        (np.eye(60)[0], "at least 2 samples of positive weight"),
    ],
)
def test_errors_of_weights(weights, message):
    with pytest.raises((TypeError, ValueError), match=message):
        few(MultiOutputPNRegressor).fit(X, Y_NUMBERS, weights)


@pytest.mark.parametrize("write", [mopn.export.to_onnx, lambda estimator: estimator.save("nowhere/model")])
def test_only_what_is_fitted_is_written(write):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        write(MultiOutputPNClassifier())


def test_estimators_write_what_their_models_write(tmp_path):
    classifier = few(MultiOutputPNClassifier).fit(X, Y_LABELS)
    for number, source in enumerate((classifier, classifier.model_)):
        source.save(tmp_path / f"model{number}")
        mopn.export.to_c(source, tmp_path / f"header{number}", name="own", dtype="float64")
    for name in ("model", "header"):
        assert (tmp_path / f"{name}0").read_bytes() == (tmp_path / f"{name}1").read_bytes()
    pytest.importorskip("onnx")
    assert mopn.export.to_onnx(classifier, dtype="float64") == mopn.export.to_onnx(classifier.model_, dtype="float64")


@pytest.mark.parametrize("loss", ["smoothed-hinge", "squared-hinge", "binary-squared-hinge", "squared"])
def test_probabilities_exist_for_probability_models_only(loss):
    model = few(MultiOutputPNClassifier, loss=loss).fit(X, Y_LABELS)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as refused:
        _ = model.predict_proba
    assert f"loss='{loss}' is not a probability model; for predict_proba use" in str(refused.value.__cause__)


# -- together with others ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_the_documentation_covers_every_attribute(cls):
    frame, y = pd.DataFrame(X, columns=list("abcd")), default_y(cls)
    model = few(cls).fit(frame, y, X_val=frame, y_val=y)
    attributes = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in attributes:
        declared = any(name in vars(kind).get("__annotations__", ()) for kind in cls.__mro__)
        assert declared or re.search(rf"^ *(\w+, )*{name}(, \w+)* : ", cls.__doc__, re.MULTILINE), name


# -- fits that once failed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_units", [4, 15, 50])
@pytest.mark.parametrize("rare", [0.05, 0.15])
@pytest.mark.slow
def test_a_rare_class_is_found(rare, max_units):
    """With one sign a unit the first ones all point to the frequent class; the others must still have room."""
    data = np.random.default_rng(0).uniform(-1, 1, (400, 6))
    signal = data[:, 0] * data[:, 1] + data[:, 2] ** 2
    y = signal > np.quantile(signal, 1.0 - rare)
    full, output = (
        MultiOutputPNClassifier(strength=0.05, max_units=max_units, refit=refit).fit(data, y)
        for refit in ("full", "output")
    )
    assert full.score(data, y) > 0.99
    assert full.objective_ <= 1.01 * output.objective_


@pytest.mark.parametrize("strength", [1e-6, 1e-12])
def test_tiny_strengths_fit(strength):
    signal = X[:, 0] * X[:, 1] + X[:, 2] ** 2
    assert MultiOutputPNRegressor(strength=strength, max_units=8).fit(X, signal).score(X, signal) > 0.999


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4])
def test_the_unit_of_the_targets_does_not_matter(scale):
    signal = X[:, 0] * X[:, 1] + X[:, 2] ** 2
    plain = MultiOutputPNRegressor(strength=0.01, max_units=8).fit(X, signal)
    scaled = MultiOutputPNRegressor(strength=0.01 * scale, max_units=8).fit(X, scale * signal)
    assert scaled.objective_ == pytest.approx(scale**2 * plain.objective_, rel=2e-3)


# -- few units, whose refits end in poor local minima unless more units enter for a while -----------------------------


@pytest.mark.parametrize("seed", [3, 6, 8])
@pytest.mark.slow
def test_five_units_find_the_five_forms_that_made_the_classes(seed):
    """Exchanges of one unit alone end at half of the accuracy."""
    rng, H = np.random.default_rng(10 + seed), np.random.default_rng(1000 + seed).standard_normal((20, 5))
    X = rng.uniform(-1.0, 1.0, (13_000, 20)).astype(np.float32)
    made = np.argmax((X @ H) ** 2, axis=1)
    y = np.where(rng.random(len(X)) < 0.1, rng.integers(5, size=len(X)), made)
    classifier = MultiOutputPNClassifier(max_units=5, random_state=seed).fit(X, y)
    assert len(classifier.basis_) == 5
    assert classifier.score(X, y) > np.mean(made == y) - 0.05


@pytest.mark.parametrize(
    ("norm", "units", "shape", "seed"),
    [
        ("l1", 3, (80, 4), 2),
        pytest.param("l1/l2", 10, (150, 8), 4, marks=pytest.mark.slow),
        pytest.param("l1/linf", 3, (120, 5), 1, marks=pytest.mark.slow),
    ],
)
def test_rounding_errors_do_not_choose_the_minimum(norm, units, shape, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    made = np.argmax((X @ rng.standard_normal((shape[1], 4))) ** 2, axis=1)
    y = np.where(rng.random(len(X)) < 0.3, rng.integers(4, size=len(X)), made)
    noise = 1.0 + 1e-13 * rng.standard_normal((4, *X.shape))
    found = [MultiOutputPNClassifier(max_units=units, norm=norm).fit(X * draw, y).objective_ for draw in noise]
    assert max(found) <= (1.0 + 1e-6) * min(found)

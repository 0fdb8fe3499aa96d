"""Levels and units of targets, the constants around which estimators fit, and statuses that are true of the model."""

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

import mopn
from mopn.estimators import (
    MultiOutputFMClassifier,
    MultiOutputFMRegressor,
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    OrdinalFMRegressor,
    TableClassifier,
    TableRegressor,
)
from mopn.losses.losses import LOSSES
from mopn.solvers import Status

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (90, 3))
Y = np.column_stack([X[:, 0] * X[:, 1], X[:, 2], X[:, 0] ** 2 + X[:, 1]]) + 0.05 * RNG.standard_normal((90, 3))
Y /= Y.std(axis=0)
REGRESSORS = [MultiOutputPNRegressor, MultiOutputFMRegressor, TableRegressor]


def fitted(cls, y, loss="squared"):
    return cls(loss=loss, strength=mopn.Ratio(0.01), max_units=40, tol=1e-3).fit(X, y)


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
@pytest.mark.parametrize(
    ("units", "levels"),
    [([1e6, 1.0, 1e-3], [0.0, 0.0, 0.0]), ([1.0, 1.0, 1.0], [1e9, -1e9, 5.0]), ([1e-6, 10.0, 1e8], [-3.0, 1e6, 1e12])],
)
def test_targets_weigh_alike_whatever_their_units_and_levels(cls, loss, units, levels):
    plain = fitted(cls, Y, loss).predict(X)
    other = (fitted(cls, Y * units + levels, loss).predict(X) - levels) / units
    # Fits end within their tolerance of the minimum, by paths that rounding errors separate.
    assert np.abs(other - plain).max() < 0.05


@pytest.mark.parametrize("cls", REGRESSORS)
def test_a_constant_target_is_no_reason_to_change_the_others(cls):
    with_constant = fitted(cls, np.column_stack([Y, np.full(90, 7.0)])).predict(X)
    np.testing.assert_allclose(with_constant[:, 3], 7.0, atol=0.05)
    assert np.abs(with_constant[:, :3] - fitted(cls, Y).predict(X)).max() < 0.05


@pytest.mark.parametrize("level", [0.0, 1e6, 3e12, -1e15])
@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_gap_of_the_model_as_returned_holds_in_forty_digits(level, m, loss):
    """The exact objective of the model, of targets of any level, is above the lower bound of a plain problem."""
    y = Y[:30, :m] + level
    regressor = MultiOutputPNRegressor(
        norm="l1", loss=loss, strength=0.3, max_units=6, fit_intercept=False, scale=None
    ).fit(X[:30], y)
    with mpmath.workdps(40):
        shifts = [mpmath.mpf(float(at)) for at in regressor.model_.offset]
        spreads = [mpmath.mpf(float(s)) for s in regressor.problem(X[:30], y).user_y.unit]
        total = mpmath.mpf(0)
        delta = None if loss == "squared" else mpmath.mpf(float(regressor.loss_.delta))
        for x, targets in zip(X[:30], y, strict=True):
            for c in range(m):
                output = sum(
                    mpmath.mpf(float(v[c]))
                    * mpmath.fdot(map(mpmath.mpf, map(float, h)), map(mpmath.mpf, map(float, x))) ** 2
                    for h, v in zip(regressor.basis_, regressor.weights_, strict=True)
                )
                residual = (shifts[c] + output - mpmath.mpf(float(targets[c]))) / spreads[c]
                size = abs(residual)
                inside = delta is None or size <= delta
                total += size**2 / 2 if inside else delta * size - delta**2 / 2
        total += sum(
            mpmath.mpf(0.3)
            * abs(mpmath.mpf(float(v[c])) / spreads[c])
            * mpmath.fsum(mpmath.mpf(float(t)) ** 2 for t in h)
            for h, v in zip(regressor.basis_, regressor.weights_, strict=True)
            for c in range(m)
        )
    assert total <= regressor.objective_ + regressor.gap_
    assert total >= regressor.objective_ - regressor.gap_
    assert regressor.relative_gap_ < 0.05


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_constants_minimise_the_losses(name, weighted):
    loss = LOSSES[name]
    y = {
        "labels": np.repeat([0, 1, 2], [30, 8, 2]),
        "signs": np.where(RNG.random((40, 2)) < [0.9, 0.4], 1.0, -1.0),
        "counts": RNG.poisson([0.5, 4.0], (40, 2)).astype(float),
        "numbers": RNG.standard_normal((40, 2)),
    }[loss.targets]
    weights = RNG.uniform(0.5, 2.0, 40) if weighted else None
    found = loss.constant(y, weights)
    counted = np.ones(40) if weights is None else weights

    def total(constant):
        return float(counted @ loss.value(y, np.tile(constant, (40, 1))))

    best = minimize(total, found, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}).fun
    assert total(found) <= best + 1e-8 * abs(best)


LABELS = np.where(RNG.random(90) < 0.8, "often", "seldom")
LABELS[:6] = "third"


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize("cls", [MultiOutputPNClassifier, MultiOutputFMClassifier, TableClassifier])
@pytest.mark.parametrize("loss", ["logistic", "binary-logistic", "smoothed-hinge", "squared-hinge", "squared"])
def test_without_units_classes_have_their_frequencies(cls, loss):
    weights = RNG.uniform(0.5, 2.0, 90)
    classifier = cls(loss=loss, strength=1e9).fit(X, LABELS, weights)
    assert (classifier.predict(X) == "often").all()
    if hasattr(classifier, "predict_proba"):
        shares = [weights @ (label == LABELS) / weights.sum() for label in classifier.classes_]
        np.testing.assert_allclose(classifier.predict_proba(X)[0], shares, rtol=1e-6)


CASES = [
    (MultiOutputPNClassifier, LABELS, {}),
    (MultiOutputPNClassifier, LABELS, {"norm": "l1/linf"}),
    (MultiOutputPNClassifier, LABELS, {"norm": "l1/l2", "max_units": 3}),
    (MultiOutputFMClassifier, LABELS, {"loss": "binary-logistic"}),
    (MultiOutputPNRegressor, Y, {}),
    (MultiOutputFMRegressor, Y[:, 0], {"loss": "huber"}),
    (OrdinalFMRegressor, np.digitize(Y[:, 0], [-0.5, 0.5]).astype(float), {}),
    (TableClassifier, LABELS, {"prove": False}),
    (TableClassifier, LABELS, {"norm": "l1/linf", "prove": False}),
    (TableRegressor, Y[:, 1], {"prove": False, "strength": mopn.Ratio(0.03)}),
    (TableRegressor, Y, {}),
]


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize(("cls", "y", "options"), CASES)
@pytest.mark.parametrize("tol", [0.01, 1e-3])
@pytest.mark.parametrize("validates", [False, True])
def test_converged_means_a_proven_gap_of_at_most_tol(cls, y, options, tol, validates):
    held_out = {"X_val": X[60:], "y_val": y[60:]} if validates else {}
    rows = slice(0, 60) if validates else slice(None)
    estimator = cls(tol=tol, **options).fit(X[rows], y[rows], **held_out)
    estimated = estimator.estimated_gap_ <= tol * abs(estimator.objective_)
    converged = estimator.relative_gap_ <= tol
    assert (estimator.status_ == Status.CONVERGED) == converged
    if estimator.status_ == Status.ESTIMATED:
        assert estimated
    if estimator.status_ == Status.BEST_SCORE:
        assert validates

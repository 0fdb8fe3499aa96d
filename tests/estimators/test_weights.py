"""A weight of 2 is a repeated row: every estimator, loss and storage, of rows that are all different."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import mopn
from mopn import Ratio, estimators
from mopn.estimators.targets import regression_loss

N = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 4))
X[RNG.random((N, 4)) < 0.2] = 0.0
SCORE = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * RNG.standard_normal(N)
# Few wild targets of weight 1 and many tame ones of larger weights: the deviation without weights is a thousand times
# the deviation of the weighted samples.
WILD = SCORE + np.where(np.arange(N) % 3 == 0, 1e4 * RNG.standard_normal(N), 0.0)
TIMES = np.where(np.arange(N) % 3 == 0, 1, RNG.integers(2, 9, N))
Y = {
    "labels": np.digitize(SCORE, [-0.4, 0.4]),
    "two": np.where(SCORE > 0, "yes", "no"),
    "indicator": np.column_stack([SCORE > 0, X[:, 3] > 0]).astype(int),
    "numbers": WILD,
    "tame": SCORE,
    "several": np.column_stack([WILD, SCORE]),
    "levels": np.digitize(SCORE, [-0.4, 0.4]).astype(float),
    "counts": np.floor(np.exp(SCORE) + 0.5),
}

NETWORKS = {
    (estimators.MultiOutputPNClassifier, estimators.MultiOutputFMClassifier): {
        "labels": ["logistic", "smoothed-hinge", "squared-hinge", "binary-logistic", "binary-squared-hinge", "squared"],
        "indicator": ["binary-logistic"],
    },
    (estimators.MultiOutputPNRegressor, estimators.MultiOutputFMRegressor): {
        "numbers": ["squared", "huber", "quantile"],
        "several": ["huber", "quantile"],
        "counts": ["poisson"],
    },
    (estimators.OrdinalPNRegressor, estimators.OrdinalFMRegressor): {"levels": [None]},
}
SINGLE = {
    (estimators.PolynomialNetworkClassifier, estimators.FactorizationMachineClassifier): {
        "two": ["logistic", "squared_hinge", "squared"]
    },
    (estimators.PolynomialNetworkRegressor, estimators.FactorizationMachineRegressor): {
        "numbers": ["squared", "huber", "quantile"]
    },
}
TABLES = {
    (estimators.TableClassifier,): {"labels": ["logistic", "squared-hinge"], "indicator": ["binary-logistic"]},
    (estimators.TableRegressor,): {
        "tame": ["squared"],  # the wild ones are noise to it
        "numbers": ["huber", "quantile"],
        "several": ["huber"],
        "counts": ["poisson"],
    },
}


def members(kinds):
    """Return estimators with one loss each, and their targets."""
    return [
        pytest.param(cls, {} if loss is None else {"loss": loss}, Y[target], id=f"{cls.__name__}-{target}-{loss}")
        for classes, by_target in kinds.items()
        for cls in classes
        for target, losses in by_target.items()
        for loss in losses
    ]


def repeated(times, seed=1):
    """The rows as often as their weights say, in random order."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(N), times))


def numbers(model, X):
    """The numbers behind the predictions."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def same_fits(make, form, y, times):
    """Assert that a weighted fit and one of repeated rows are equal to the last bit, loss and strength included."""
    rows = repeated(times)
    weighted, copied = make().fit(form(X), y, sample_weight=times), make().fit(form(X[rows]), y[rows])
    assert repr(weighted.loss_) == repr(copied.loss_)
    assert weighted.strength_ == copied.strength_
    assert len(weighted.trace_["fun"]) > 1
    assert_array_equal(numbers(weighted, form(X)), numbers(copied, form(X)))
    assert_array_equal(weighted.trace_["fun"], copied.trace_["fun"])


STORAGES = {"dense": np.array, "float32": np.float32, "csr": sparse.csr_array, "csc": sparse.csc_array}


OPTIONS = [
    {},
    {"refit": "full", "norm": "l1/linf"},
    {"refit": "none", "norm": "l1", "scale": "large"},
    {"strength": Ratio(0.05), "scale": "data"},
    {"alpha": 1.0, "scale": None},
]


@pytest.mark.parametrize("more", OPTIONS, ids=str)
@pytest.mark.parametrize("form", STORAGES.values(), ids=STORAGES)
@pytest.mark.parametrize(("cls", "options", "y"), members(NETWORKS))
def test_networks_to_the_last_bit(cls, options, y, form, more):
    times = np.where(np.arange(N) == 7, 0, TIMES)
    same_fits(lambda: cls(**{"max_units": 3, "strength": Ratio(0.1)} | more, **options), form, y, times)


@pytest.mark.parametrize("strength", ["auto", Ratio(0.05)], ids=str)
@pytest.mark.parametrize(("cls", "options", "y"), members(TABLES))
def test_tables_to_the_last_bit(cls, options, y, strength):
    # Below ten times on average, copies are told from rows that repeat by nature.
    same_fits(lambda: cls(max_units=2, strength=strength, curves=2, **options), np.array, y, TIMES)


@pytest.mark.parametrize(
    ("solver", "form"),
    [("cd", np.array), ("cd", sparse.csc_array), ("lbfgs", sparse.csr_array), ("lbfgs", np.float32)],
)
@pytest.mark.parametrize(("cls", "options", "y"), members(SINGLE))
def test_one_output(cls, options, y, solver, form):
    rows = repeated(TIMES)
    options = options | {"solver": solver, "n_components": 2, "random_state": 0, "max_iter": 5, "tol": 0.0}
    weighted, copied = cls(**options), cls(**options)
    with pytest.warns(match="max_iter"):
        weighted.fit(form(X), y, sample_weight=TIMES)
    with pytest.warns(match="max_iter"):
        copied.fit(form(X[rows]), y[rows])
    assert repr(weighted.loss_) == repr(copied.loss_)
    assert copied.objective_ == pytest.approx(weighted.objective_, rel=1e-5 if form is np.float32 else 1e-9)
    found, expected = numbers(copied, form(X)), numbers(weighted, form(X))
    assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "options", "y"), members(NETWORKS | TABLES))
def test_blocks_of_rows(cls, options, y):
    """Blocks are not merged: the last digits differ."""
    rows = repeated(TIMES)

    options = options | {"strength": Ratio(0.3), "max_units": 4, "tol": 1e-6}
    weighted, copied = cls(**options), cls(**options)
    weighted.fit(mopn.RowBlocks(X, y, TIMES, size=25))
    copied.fit(mopn.RowBlocks(X[rows], y[rows], size=100))
    assert repr(weighted.loss_) == repr(copied.loss_)
    assert copied.strength_ == pytest.approx(weighted.strength_, rel=1e-8)
    assert copied.objective_ == pytest.approx(weighted.objective_, rel=1e-4)


@pytest.mark.parametrize("cls", [estimators.TableClassifier, estimators.TableRegressor])
def test_tables_of_all_kinds_of_columns_to_the_last_bit(cls):
    """Knots and categories, missing ones included, are found from the weighted rows."""
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "up", "down"), "d": X[:, 3] > 0})
    frame.loc[::7, "a"], frame.loc[::9, "c"] = np.nan, None
    frame["e"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), unit="D")
    y, rows = Y["labels" if cls is estimators.TableClassifier else "numbers"], repeated(TIMES)
    weighted = cls(strength=Ratio(0.1), max_units=3).fit(frame, y, sample_weight=TIMES)
    copied = cls(strength=Ratio(0.1), max_units=3).fit(frame.iloc[rows], y[rows])
    assert_array_equal(numbers(weighted, frame), numbers(copied, frame))


# -- the deviation of the targets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["all different", "few values", "constant but one", "one"])
@pytest.mark.parametrize("weights", ["whole", "none"])
def test_named_losses_are_in_the_unit_of_the_repeated_targets(kind, weights):
    """Against NumPy's quantiles of the repeated rows, and their deviation where the quantiles are equal."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = 1 if kind == "one" else int(rng.integers(2, 40))
        y = {
            "all different": rng.standard_normal(n),
            "few values": rng.integers(0, 4, n).astype(float),
            "constant but one": np.append(np.zeros(n - 1), 5.0),
            "one": np.array([3.0]),
        }[kind]
        times = rng.integers(1, 7, n)
        times = np.where(y == 5.0, 1, times) if kind == "constant but one" else times
        given, seen = (y, times) if weights == "whole" else (np.repeat(y, times), None)
        plain = np.repeat(y, times)
        spread = np.subtract(*np.quantile(plain, [0.75, 0.25])) / 1.349
        expected = spread if spread > 0 else np.std(plain) or 1.0
        found = regression_loss("huber", given, seen).delta / 1.35
        assert found == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e3])
def test_units_of_fractional_weights_hardly_matter(scale):
    """Weights that sum to 1, say: the unit is near the unit for weights of the size of counts."""
    rng = np.random.default_rng(0)
    y, weights = rng.standard_normal(500), rng.uniform(0.5, 1.5, 500)
    ours, theirs = (regression_loss("huber", y, factor * weights).delta for factor in (1.0, scale))
    assert theirs == pytest.approx(ours, rel=0.02)


def test_targets_of_weight_0_do_not_count():
    y, weights = np.append(SCORE, 1e9), np.append(TIMES, 0)
    assert regression_loss("huber", y, weights).delta == regression_loss("huber", SCORE, TIMES).delta

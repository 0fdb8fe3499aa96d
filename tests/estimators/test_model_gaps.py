"""Gaps of estimators hold for the models that they return, also for features whose mean is far from 0."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import mopn

estimators = pytest.importorskip("mopn.estimators")

N, D = 60, 3
STORAGES = {
    "dense": np.asarray,
    "columns": np.asfortranarray,
    "float32": np.float32,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}
# Deviations, relative to the mean, near the least that each storage can tell.
LEAST = {"dense": 3e-12, "columns": 3e-12, "float32": 1e-6, "csr": 3e-6, "csc": 3e-6}
far_away = pytest.mark.filterwarnings("ignore:.*deviations from 0:UserWarning", "ignore:.*counts? as constant")


def far_data(share, seed=0):
    Z = np.random.default_rng(seed).uniform(-1, 1, (N, D))
    return 1e3 * (1.0 + share * Z), Z[:, 0] * Z[:, 1]


def exact_outputs(model, X):
    """The outputs (n, m) of a network with one dummy, in fractions."""
    rows = [[Fraction(1), *map(Fraction, map(float, x))] for x in X]
    units = [list(map(Fraction, map(float, h))) for h in model.basis]
    weights = [list(map(Fraction, map(float, v))) for v in model.weights]
    squares = [[sum(a * b for a, b in zip(h, x, strict=True)) ** 2 for h in units] for x in rows]
    offsets = [Fraction(float(offset)) for offset in np.broadcast_to(model.offset, model.weights.shape[1])]
    return [
        [offset + sum(q * v[c] for q, v in zip(row, weights, strict=True)) for c, offset in enumerate(offsets)]
        for row in squares
    ]


@far_away
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_the_gap_holds_for_the_model_in_fractions_and_in_floats(storage, weighted):
    X, y = far_data(LEAST[storage])
    X = STORAGES[storage](X)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], N) if weighted else np.ones(N)
    options = {"strength": mopn.Ratio(1e-9), "tol": 1e-4, "max_units": 4}
    fitted = estimators.MultiOutputPNRegressor(**options).fit(X, y, sample_weight=weights)
    dense = X.toarray() if sparse.issparse(X) else X
    outputs = [row[0] for row in exact_outputs(fitted.model_, dense)]
    half = [Fraction(float(w)) / 2 for w in weights]
    exact = sum(w * (o - Fraction(float(t))) ** 2 for w, o, t in zip(half, outputs, y, strict=True))
    most = fitted.objective_ + fitted.gap_
    assert exact <= most
    assert 0.5 * weights @ (fitted.predict(X) - y) ** 2 <= most


@far_away
def test_the_gap_of_blocks_holds_for_the_model():
    X, y = far_data(LEAST["dense"])
    blocks = mopn.RowBlocks([X[:20], X[20:]], y)
    fitted = estimators.MultiOutputPNRegressor(strength=mopn.Ratio(1e-9), tol=1e-4, max_units=2).fit(blocks)
    assert 0.5 * np.sum((fitted.predict(X) - y) ** 2) <= fitted.objective_ + fitted.gap_


@far_away
@pytest.mark.parametrize("name", ["MultiOutputPNClassifier", "TableClassifier", "TableRegressor"])
def test_gaps_of_other_estimators_hold_for_their_models(name):
    X, y = far_data(LEAST["dense"])
    numbers, labels = name == "TableRegressor", np.digitize(y, [-0.1, 0.1])
    fitted = getattr(estimators, name)(strength=mopn.Ratio(1e-4), tol=1e-4, max_units=4).fit(
        X, y if numbers else labels
    )
    losses = 0.5 * (fitted.predict(X) - y) ** 2 if numbers else -np.log(fitted.predict_proba(X)[np.arange(N), labels])
    assert np.sum(losses) <= fitted.objective_ + fitted.gap_


def test_rounding_that_decides_is_said_once():
    X, y = far_data(3e-12)
    with pytest.warns(
        UserWarning, match=r"^X: features are up to .* deviations from 0.*subtract numbers near"
    ) as caught:
        estimators.MultiOutputPNRegressor(strength=mopn.Ratio(1e-9), tol=1e-4, max_units=4).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", ["MultiOutputPNRegressor", "MultiOutputFMRegressor"])
def test_gaps_of_ordinary_data_are_as_before(name, storage):
    """The rounding of the model is far below what fits are asked for; without coordinates there is none."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D)) + np.array([0.0, 3.0, 10.0])
    y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(N)
    for scale in ("features", None):
        problem = mopn.NetworkProblem(
            *(STORAGES[storage](X), y, "squared"),
            kernel="homogeneous" if "PN" in name else "anova",
            **{"augment": True, "center": "PN" in name and scale is not None, "scale": scale, "strength": 0.1},
        )
        result = mopn.minimize(problem, tol=1e-2, max_iter=5)
        rounding = problem.model_rounding(result)
        assert rounding <= 1e-9 * result.fun
        assert (rounding > 0.0) == (scale is not None)

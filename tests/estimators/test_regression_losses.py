"""Regressors under the losses of regression: every class takes them, in the unit of y, and predicts their quantity."""

import numpy as np
import pytest

import mopn
from mopn import estimators

CONVEX = [estimators.MultiOutputFMRegressor, estimators.MultiOutputPNRegressor]
SINGLE = [estimators.FactorizationMachineRegressor, estimators.PolynomialNetworkRegressor]
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 3))
TRUTH = 3 * X[:, 0] * X[:, 1] + X[:, 2]
NOISY = TRUTH + 0.2 * RNG.standard_normal(200)
OUTLIERS = NOISY + 50.0 * (np.arange(200) % 8 == 0)


def make(cls, **options):
    if cls in SINGLE:
        return cls(**options, random_state=0, beta=1e-2, solver="lbfgs")
    return cls(**options, max_units=3 if cls is estimators.MultiOutputFMRegressor else 12)


@pytest.mark.parametrize("loss", ["huber", "quantile"])
@pytest.mark.parametrize("cls", CONVEX + SINGLE)
def test_outliers_do_not_decide_the_fit(cls, loss):
    squared, robust = (make(cls, loss=name).fit(X, OUTLIERS).predict(X) for name in ("squared", loss))
    assert np.sqrt(np.mean((robust - TRUTH) ** 2)) < 0.5 < np.sqrt(np.mean((squared - TRUTH) ** 2))


@pytest.mark.parametrize("loss", ["huber", "quantile"])
@pytest.mark.parametrize("cls", CONVEX)
def test_named_losses_are_in_the_unit_of_y(cls, loss):
    ours, theirs = (cls(loss=loss, max_units=3).fit(X, unit * NOISY) for unit in (1.0, 1e3))
    name = "delta" if loss == "huber" else "width"
    assert getattr(theirs.loss_, name) == pytest.approx(1e3 * getattr(ours.loss_, name), rel=1e-12)
    np.testing.assert_allclose(theirs.predict(X), 1e3 * ours.predict(X), rtol=0, atol=1e3 * 2e-2)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("cls", CONVEX + SINGLE)
def test_the_share_below_a_quantile_is_its_level(cls, level):
    predicted = make(cls, loss=mopn.Quantile(level, width=0.05)).fit(X, NOISY).predict(X)
    assert abs(np.mean(predicted >= NOISY) - level) < 0.07


@pytest.mark.parametrize("cls", CONVEX + SINGLE)
def test_means_of_counts_are_predicted(cls, tmp_path):
    means = np.exp(1.0 + 0.5 * TRUTH)
    y = RNG.poisson(means).astype(float)
    regressor = make(cls, loss="poisson").fit(X, y)
    predicted = regressor.predict(X)
    assert (predicted > 0).all()
    assert np.corrcoef(predicted, means)[0, 1] > 0.95
    np.testing.assert_allclose(predicted.mean(), y.mean(), rtol=0.05)
    np.testing.assert_allclose(np.log(predicted), regressor.model_.outputs(X)[:, 0], rtol=0, atol=1e-12)
    regressor.save(tmp_path / "model.npz")
    loaded = mopn.load(tmp_path / "model.npz")
    assert loaded.link == "log"
    np.testing.assert_array_equal(loaded.predict(X), predicted)
    with pytest.raises(TypeError, match="no link from outputs to probabilities"):
        loaded.predict_proba(X)


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize("count", [0.0, 3.0])
def test_constant_counts(count):
    regressor = estimators.MultiOutputPNRegressor(loss="poisson").fit(X, np.full(200, count))
    np.testing.assert_allclose(regressor.predict(X), count, rtol=1e-12, atol=0.5 / 200)


@pytest.mark.parametrize("loss", ["huber", mopn.Quantile(0.8, width=1.0), mopn.Huber(0.3)], ids=repr)
def test_coordinate_descent_and_lbfgs_agree(loss):
    """On one unit, where the minimum is found from one start: compiled slopes equal the loss's."""
    fits = [
        estimators.FactorizationMachineRegressor(
            loss=loss, solver=solver, n_components=1, random_state=0, beta=0.1, tol=1e-10, max_iter=3000
        ).fit(X, NOISY)
        for solver in ("cd", "lbfgs")
    ]
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-4)


@pytest.mark.parametrize("loss", ["huber", "quantile", "poisson"])
@pytest.mark.parametrize("solver", ["sgd", "adagrad"])
def test_stochastic_passes_decrease_the_objective(loss, solver):
    y = np.round(np.exp(TRUTH / 3)) if loss == "poisson" else NOISY
    options = {"loss": loss, "solver": solver, "n_components": 2, "random_state": 0, "alpha": 1.0, "beta": 1.0}
    first, last = (
        estimators.FactorizationMachineRegressor(**options, max_iter=n).fit(X, y).objective_ for n in (1, 20)
    )
    assert last < first


def test_parts_of_the_samples_keep_the_loss_of_the_first():
    regressor = estimators.FactorizationMachineRegressor(loss="huber", solver="adagrad", random_state=0)
    regressor.partial_fit(X[:100], NOISY[:100])
    loss = regressor.loss_
    assert regressor.partial_fit(X[100:], 10 * NOISY[100:]).loss_ is loss


def test_what_cannot_be():
    with pytest.raises(TypeError, match="the curvature of the loss 'poisson' has no bound"):
        estimators.FactorizationMachineRegressor(loss="poisson").fit(X, np.abs(NOISY))
    with pytest.raises(ValueError, match="poisson' takes counts"):
        estimators.MultiOutputPNRegressor(loss="poisson").fit(X, NOISY)

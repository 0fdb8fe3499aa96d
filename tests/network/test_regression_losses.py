"""Networks under the losses of regression: proven gaps, weights, storage, and curvature without a bound."""

import numpy as np
import pytest
from own_losses import REGRESSION_LOSSES, data
from scipy import sparse

import mopn
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint

every_loss = pytest.mark.parametrize("loss", REGRESSION_LOSSES, ids=repr)


@every_loss
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
def test_newton_and_first_order_steps_agree(loss, norm):
    X, y = data(loss, n=40, d=4)
    Y = np.column_stack([y, y[::-1]])
    problem = mopn.OutputLayerProblem(np.abs(X), Y, loss=loss, norm=norm, strength=0.5)
    newton, fista = (mopn.minimize(problem, solver, tol=1e-7, max_iter=3000) for solver in (InteriorPoint(), FISTA()))
    assert newton.gap <= 1e-7 * newton.fun
    for one, other in ((newton, fista), (fista, newton)):
        assert one.fun - one.gap <= other.fun * (1 + 1e-14)


@pytest.mark.covering(1)
@every_loss
@pytest.mark.parametrize("storage", [sparse.csr_array, sparse.csc_array])
def test_weights_are_repetitions_and_storage_does_not_matter(loss, storage):
    X, y = data(loss)
    counts = np.arange(len(y)) % 3 + 1
    again = np.repeat(np.arange(len(y)), counts)
    problems = [
        mopn.NetworkProblem(storage(X), y, loss=loss, strength=1.0, augment=True, sample_weight=counts),
        mopn.NetworkProblem(X[again], y[again], loss=loss, strength=1.0, augment=True),
    ]
    runs = [mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-6) for problem in problems]
    np.testing.assert_allclose(runs[0].fun, runs[1].fun, rtol=3e-6)
    for problem, run, other in zip(problems, runs, runs[::-1], strict=True):
        measured = mopn.certify(problem, other.basis, other.weights)
        np.testing.assert_allclose(measured.fun, other.fun, rtol=1e-12)
        assert run.fun - run.gap <= measured.fun


def test_counts_have_no_negative_targets():
    with pytest.raises(ValueError, match="loss='poisson' takes counts, numbers that are at least 0; y has -1"):
        mopn.NetworkProblem(np.eye(2), [1.0, -1.0], loss="poisson", strength=1.0)


def test_large_counts_and_large_data_do_not_overflow():
    """Outputs of the first trial steps are in the hundreds of thousands."""
    rng = np.random.default_rng(0)
    X = 100.0 * rng.uniform(-1, 1, (40, 3))
    y = rng.poisson(1e4 * np.exp(1e-4 * X[:, 0] * X[:, 1])).astype(float)
    problem = mopn.NetworkProblem(X, y, loss="poisson", norm="l1/l2", strength=1.0, offset=[np.log(y.mean())])
    for refit in ("none", "output", "full"):
        run = mopn.minimize(problem, ConditionalGradient(refit=refit), tol=1e-3, max_iter=8)
        assert np.isfinite(run.fun)
        assert np.isfinite(run.gap)
        assert run.fun <= run.trace["fun"][0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mopn.Huber(0.0), "delta must be a finite number > 0, got 0.0"),
        (lambda: mopn.Huber(np.inf), "delta must be a finite number > 0"),
        (lambda: mopn.Quantile(1.0), "level must be a number between 0 and 1"),
        (lambda: mopn.Quantile(width=-1.0), "width must be a finite number > 0"),
        (lambda: mopn.Quantile("a"), "level must be a number between 0 and 1"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()

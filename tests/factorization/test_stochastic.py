"""Stochastic gradients: unbiased, sparse, and safe when steps are too large."""

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.factorization.direct import FactorizationProblem
from mopn.solvers import LBFGS, SGD, AdaGrad, Status

KINDS = {
    "second": {"degree": 2},
    "third and second": {"degree": 3, "fit_lower": "explicit"},
    "augmented": {"degree": 3, "fit_lower": "augment"},
    "all subsets": {"kernel": "all-subsets"},
}


def make(kind, loss="squared", n=60, storage=np.asarray, **options):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 5))
    X[rng.random(X.shape) < 0.3] = 0.0
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3
    y = y if loss == "squared" else np.sign(y)
    options = {"beta": 0.1, "alpha": 0.2, "fit_linear": True, "fit_intercept": True} | KINDS[kind] | options
    weights, offset = rng.uniform(0.5, 2.0, n), 0.1 * rng.standard_normal(n)
    options |= {"loss": loss, "n_components": 9, "sample_weight": weights, "offset": offset}
    return FactorizationProblem(storage(X), y, **options)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["squared", "binary-logistic", "binary-squared-hinge"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_batch_of_all_samples_is_a_gradient_step(kind, loss, storage):
    problem = make(kind, loss, storage=storage)
    x, step = problem.start(1), 1e-3
    passes = problem.passes(x)
    passes.run(np.random.default_rng(0).permutation(passes.n), passes.n, step, adaptive=False)
    gradient = problem.value_gradient(x).gradient
    np.testing.assert_allclose(passes.point(), x - step * gradient / passes.n, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_of_all_samples_steps_is_the_gradient(kind):
    problem = make(kind)
    x, step, n = problem.start(1), 1e-3, problem.design.shape[0]
    total = np.zeros_like(x)
    for row in range(n):
        passes = problem.passes(x)
        passes.run(np.array([row]), 1, step, adaptive=False)
        total += (x - passes.point()) / step
    np.testing.assert_allclose(total, problem.value_gradient(x).gradient, rtol=1e-8, atol=1e-9)


def test_a_step_touches_the_features_of_its_samples_only():
    problem = make("second")
    x = problem.start(1)
    passes = problem.passes(x)
    passes.run(np.array([3]), 1, 0.1, adaptive=False)
    before, after = problem.unpack(x), problem.unpack(passes.point())
    absent = problem.design.matrix()[3] == 0.0
    assert absent.any()
    np.testing.assert_array_equal(after["P"][..., absent], before["P"][..., absent])
    np.testing.assert_array_equal(after["w"][absent], before["w"][absent])
    assert np.all(after["P"][..., ~absent] != before["P"][..., ~absent])


@pytest.mark.parametrize("solver", [AdaGrad(step=0.1), AdaGrad(step=0.1, batch_size=16), SGD(step=0.05, decay=0.1)])
@pytest.mark.parametrize("kind", ["second", "third and second", "augmented"])
def test_passes_approach_the_minimum(kind, solver):
    problem = make(kind)
    minimum = mopn.minimize(problem, LBFGS(), tol=1e-8, max_iter=1000).fun
    result = mopn.minimize(problem, solver, tol=0, max_iter=200)
    start = result.trace["fun"][0]
    assert result.fun - minimum <= 0.1 * (start - minimum)
    assert result.status == Status.MAX_ITER


def test_adagrad_divides_by_the_root_of_the_sum_of_squares():
    problem = make("second")
    x, step = problem.start(1), 0.1
    passes = problem.passes(x)
    order = np.arange(passes.n)
    for _ in range(2):
        passes.run(order, passes.n, step, adaptive=True)
    first = problem.value_gradient(x).gradient / passes.n
    middle = x - step * np.sign(first)
    second = problem.value_gradient(middle).gradient / passes.n
    sums = first**2 + second**2
    np.testing.assert_allclose(passes.sums(), sums, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(passes.point(), middle - step * second / np.sqrt(sums), rtol=1e-6, atol=1e-8)


def test_passes_over_parts_go_on_from_their_sums():
    problem = make("second")
    x, order = problem.start(1), np.arange(60)
    whole = problem.passes_over_part(x)
    whole.run(order, 4, 0.1, adaptive=True)
    first = problem.passes_over_part(x)
    first.run(order[:32], 4, 0.1, adaptive=True)
    second = problem.passes_over_part(first.point(), first.sums())
    second.run(order[32:], 4, 0.1, adaptive=True)
    np.testing.assert_array_equal(second.point(), whole.point())
    np.testing.assert_array_equal(second.sums(), whole.sums())


@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_are_too_large_end_the_run_with_its_best_point(kind):
    problem = make(kind)
    result = mopn.minimize(problem, SGD(step=50.0), tol=0, max_iter=100)
    assert result.status == Status.NONFINITE
    assert np.isfinite(result.x).all()
    assert result.fun <= result.trace["fun"][0]
    assert problem.measure(result.x).fun == pytest.approx(result.fun)


def test_features_that_never_occur_are_set_to_zero():
    problem = make("second", storage=lambda X: X * np.array([1.0, 0.0, 1.0, 1.0, 1.0]))
    result = mopn.minimize(problem, AdaGrad(), tol=0, max_iter=1)
    np.testing.assert_array_equal(result.P[0][:, 1], 0.0)
    passes = problem.passes_over_part(problem.start(1))
    passes.run(np.arange(passes.n), 1, 0.1, adaptive=True)
    found, started = (problem.unpack(x)["P"][..., 1] for x in (passes.point(), problem.start(1)))
    np.testing.assert_array_equal(found, started)


def test_the_order_of_samples_follows_rng():
    problem = make("second")
    options = {"start": problem.start(), "tol": 0, "max_iter": 2}
    default, same, other = (mopn.minimize(problem, SGD(), rng=rng, **options).x for rng in (None, 0, 1))
    np.testing.assert_array_equal(same, default)
    assert not np.array_equal(other, default)


def test_a_plateau_ends_the_run():
    result = mopn.minimize(make("second", beta=50.0, alpha=50.0), AdaGrad(), tol=1e-2, max_iter=500)
    assert result.success
    assert result.nit < 500


def test_one_generator_for_start_and_solver():
    """``minimize(rng=...)`` seeds both, whatever the ``rng`` of the problem; a generator goes on from run to run."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (30, 4)), np.arange(30.0)

    def run(rng, problem_rng=0):
        problem = mopn.FactorizationProblem(X, y, n_components=2, rng=problem_rng)
        return mopn.minimize(problem, mopn.solvers.SGD(step=1e-3), max_iter=3, tol=0, rng=rng).x

    np.testing.assert_array_equal(run(7), run(7, problem_rng=1))
    assert not np.array_equal(run(7), run(8))
    assert not np.array_equal(run(7), run(None))
    rng = np.random.default_rng(7)
    first = run(rng)
    np.testing.assert_array_equal(first, run(np.random.default_rng(7)))
    assert not np.array_equal(run(rng), first)
    network = mopn.NetworkProblem(X, y, loss="squared", strength=1.0)
    assert mopn.minimize(network, mopn.solvers.ConditionalGradient(), tol=1e-2, rng=7).success
    with pytest.raises(ValueError, match="rng must be a numpy Generator"):
        run(-1)

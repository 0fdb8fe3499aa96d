"""Network problems with a linear term: gaps against optima found independently, every refit, and models."""

import numpy as np
import pytest
from networks import rows_of
from properties import generators, tried
from sklearn.linear_model import LogisticRegression

import mopn
from mopn.data.designs import make_design
from mopn.estimators import MultiOutputFMClassifier, MultiOutputPNRegressor
from mopn.network.linear_term import LinearTerm
from mopn.solvers import FISTA, ConditionalGradient
from mopn.solvers.conditional_gradient import make_corrective_step

RNG = np.random.default_rng(0)
N, D, M, ALPHA = 50, 4, 3, 0.8
X = RNG.uniform(-1, 1, (N, D))
SCORES = 3.0 * (X[:, :1] * X[:, 1:2]) + X @ RNG.standard_normal((D, M)) + np.array([0.5, 0.0, -1.0])
TARGETS = {"binary-logistic": np.where(SCORES > 0, 1.0, -1.0), "squared": SCORES, "logistic": SCORES.argmax(axis=1)}
# The constants pay a hundredth.
ALPHAS = ALPHA * np.r_[0.01, np.ones(D)]
ONES = np.hstack([np.ones((N, 1)), X])


def make_problem(loss="binary-logistic", norm="l1", storage=np.array, **options):
    options = {"strength": 1.0} | options if "radius" not in options else options
    return mopn.NetworkProblem(storage(X), TARGETS[loss], loss, "anova", norm, alpha=ALPHA, **options)


def solve(problem, tol=1e-5, refit="output", **options):
    correction = make_corrective_step(refit, tol=1e-8, **options)
    return mopn.minimize(problem, ConditionalGradient(refit=correction), tol=tol, max_iter=500)


# -- the term itself --------------------------------------------------------------------------------------------------


@tried(50, rng=generators)
def test_fenchel_young_and_the_prox(rng):
    term = LinearTerm(rows_of(make_design(X)), ALPHA)
    W, G, step = rng.standard_normal((M, 1 + D)), rng.standard_normal((N, M)), rng.uniform(0.1, 10.0)
    np.testing.assert_allclose(term.outputs(W), ONES @ W.T, rtol=1e-12, atol=1e-13)
    assert term.value(W) == pytest.approx(0.5 * np.sum(ALPHAS * W**2), rel=1e-13)
    # value(W) + conjugate(-G' [1, X]) >= -<G, [1, X] W'>, with equality at the minimiser.
    assert term.value(W) + term.conjugate(G) >= -np.vdot(G, ONES @ W.T) - 1e-12
    best = term.minimizer(G)
    assert term.value(best) + term.conjugate(G) == pytest.approx(-np.vdot(G, ONES @ best.T), rel=1e-12)
    assert term.conjugate(0.3 * G) == pytest.approx(0.09 * term.conjugate(G), rel=1e-12)
    near = term.prox(W, step)
    np.testing.assert_allclose(near + step * term.gradient(near), W, rtol=1e-12)


def test_an_inactive_term_adds_nothing():
    term, G = LinearTerm(rows_of(make_design(X))), RNG.standard_normal((N, M))
    W, outputs = term.start(None, M), G.copy()
    assert W.shape == term.adjoint(G).shape == term.gradient(W).shape == term.prox(W, 1.0).shape == (M, 0)
    assert term.minimizer(G).shape == term.start(np.zeros((M, 0)), M).shape == (M, 0)
    assert term.scales(1.0).shape == (0,)
    np.testing.assert_array_equal(term.added_to(outputs, W), G)
    assert term.value(W) == term.conjugate(G) == term.rounding_error(W, G) == term.curvature(1.0) == 0.0


def test_the_term_on_other_rows():
    term, rows = LinearTerm(rows_of(make_design(X, 2)), ALPHA), rows_of(make_design(X[:7], 2), size=3)
    W = RNG.standard_normal((M, 1 + D))
    outputs = term.on(rows).outputs(W)
    np.testing.assert_allclose(outputs, ONES[:7] @ W.T, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(term.on(rows).adjoint(outputs), outputs.T @ ONES[:7], rtol=1e-12, atol=1e-12)


def test_the_scales_bound_the_curvature_of_each_coefficient():
    fit = make_problem(sample_weight=RNG.uniform(0.5, 2.0, N)).losses.in_memory
    scales = LinearTerm(rows_of(make_design(X), fit), ALPHA).scales(fit.smoothness)
    np.testing.assert_allclose(scales**-2.0, ALPHAS + 0.25 * fit.weights @ ONES**2, rtol=1e-12)


def test_the_bound_of_the_curvature_holds():
    fit = make_problem(sample_weight=RNG.uniform(0.5, 2.0, N)).losses.in_memory
    largest = 0.25 * np.linalg.eigvalsh(ONES.T @ (ONES * fit.weights[:, None]))[-1]
    bound = LinearTerm(rows_of(make_design(X), fit), ALPHA).curvature(fit.smoothness)
    assert largest <= bound <= 5.0 * largest


# -- the problem -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("form", ["strength", "radius"])
@pytest.mark.slow
def test_every_refit_finds_the_same_minimum(norm, form):
    problem = make_problem(norm=norm, **{form: 1.5})
    exact = solve(problem, refit="full")
    assert exact.success
    assert exact.linear.shape == (M, 1 + D)
    for options in ({"refit": "output"}, {"refit": "full", "solver": FISTA()}):
        other = solve(problem, tol=1e-3, **options)
        assert abs(other.fun - exact.fun) <= 1e-3 * exact.fun, options
    # Plain steps get there slowly.
    plain = mopn.minimize(problem, ConditionalGradient(refit="none"), tol=0.1, max_iter=80)
    assert exact.fun - exact.gap <= plain.fun <= exact.fun * 1.2


def test_without_units_it_is_ridge_logistic_regression():
    """scikit-learn's, with an intercept that pays a hundredth: a constant feature of value 10."""
    problem = make_problem(strength=1e3)
    result = solve(problem, tol=1e-9, refit="full")
    assert len(result.basis) == 0
    assert result.success
    tens = np.hstack([np.full((N, 1), 10.0), X])
    for row, y in zip(result.linear, TARGETS["binary-logistic"].T, strict=True):
        peer = LogisticRegression(C=1.0 / ALPHA, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(tens, y)
        np.testing.assert_allclose(row, peer.coef_[0] * np.r_[10.0, np.ones(D)], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
def test_strength_max_is_where_units_begin(norm):
    largest = make_problem(norm=norm).strength_max()
    above, below = (solve(make_problem(norm=norm, strength=f * largest), refit="full") for f in (1.001, 0.95))
    assert len(above.basis) == 0
    assert len(below.basis) > 0


def test_bad_coefficients():
    problem, empty = make_problem(), (np.zeros((0, D)), np.zeros((0, M)))
    with pytest.raises(ValueError, match=r"start.linear must have shape \(3, 5\), got \(3, 4\)"):
        problem.start((*empty, np.zeros((M, D))))
    with pytest.raises(ValueError, match="start: linear contains NaN or infinity"):
        problem.start((*empty, np.full((M, 1 + D), np.nan)))
    plain = mopn.NetworkProblem(X, TARGETS["squared"], "squared", strength=1.0)
    with pytest.raises(ValueError, match="pass alpha= for a linear term"):
        plain.start((*empty, np.zeros((M, 1 + D))))
    with pytest.raises(ValueError, match=r"linear must have shape \(1, 3\), got \(1, 2\)"):
        mopn.Model(np.zeros((1, 2)), np.zeros((1, 1)), linear=np.zeros((1, 2)))


# -- models ------------------------------------------------------------------------------------------------------------


def test_estimators_with_a_linear_term():
    """A linear target costs units where there is no such term."""
    y = 2.0 + X @ np.array([1.0, -2.0, 0.0, 0.5])
    options = {"strength": 0.5, "fit_intercept": False, "tol": 1e-4}
    plain, linear = (MultiOutputPNRegressor(**options, alpha=alpha).fit(X, y) for alpha in (None, 1e-3))
    assert plain.linear_ is None
    assert len(linear.basis_) == 0
    assert linear.score(X, y) > 0.999 > plain.score(X, y)
    labels = np.where(y > 2.0, "high", "low")
    assert MultiOutputFMClassifier(strength=5.0, alpha=0.01).fit(X, labels).score(X, labels) > 0.95


@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
def test_refits_fit_the_linear_term_to_the_end(norm):
    """The penalty's conjugate divides the residual of the fit by alpha: without an exact fit it is the whole gap."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 30))
    y = X @ rng.standard_normal(30) + X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(200)
    problem = mopn.NetworkProblem(X, y, loss="squared", kernel="anova", norm=norm, strength=1.0, alpha=0.01)
    solver = ConditionalGradient(refit=mopn.solvers.FullRefit(polish_tol=1e-2), max_units=2, schedule="fill")
    network = problem.start(mopn.minimize(problem, solver, tol=1e-6))
    at = problem.output_gradient(network)
    left = problem.linear_term.adjoint(at.G) + problem.linear_term.gradient(network.linear)
    assert float(np.sum(left**2)) / (2 * 0.01) <= 1e-6 * at.value

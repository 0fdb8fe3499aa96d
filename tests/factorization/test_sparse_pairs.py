"""Penalties that make pairs or features zero, against their definitions and minimisers that know nothing of them."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar

import mopn
from mopn.estimators import FactorizationMachineClassifier, FactorizationMachineRegressor
from mopn.solvers import LBFGS, SGD, CoordinateDescent

N, D, K = 40, 5, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, D)) * (RNG.random((N, D)) < 0.8)
Y = 3.0 * X[:, 0] * X[:, 1] - 2.0 * X[:, 2] * X[:, 3] + 0.1 * RNG.standard_normal(N)
WEIGHTS, LAMS = RNG.uniform(0.5, 2.0, N), np.array([2.0, -0.5, 1.0])
LOSSES = ["squared", "binary-logistic", "binary-squared-hinge"]
BETAS = dict(zip(LOSSES, (3.0, 0.4, 1.5), strict=True))
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_penalty = pytest.mark.parametrize("penalty", ["ti", "cs"])


def make(penalty, loss="squared", beta=0.2, storage=np.array, X=X, **options):
    y = Y if loss == "squared" else np.sign(Y)
    options = {"lams": LAMS, "n_components": K, "sample_weight": WEIGHTS, "init_scale": 0.5} | options
    return mopn.FactorizationProblem(storage(X), y, degree=2, loss=loss, beta=beta, penalty=penalty, **options)


def by_definition(penalty, P):
    """The penalty without its strength, entry by entry."""
    if penalty == "ti":
        return sum(abs(lam) * sum(abs(entry) for entry in p) ** 2 for lam, p in zip(LAMS, P, strict=True))
    return sum(np.sqrt(sum(abs(lam) * p * p for lam, p in zip(LAMS, column, strict=True))) for column in P.T) ** 2


def sums(problem, P):
    """The slopes of the losses, and the derivatives (n, k, d) of the outputs, by taking each feature out."""
    outputs = problem.outputs(problem.start({"P": P[None]}))
    slopes = problem.losses.value_gradient(outputs[:, None])[1][:, 0]
    rest = X @ P.T
    return slopes, LAMS[None, :, None] * X[:, None, :] * (rest[:, :, None] - X[:, None, :] * P[None])


@every_penalty
def test_the_objective_is_that_of_the_definition(penalty):
    problem = make(penalty, fit_linear=True, alpha=0.3)
    x = problem.start(1)
    at = problem.unpack(x)
    p = at["P"][0].T
    pairs = sum(LAMS @ (p[i] * p[j]) * X[:, i] * X[:, j] for j in range(D) for i in range(j))
    losses = 0.5 * WEIGHTS @ (pairs + X @ at["w"] - Y) ** 2
    value = losses + 0.2 * by_definition(penalty, at["P"][0]) + 0.15 * at["w"] @ at["w"]
    assert problem.measure(x).fun == pytest.approx(value, rel=1e-12)


@every_loss
@pytest.mark.parametrize("beta", [0.02, 0.5, 5.0])
def test_steps_along_coordinates_minimise_the_bound(beta, loss):
    """Each against a minimiser of one variable: quadratic bound of the losses and the penalty by its definition."""
    problem = make("ti", loss, beta)
    P = problem.unpack(problem.start(2))["P"][0].copy()
    found = mopn.minimize(problem, CoordinateDescent(), start={"P": P[None]}, tol=0, max_iter=1).P[0]
    mu = problem.losses.loss.smoothness(1)
    for s in range(K):
        for j in range(D):
            slopes, h = sums(problem, P)
            g, c = slopes @ h[:, s, j], mu * WEIGHTS @ h[:, s, j] ** 2

            def bound(p, s=s, j=j, g=g, c=c, old=P[s, j]):
                moved = P.copy()
                moved[s, j] = p
                return g * (p - old) + 0.5 * c * (p - old) ** 2 + beta * by_definition("ti", moved)

            best = minimize_scalar(bound, bracket=(P[s, j] - 1.0, P[s, j] + 1.0), options={"xtol": 1e-12}).x
            P[s, j] = 0.0 if bound(0.0) - bound(best) <= 1e-14 * abs(bound(best)) else best
    np.testing.assert_allclose(found, P, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found == 0.0, P == 0.0)


@every_loss
@pytest.mark.parametrize("beta", [0.02, 0.5, 5.0])
def test_steps_along_features_minimise_the_bound(beta, loss):
    """In the entries times the roots of lambda, along which the bound has the same curvature in all directions."""
    problem = make("cs", loss, beta)
    P = problem.unpack(problem.start(2))["P"][0].copy()
    found = mopn.minimize(problem, CoordinateDescent(), start={"P": P[None]}, tol=0, max_iter=1).P[0]
    mu, roots = problem.losses.loss.smoothness(1), np.sqrt(np.abs(LAMS))
    for j in range(D):
        slopes, h = sums(problem, P)
        h = h[:, :, j] / roots
        g, c, old = slopes @ h, mu * WEIGHTS @ np.sum(h**2, axis=1), roots * P[:, j]

        def bound(q, j=j, g=g, c=c, old=old):
            moved = P.copy()
            moved[:, j] = q / roots
            return g @ (q - old) + 0.5 * c * (q - old) @ (q - old) + beta * by_definition("cs", moved)

        starts = [old, old - g / max(c, 1e-9), 0.1 * old]
        options = {"xatol": 1e-10, "fatol": 1e-15, "maxiter": 10000}
        best = min((minimize(bound, start, method="Nelder-Mead", options=options).x for start in starts), key=bound)
        best = np.zeros(K) if bound(np.zeros(K)) - bound(best) <= 1e-12 * abs(bound(best)) else best
        P[:, j] = best / roots
    np.testing.assert_allclose(found, P, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found == 0.0, P == 0.0)


@every_penalty
@every_loss
def test_a_solution_is_stationary_and_sparse(penalty, loss):
    """Nothing is gained along any coordinate, nor, for features, along any direction that was tried."""
    problem = make(penalty, loss, beta=BETAS[loss])
    result = mopn.minimize(problem, CoordinateDescent(), tol=0, max_iter=10000)
    P, rng = result.P, np.random.default_rng(1)
    assert 0 < np.count_nonzero(P) < P.size
    if penalty == "cs":
        np.testing.assert_array_equal((P[0] == 0.0).all(axis=0), (P[0] == 0.0).any(axis=0))
    for j, size, _ in itertools.product(range(D), (1e-3, 1e-1, 1.0), range(10)):
        moved = P.copy()
        one = rng.choice([-1.0, 1.0]) * rng.permutation(np.eye(K)[0])
        moved[0, :, j] += size * (rng.standard_normal(K) if penalty == "cs" else one)
        assert problem.measure(problem.start({"P": moved})).fun >= result.fun * (1 - 1e-9)


def test_pairs_that_are_not_there_are_left_out():
    """Of 15 pairs two make up y: "ti" finds them; "cs" finds their features, and leaves out the others."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (400, 6))
    y = 2.0 * X[:, 0] * X[:, 1] - 2.0 * X[:, 2] * X[:, 3] + 0.05 * rng.standard_normal(400)
    pairs, every = {}, list(itertools.combinations(range(6), 2))
    for penalty in ("ti", "cs", "weighted"):
        regressor = FactorizationMachineRegressor(
            n_components=4, init_lambdas="random_signs", beta=1.0, penalty=penalty, fit_linear=False, random_state=0
        )
        weights = mopn.interaction_weights(regressor.set_params(tol=1e-9).fit(X, y), every)
        pairs[penalty] = {pair for pair, weight in zip(every, weights, strict=True) if weight}
    assert pairs["ti"] == {(0, 1), (2, 3)}
    assert pairs["cs"] == {*itertools.combinations(range(4), 2)}
    assert len(pairs["weighted"]) == 15


@every_penalty
@pytest.mark.parametrize("storage", [sparse.csr_array, sparse.csc_array, np.float32])
def test_storage_and_threads_do_not_matter(penalty, storage):
    rounded = X.astype(np.float32).astype(float)
    solvers = CoordinateDescent(), CoordinateDescent(n_threads=2)
    results = [
        mopn.minimize(make(penalty, storage=kind, X=rounded), solver, tol=0, max_iter=5).P
        for kind, solver in zip((np.array, storage), solvers, strict=True)
    ]
    np.testing.assert_allclose(*results, rtol=0, atol=1e-12)


@every_loss
def test_a_feature_that_dominates_is_computed_anew(loss):
    """Its differences would have no digit left: outputs kept up to date are those computed from scratch."""
    large = X.copy()
    large[:, 2] *= 1e9
    problem = make("cs", loss, X=large, beta=1e-3, lams="ones")
    x = problem.start(1)
    blocks = problem.blocks(x)
    for _ in range(5):
        before = blocks.value()
        for update in blocks.updates:
            update()
        assert blocks.value() <= before * (1 + 1e-9)
        assert blocks.value() == pytest.approx(problem.measure(blocks.point()).fun, rel=1e-6)


@every_penalty
def test_units_without_weight_stay(penalty):
    problem = make(penalty, lams=[1.0, 0.0, -1.0])
    start = problem.unpack(problem.start(1))["P"]
    found = mopn.minimize(problem, CoordinateDescent(), start={"P": start}, tol=0, max_iter=3).P
    np.testing.assert_array_equal(found[0, 1], start[0, 1])


@every_penalty
def test_what_has_no_such_penalty(penalty):
    y = np.sign(Y)
    for options in ({"degree": 3}, {"kernel": "all-subsets"}, {"theta": [1.0, 1.0]}, {"fit_lower": "augment"}):
        with pytest.raises(ValueError, match=f"penalty='{penalty}' is for pairs: it needs kernel='anova', degree=2"):
            mopn.FactorizationProblem(X, Y, penalty=penalty, **options)
    with pytest.raises(ValueError, match="lams='fit' needs penalty='weighted'"):
        mopn.FactorizationProblem(X, Y, penalty=penalty, lams="fit")
    with pytest.raises(ValueError, match="init_lambdas='fit' needs penalty='weighted'"):
        FactorizationMachineClassifier(penalty=penalty, init_lambdas="fit").fit(X, y)
    with pytest.raises(ValueError, match="penalty must be one of"):
        mopn.FactorizationProblem(X, Y, penalty="l1")
    for solver in (LBFGS(), SGD()):
        with pytest.raises(TypeError, match=f"penalty='{penalty}' has kinks: it has CoordinateDescent"):
            mopn.minimize(mopn.FactorizationProblem(X, Y, penalty=penalty), solver)
    with pytest.raises(TypeError, match="has kinks"):
        FactorizationMachineClassifier(penalty=penalty, solver="sgd").partial_fit(X, y)
    with pytest.raises(TypeError, match="needs X in memory"):
        FactorizationMachineClassifier(penalty=penalty).fit(mopn.RowBlocks([X[:20], X[20:]]), y)

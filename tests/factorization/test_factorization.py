"""Problems of one output: objectives, gradients, coordinate descent and conversions, against slow references."""

import itertools

import numpy as np
import pytest
from own_losses import OfParent
from reference import derivatives
from scipy import sparse

import mopn
from mopn.core.kernels import eigen_units
from mopn.data.designs import make_design
from mopn.factorization.direct import FactorizationProblem
from mopn.factorization.lifted import LiftedProblem
from mopn.factorization.single_output import direct_to_network, lifted_to_direct
from mopn.factorization.terms import factors
from mopn.losses.losses import Squared
from mopn.solvers import LBFGS, SGD, CoordinateDescent
from mopn.solvers.lbfgs import quasi_newton

DIRECT = {
    "second": {"degree": 2},
    "third and second": {"degree": 3, "fit_lower": "explicit", "fit_linear": True, "fit_intercept": True},
    "augmented": {"degree": 4, "fit_lower": "augment"},
    "augmented and linear": {"degree": 3, "fit_lower": "augment", "fit_linear": True},
    "shared": {"degree": 3, "fit_lower": "shared"},
    "inhomogeneous": {"degree": 3, "theta": [0.5, -1.0, 2.0]},
    "all subsets": {"kernel": "all-subsets", "fit_intercept": True},
    "fitted": {"degree": 2, "lams": "fit"},
    "signs": {"degree": 2, "lams": "signs", "penalty": "frobenius"},
    "homogeneous": {"degree": 3, "kernel": "homogeneous", "fit_lower": "augment"},
}
LIFTED = {
    "lifted": {"degree": 3, "augment": True, "fit_linear": True, "fit_intercept": True},
    "lifted anova": {"kernel": "anova"},
    "bilinear": {"degree": 2},
}
KINDS = [*DIRECT, *LIFTED]
# Simplices.
WITHOUT_GRADIENTS = ("shared",)
MULTICONVEX = [kind for kind in KINDS if kind != "homogeneous"]
LOSSES = ["squared", "binary-logistic", "binary-squared-hinge"]


def data(n=30, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[rng.random(X.shape) < 0.4] = 0.0
    return X, rng.standard_normal(n), rng.uniform(0.5, 2.0, n), 0.1 * rng.standard_normal(n)


def make(kind, X, y, loss="squared", **options):
    options = {"loss": loss, "beta": 0.3, "alpha": 0.2, "init_scale": 0.5} | options
    y = y if loss == "squared" else np.sign(y)
    if kind in DIRECT:
        return FactorizationProblem(X, y, n_components=9, **(DIRECT[kind] | options))
    if kind == "bilinear":
        X = (X[:, :2], X[:, 2:])
    return LiftedProblem(X, y, rank=9, **(LIFTED[kind] | options))


def interior(problem, seed=1):
    """A point within the bounds."""
    x = problem.start(seed)
    if problem.bounds is not None:
        free = np.isinf(problem.bounds[0])
        x[~free] = np.random.default_rng(seed).uniform(0.1, 1.0, (~free).sum())
    return x


def monomials(x, P, lams, degree):
    """sum_s lambda_s A^degree(p_s, x), by its definition."""
    groups = itertools.combinations(range(len(x)), degree)
    return sum(lams @ np.prod(P[:, list(group)] * x[list(group)], axis=1) for group in groups)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind, loss):
    X, y, weights, offset = data()
    problem = make(kind, X, y, loss, sample_weight=weights, offset=offset)
    if kind in WITHOUT_GRADIENTS:
        assert "gradient" not in problem.oracles
        return
    x = interior(problem)
    at = problem.value_gradient(x)
    expected = problem.losses.value(problem.outputs(x)[:, None]) + problem.penalty(x)
    assert at.value == pytest.approx(expected, rel=1e-13)
    numeric = derivatives(lambda x: problem.value_gradient(x).value, x, h=1e-6)
    np.testing.assert_allclose(at.gradient, numeric, rtol=1e-6, atol=1e-6 * np.abs(at.gradient).max())


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_of_a_result_is_that_of_its_parameters(kind):
    """Also after few iterations, when both parts of a fitted lambda may be above zero."""
    X, y, weights, offset = data()
    problem = make(kind, X, y, "squared", sample_weight=weights, offset=offset)
    solver = CoordinateDescent() if kind in WITHOUT_GRADIENTS else LBFGS()
    result = mopn.minimize(problem, solver, tol=0, max_iter=2)
    named = {name: result[name] for name in problem.parameters}
    assert problem.value_gradient(result.x).value == pytest.approx(result.fun, rel=1e-13)
    for start in (named, result):
        assert problem.measure(problem.start(start)).fun == pytest.approx(result.fun, rel=1e-13)


@pytest.mark.parametrize("kind", [*list(DIRECT)[:5], "signs"])
def test_the_objective_is_that_of_its_definition(kind):
    X, y, weights, offset = data()
    problem = make(kind, X, y, sample_weight=weights, offset=offset)
    x = problem.start(1)
    at = problem.unpack(x)
    Z = np.hstack([np.ones((len(X), problem.dummies)), X])
    theta = at.get("theta", np.zeros(problem.degree))
    outputs = offset + (X @ at["w"] if "w" in at else 0.0) + at.get("intercept", 0.0)
    for order, P in enumerate(at["P"]):
        for i, z in enumerate(Z):
            if kind == "shared":
                outputs[i] += sum(theta[t] * monomials(z, P, at["lams"], t + 1) for t in range(3))
            else:
                outputs[i] += monomials(z, P, at["lams"], problem.degree - order)
    sizes = np.full(9, 0.5) if kind == "signs" else np.abs(at["lams"])
    penalty = 0.3 * sizes @ (at["P"] ** 2).sum(axis=(0, 2))
    penalty += 0.1 * (at["w"] @ at["w"]) if "w" in at else 0.0
    expected = 0.5 * weights @ (outputs - y) ** 2 + penalty
    assert problem.measure(x).fun == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["lifted", "lifted anova", "bilinear"])
def test_the_lifted_outputs_are_those_of_their_definition(kind):
    X, y, _, _ = data()
    problem = make(kind, X, y)
    x = interior(problem)
    at = problem.unpack(x)
    if kind == "bilinear":
        expected = np.sum((X[:, :2] @ at["U"][0].T) * (X[:, 2:] @ at["U"][1].T), axis=1)
    elif kind == "lifted":
        Z = np.hstack([np.ones((len(X), 1)), X])
        expected = [np.prod(at["U"] @ z, axis=0).sum() for z in Z] + X @ at["w"] + at["intercept"]
    else:
        M = at["U"][0].T @ at["U"][1]
        W = np.triu(0.5 * (M + M.T), 1)
        expected = [z @ W @ z for z in X]
    np.testing.assert_allclose(problem.outputs(x), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", MULTICONVEX)
def test_coordinate_descent_never_increases_the_objective(kind, loss):
    X, y, weights, offset = data()
    problem = make(kind, X, y, loss, sample_weight=weights, offset=offset)
    result = mopn.minimize(problem, CoordinateDescent(), tol=0, max_iter=30)
    fun = result.trace["fun"]
    assert np.all(np.diff(fun) <= 1e-12 * fun[0])
    assert fun[-1] < 0.95 * fun[0]
    # The outputs kept up to date are those computed from scratch.
    assert fun[-1] == pytest.approx(result.fun, rel=1e-11)
    assert not result.gap_is_proven


def slow_epoch(problem, x):
    """Algorithm 1 of the ICML paper with derivatives from the definition: multilinear, so differences are exact."""
    x = x.copy()
    data, mu = problem.losses.in_memory, problem.losses.loss.smoothness(1)
    for j in range(problem.size):
        base = problem.outputs(x)
        moved = x.copy()
        moved[j] += 1.0
        h = problem.outputs(moved) - base
        slopes = problem.losses.value_gradient(base[:, None])[1][:, 0]
        unit = np.zeros(problem.size)
        unit[j] = 1.0
        ridge = 2 * (problem.penalty(unit) - problem.penalty(np.zeros(problem.size)))
        x[j] -= (slopes @ h + ridge * x[j]) / (mu * data.sample_weights @ h**2 + ridge)
    return x


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["second", "third and second", "augmented", "all subsets", *LIFTED])
def test_an_epoch_is_that_of_the_paper(kind, loss):
    X, y, weights, offset = data(n=12)
    options = {} if kind == "bilinear" else {"fit_linear": False}
    problem = make(kind, X, y, loss, sample_weight=weights, offset=offset, **options)
    x = interior(problem)
    epoch = mopn.minimize(problem, CoordinateDescent(), start=x, tol=0, max_iter=1)
    np.testing.assert_allclose(epoch.x, slow_epoch(problem, x), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "binary-logistic"])
@pytest.mark.parametrize("kind", ["second", "augmented", "all subsets", "lifted"])
def test_a_coordinate_that_dominates_is_computed_anew(kind, loss):
    """Dummies next to small ones, a factor 1 + p x that is exactly zero: still the paper's epoch."""
    X, y, _, _ = data(n=12)
    X[:, 0], X[:, 1:] = 1.0, 1e-4 * X[:, 1:]
    problem = make(kind, X, y, loss, beta=1e-6, fit_linear=False, fit_intercept=False)
    x = interior(problem)
    if kind == "all subsets":
        x.reshape(9, -1)[:, 0] = -1.0
    epoch = mopn.minimize(problem, CoordinateDescent(), start=x, tol=0, max_iter=1)
    assert epoch.fun == pytest.approx(problem.measure(slow_epoch(problem, x)).fun, rel=1e-9)
    assert epoch.trace["fun"][-1] == pytest.approx(epoch.fun, rel=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_storage_does_not_matter(kind):
    X, y, weights, _ = data()
    values = []
    for storage in (np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix, lambda X: X.astype(np.float32)):
        problem = make(kind, storage(X), y, sample_weight=weights)
        x = problem.start(1)
        if "blocks" in problem.oracles:
            x = mopn.minimize(problem, CoordinateDescent(), start=x, tol=0, max_iter=3).x
        values.append(problem.measure(x).fun)
    np.testing.assert_allclose(values[:-1], values[0], rtol=1e-10)
    assert values[-1] == pytest.approx(values[0], rel=1e-4)


def one_hot(n=20_000, fields=(40, 60), seed=0):
    rng = np.random.default_rng(seed)
    parts = [sparse.csr_matrix((np.ones(n), (np.arange(n), rng.integers(0, d, n))), shape=(n, d)) for d in fields]
    return sparse.hstack(parts, format="csr"), rng.standard_normal(n)


def all_subsets(X, y):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    options = {"loss": "binary-logistic", "sample_weight": weights, "offset": 0.1 * y, "fit_intercept": True}
    return FactorizationProblem(X, np.sign(y), kernel="all-subsets", n_components=3, **options)


THREADED = {
    "second": lambda X, y: FactorizationProblem(X, y, degree=2, n_components=9, fit_linear=True),
    "dummies": lambda X, y: FactorizationProblem(X, y, degree=2, n_components=2, fit_lower="augment"),
    "all subsets": all_subsets,
    "lifted": lambda X, y: LiftedProblem(X, y, degree=2, rank=3, fit_intercept=True),
    "bilinear": lambda X, y: LiftedProblem((X, np.outer(y, [1.0, -2.0, 0.5])), y, rank=3),
}


# All but one compile much.
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "lifted")) for kind in THREADED]
)
def test_threads_do_not_change_the_iterates(kind):
    problem = THREADED[kind](*one_hot())
    runs = [mopn.minimize(problem, CoordinateDescent(n_threads=t), tol=0, max_iter=3) for t in (1, 2, 3)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.x, runs[0].x)
        assert run.fun == runs[0].fun


def test_fields_are_found():
    from mopn.compiled.storage import disjoint_groups

    X, _ = one_hot(100, (4, 6))
    np.testing.assert_array_equal(disjoint_groups(make_design(X).column_lines), [0, 4, 10])
    np.testing.assert_array_equal(disjoint_groups(make_design(X, 1).column_lines), [0, 1, 5, 11])
    np.testing.assert_array_equal(disjoint_groups(make_design(np.ones((3, 2))).column_lines), [0, 1, 2])


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("options", [{}, {"degree": 3, "fit_lower": "explicit"}, {"degree": 3, "fit_lower": "augment"}])
def test_kept_kernels_change_no_iterate_beyond_rounding(options, storage, monkeypatch):
    X, y, _, _ = data()
    problem = FactorizationProblem(storage(X), y, n_components=9, beta=0.01, fit_linear=True, **options)
    kept = mopn.minimize(problem, CoordinateDescent(), tol=0, max_iter=25)
    monkeypatch.setattr(factors, "RENEWAL_EPOCHS", 1)
    renewed = mopn.minimize(problem, CoordinateDescent(), tol=0, max_iter=25)
    assert np.isclose(kept.fun, renewed.fun, rtol=1e-10)
    np.testing.assert_allclose(kept.x, renewed.x, rtol=1e-6, atol=1e-7)


# -- fitted lambda and theta ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_lambda_solves_its_l1_problem(loss):
    X, y, weights, _ = data()
    problem = make("fitted", X, y, loss, sample_weight=weights, beta=0.5)
    # The default start has lambda fitted.
    x = problem.start()
    at = problem.unpack(x)
    features = problem.kernel_terms[0].kernel.features(problem.design, at["P"][0])
    slopes = features.T @ problem.losses.value_gradient(problem.outputs(x)[:, None])[1][:, 0]
    limits = 0.5 * (at["P"][0] ** 2).sum(axis=1)
    zero = at["lams"] == 0.0
    assert np.all(np.abs(slopes[zero]) <= limits[zero] * (1 + 1e-6))
    np.testing.assert_allclose(slopes[~zero], -limits[~zero] * np.sign(at["lams"][~zero]), rtol=1e-4)


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
def test_units_without_a_weight_are_turned_until_they_earn_one(kernel):
    """With so strong a penalty no random unit is worth a weight; the units of the optimum are."""
    X, y, _, _ = data(n=60)
    convex = mopn.NetworkProblem(X, y, loss="squared", kernel=kernel, norm="l1", strength=1.0)
    beta = 0.95 * convex.strength_max()
    best = mopn.minimize(convex.with_strength(beta), mopn.solvers.ConditionalGradient(), tol=1e-8)
    assert len(best.basis) > 0
    problem = FactorizationProblem(X, y, n_components=5, kernel=kernel, beta=beta, lams="fit")
    random = problem.kernel_terms[0].start(np.random.default_rng(0))["P"]
    slopes = problem.kernel_terms[0].kernel.features(problem.design, random).T @ -y
    assert np.all(np.abs(slopes) < beta * (random**2).sum(axis=1))
    for solver in (CoordinateDescent(), LBFGS())[kernel == "homogeneous" :]:
        found = mopn.minimize(problem, solver, tol=1e-10, max_iter=2000)
        assert found.lams.any()
        at_zero = 0.5 * y @ y
        assert found.fun - best.fun <= 1e-2 * (at_zero - best.fun)


def test_theta_solves_its_problem_on_the_simplex():
    X, y, _, _ = data()
    problem = make("shared", X, y)
    result = mopn.minimize(problem, CoordinateDescent(), tol=0, max_iter=50)
    theta = result.theta
    assert np.all(theta >= 0)
    assert theta.sum() == pytest.approx(1.0, abs=1e-12)
    values = []
    for direction in np.eye(3):
        moved = result.x.copy()
        problem.views(moved)[0]["theta"] += 1e-6 * (direction - theta)
        values.append(problem.measure(moved).fun - result.fun)
    # No direction within the simplex decreases the objective, to first order.
    assert min(values) >= -1e-9 * result.fun


def test_theta_of_small_features_is_on_the_simplex():
    """Steps to it are so large that 1 is less than their rounding error."""
    X = np.random.default_rng(0).uniform(-1, 1, (60, 4))
    problem = make("shared", 1e-10 * X, X[:, 0])
    result = mopn.minimize(problem, CoordinateDescent(), max_iter=3)
    assert result.theta.min() >= 0.0
    assert result.theta.sum() == pytest.approx(1.0, abs=1e-12)
    assert result.fun <= result.trace["fun"][0]


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
@pytest.mark.parametrize("loss", LOSSES)
def test_fitted_and_lifted_solutions_are_certified(kernel, loss):
    """Theorem 2 of the ICML paper: both are the nuclear norm problem, whose gap is proven."""
    X, y, _, _ = data()
    y = y if loss == "squared" else np.sign(y)
    convex = mopn.NetworkProblem(X, y, loss=loss, kernel=kernel, norm="l1", strength=0.5)
    lifted = LiftedProblem(X, y, rank=7, kernel=kernel, loss=loss, beta=0.5)
    found = mopn.minimize(lifted, CoordinateDescent(), tol=1e-10, max_iter=5000)
    measure = mopn.certify(convex, *lifted.network(found))
    # The network merges u and v, which need not be balanced.
    assert measure.fun <= found.fun * (1 + 1e-9)
    assert measure.gap <= 1e-3 * found.fun
    direct = FactorizationProblem(X, y, n_components=12, kernel=kernel, loss=loss, beta=0.5, lams="fit")
    found = mopn.minimize(direct, LBFGS(), tol=1e-10, max_iter=5000)
    measure = mopn.certify(convex, *direct.network(found))
    assert measure.fun == pytest.approx(found.fun, rel=1e-9)
    assert measure.gap <= 1e-3 * found.fun


# -- conversions -------------------------------------------------------------------------------------------------------


def test_conversions_keep_the_model():
    rng = np.random.default_rng(0)
    U = rng.standard_normal((2, 3, 7))
    W = 0.5 * (U[0].T @ U[1] + U[1].T @ U[0])
    lams, P = lifted_to_direct(U)
    assert 3 <= len(lams) <= 6
    np.testing.assert_allclose((P.T * lams) @ P, W, atol=1e-12)
    np.testing.assert_allclose(P @ P.T, np.eye(len(P)), atol=1e-12)
    lams, P = rng.standard_normal(4), rng.standard_normal((4, 7))
    basis, weights = direct_to_network(lams, P)
    np.testing.assert_allclose(np.linalg.norm(basis, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose((basis.T * weights[:, 0]) @ basis, (P.T * lams) @ P, atol=1e-12)
    assert np.abs(weights).sum() == pytest.approx(np.abs(lams) @ (P**2).sum(axis=1), rel=1e-12)
    values, vectors = eigen_units(lams, P)
    np.testing.assert_allclose((vectors.T * values) @ vectors, (P.T * lams) @ P, atol=1e-12)
    assert np.abs(values).sum() <= np.abs(weights).sum() + 1e-12


def test_units_without_weight_are_left_out():
    basis, weights = direct_to_network([0.0, 1.0, 2.0], [[1.0, 0.0], [0.0, 0.0], [0.0, 3.0]])
    np.testing.assert_array_equal(basis, [[0.0, 1.0]])
    np.testing.assert_array_equal(weights, [[18.0]])
    assert len(eigen_units(np.zeros(2), np.ones((2, 3)))[0]) == 0


def test_a_network_starts_a_direct_problem():
    X, y, _, _ = data()
    convex = mopn.NetworkProblem(X, y, loss="squared", kernel="anova", norm="l1", strength=0.5)
    network = mopn.minimize(convex, mopn.solvers.ConditionalGradient(refit="full"), tol=1e-6)
    # Unit vectors times sqrt|v|, with lambda the sign of v: an equal model with an equal penalty.
    P = np.sqrt(np.abs(network.weights)) * network.basis
    problem = FactorizationProblem(X, y, n_components=len(P), beta=0.5, lams=np.sign(network.weights[:, 0]))
    assert problem.measure(problem.start({"P": P[None]})).fun == pytest.approx(network.fun, rel=1e-9)


# -- arguments of users -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 7}, "lower the degree"),
        ({"kernel": "all-subsets", "fit_lower": "augment"}, "has all degrees in it"),
        ({"kernel": "homogeneous", "fit_lower": "shared"}, "kernel='anova' only"),
        ({"theta": [1.0, 2.0], "fit_lower": "augment"}, "theta fixes the weights"),
        ({"theta": [1.0]}, "theta must hold 2"),
        ({"lams": [1.0]}, "9 finite numbers"),
        ({"lams": "fit", "penalty": "frobenius"}, "lams='fit' needs penalty='weighted'"),
        ({"lams": "fit", "fit_lower": "explicit"}, "a single degree"),
        ({"loss": "logistic"}, "is for several classes"),
    ],
)
def test_bad_options_of_the_direct_problem(options, message):
    X, y, _, _ = data()
    with pytest.raises((TypeError, ValueError), match=message):
        FactorizationProblem(X, y, **({"n_components": 9} | options))


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (None, {"kernel": "all-subsets"}, "kernel must be"),
        (None, {"kernel": "anova", "degree": 3}, "degree=2 and a single X only"),
        ((np.ones((30, 2)),), {}, "takes one per factor"),
        ((np.ones((30, 2)), np.ones((29, 2))), {}, "the same number of rows"),
        ((np.ones((30, 2)), np.ones((30, 2))), {"fit_linear": True}, "needs a single X"),
    ],
)
def test_bad_options_of_the_lifted_problem(X, options, message):
    data_X, y, _, _ = data()
    with pytest.raises(ValueError, match=message):
        LiftedProblem(data_X if X is None else X, y, **options)


@pytest.mark.parametrize(
    ("kind", "start", "message"),
    [
        ("second", np.zeros(3), "start must be a flat point"),
        ("second", {"P": np.zeros((1, 2, 6))}, r"P\[0\] must have shape \(9, 6\)"),
        ("second", {"P": np.zeros((2, 9, 6))}, "P must have length 1, got 2"),
        ("second", {"P": np.full((1, 9, 6), np.nan)}, r"P\[0\] contains NaN or infinity"),
        ("third and second", {"w": np.zeros(5)}, r"w must have shape \(6,\)"),
        ("lifted", {"U": np.zeros((2, 9, 7))}, "U must have length 3, got 2"),
    ],
)
def test_bad_starts(kind, start, message):
    X, y, _, _ = data()
    with pytest.raises(ValueError, match=message):
        make(kind, X, y).start(start)


@pytest.mark.parametrize("make_one", [FactorizationProblem, LiftedProblem])
def test_random_starts_follow_rng(make_one):
    X, y, _, _ = data()

    def starts(rng):
        problem = make_one(X, y, rng=rng)
        return problem.start(), problem.start()

    default, seeded, other = make_one(X, y).start(), starts(0), starts(1)
    for start in seeded:
        np.testing.assert_array_equal(start, default)
    assert not np.array_equal(other[0], default)
    # A generator is used itself, and so goes on.
    first, second = starts(np.random.default_rng(0))
    np.testing.assert_array_equal(first, default)
    assert not np.array_equal(second, first)
    assert not np.array_equal(*starts(None))
    for rng in (-1, "seed", 0.5):
        with pytest.raises((TypeError, ValueError), match="rng must be a numpy Generator, a seed"):
            make_one(X, y, rng=rng)


@pytest.mark.parametrize(
    ("kind", "solver", "oracle"),
    [("homogeneous", CoordinateDescent(), "blocks"), ("shared", LBFGS(), "gradient"), ("shared", SGD(), "passes"),
     ("fitted", SGD(), "passes")],
)  # fmt: skip
def test_missing_oracles_are_named(kind, solver, oracle):
    X, y, _, _ = data()
    with pytest.raises(TypeError, match=f"'{oracle}'"):
        mopn.minimize(make(kind, X, y), solver)


def test_what_is_no_network_or_several_problems_is_refused():
    X, y, _, _ = data()
    for problem in (make("augmented", X, y), make("lifted", X, y)):
        with pytest.raises(ValueError, match="degree 2"):
            problem.network(problem.unpack(problem.start()))
    with pytest.raises(ValueError, match=r"mopn\.NetworkProblem takes several"):
        FactorizationProblem(X, np.stack([y, y], axis=1))


def test_a_loss_of_ones_own_has_gradients_only():
    class Own(OfParent):
        parent, targets = Squared(), "numbers"

    X, y, _, _ = data()
    own, theirs = (FactorizationProblem(X, y, n_components=3, loss=loss) for loss in (Own(), "squared"))
    assert own.oracles == {"gradient"}
    own, theirs = (mopn.minimize(problem, LBFGS(), tol=1e-8) for problem in (own, theirs))
    assert own.fun == pytest.approx(theirs.fun, rel=1e-6)


def test_columns_without_entries_get_no_weight():
    X, y, _, _ = data()
    X[:, 2] = 0.0
    result = mopn.minimize(make("second", X, y), CoordinateDescent(), tol=0, max_iter=1)
    np.testing.assert_array_equal(result.P[0][:, 2], 0.0)
    # Without a penalty nothing determines them, and nothing divides by zero.
    unrestrained = mopn.minimize(make("second", X, y, beta=0.0), CoordinateDescent(), tol=0, max_iter=1)
    assert np.isfinite(unrestrained.x).all()


def in_units(kind, c, start=0.5):
    """The same problem with features in other units: K, the outputs and the penalties do not change."""
    X, y, _, _ = data()
    return make(kind, X * c, y, alpha=0.2 * c**2, beta=0.3 * c**2, init_scale=start / c)


@pytest.mark.parametrize("c", [2.0**-27, 2.0**20])
@pytest.mark.parametrize("kind", [kind for kind in MULTICONVEX if "augmented" not in kind and kind != "lifted"])
def test_coordinate_descent_does_not_depend_on_the_units_of_the_features(kind, c):
    runs = [mopn.minimize(in_units(kind, unit), CoordinateDescent(), tol=1e-9, max_iter=60) for unit in (1.0, c)]
    assert np.array_equal(runs[0].trace["fun"], runs[1].trace["fun"])
    assert np.array_equal(runs[0].trace["decrease"], runs[1].trace["decrease"], equal_nan=True)
    assert runs[0].status == runs[1].status


@pytest.mark.parametrize("solver", [CoordinateDescent(), LBFGS()])
def test_nothing_is_left_to_gain_where_a_run_stops_at_its_precision(solver):
    """With tol = 0 the derivatives are tested last, in units in which the curvature is the objective."""
    problem = in_units("second", 1e-7)
    result = mopn.minimize(problem, solver, tol=0, max_iter=5000)
    assert result.success
    gradient, h = problem.value_gradient(result.x).gradient, 1e-4 * np.abs(result.x).max()
    steps = h * np.eye(problem.size)
    bend = [problem.measure(result.x + s).fun + problem.measure(result.x - s).fun - 2 * result.fun for s in steps]
    assert np.all(h**2 * gradient**2 <= 1e-12 * result.fun * np.array(bend))


@pytest.mark.parametrize("solver", [CoordinateDescent(), LBFGS()])
def test_a_run_from_a_far_start_goes_on_to_a_minimum(solver):
    """With features of a million and units of 0.1, the objective at the start is 1e20 times what zero has.

    Whether the last test or the precision ends it is a matter of rounding.
    """
    X, y, _, _ = data()
    problem = FactorizationProblem(1e6 * X, y, n_components=3)
    result = mopn.minimize(problem, solver, tol=1e-9, max_iter=3000)
    # At so large outputs rounding may end L-BFGS before its tolerance does.
    assert result.status in (mopn.Status.CONVERGED, mopn.Status.STALLED)
    assert result.fun <= problem.value_gradient(np.zeros(problem.size)).value


@pytest.mark.parametrize("solver", [CoordinateDescent(), LBFGS()])
def test_a_perfect_fit_has_converged(solver):
    """The objective falls to 0, and relative to itself it always decreases."""
    X = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    problem = FactorizationProblem(X, X[:, 0] * X[:, 1], n_components=3, beta=0.0)
    result = mopn.minimize(problem, solver, tol=1e-9, max_iter=20000)
    assert result.success
    assert result.fun < 1e-20


@pytest.mark.parametrize("loss", ["squared", "binary-logistic"])
@pytest.mark.parametrize("kind", ["second", "third and second", "fitted", "signs", "lifted"])
def test_a_gradient_method_does_not_depend_on_the_unit_of_the_data(kind, loss):
    """In powers of two nothing is rounded differently: with the penalties in the same unit, all points are the same."""
    X, y = np.random.default_rng(3).uniform(-1.0, 1.0, (60, 5)), np.random.default_rng(4).standard_normal(60) + 1.0
    y = y if loss == "squared" else np.sign(y)
    make, options = (LiftedProblem, LIFTED) if kind in LIFTED else (FactorizationProblem, DIRECT)
    size = {"rank": 3} if kind in LIFTED else {"n_components": 3}
    options = options[kind] | size | {"augment": False} if kind in LIFTED else options[kind] | size
    options = options | {"fit_linear": True, "fit_intercept": True, "loss": loss}
    runs = []
    for c in (1.0, 2.0**-15, 2.0**16):
        problem = make(c * X, y, alpha=0.1 * c**2, beta=0.1 * c**2, init_scale=0.1 / c, **options)
        runs.append(mopn.minimize(problem, LBFGS(), tol=1e-6, max_iter=60))
    assert [run.fun for run in runs] == [runs[0].fun] * 3
    assert runs[0].fun < runs[0].trace["fun"][0]


@pytest.mark.parametrize("kind", ["signs", "augmented and linear", "lifted", "lifted anova", "bilinear"])
def test_popular_features_do_not_slow_a_gradient_method_down_beside_a_large_ridge(kind):
    """The curvature of the ridge is the same for all features: scales for their numbers of samples would spoil it."""
    rng = np.random.default_rng(0)
    popularity = 1.0 / (5.0 + np.arange(2000))
    X = sparse.csr_array((rng.random((300, 2000)) < np.minimum(20.0 * popularity / popularity.sum(), 0.9)) / 4.0)
    y, ridge = 3.0 + X @ rng.standard_normal(2000), 100.0
    X = (X, X) if kind == "bilinear" else X
    options = {"beta": ridge, "alpha": ridge, "init_scale": 1.0}
    if kind in LIFTED:
        problem = LiftedProblem(X, y, rank=3, **(LIFTED[kind] | options))
    else:
        problem = FactorizationProblem(X, y, n_components=6, **(DIRECT[kind] | options))
    level = (1 + 1e-6) * mopn.minimize(problem, LBFGS(), tol=0.0, max_iter=200).fun

    def evaluations(scales):
        seen = []

        def function(x):
            seen.append(x)
            return problem.value_gradient(x)

        iterates = quasi_newton(function, problem.start(), 20, None, scales)
        assert any(at.value <= level for _, at, _ in itertools.islice(iterates, 400))
        return len(seen)

    assert evaluations(problem.scales) <= 1.5 * evaluations(None)

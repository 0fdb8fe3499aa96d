"""Nonnegative weights: the one-sided dual norm and its proofs, gaps against matrices, and points that stay feasible."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from networks import data, draw_forms, every_form, every_kernel
from properties import seeds, tried
from scipy.linalg import hadamard
from stacks import draw, every_kind, shapes, unit_vectors

import mopn
from mopn.core.norms import NORMS
from mopn.core.regularizers import make_regularizer
from mopn.network.gradient_forms import GradientForms
from mopn.oracles import basis_oracle
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint, OutputRefit, PlainStep
from mopn.solvers.sphere import search
from mopn.solvers.sphere.cholesky import norm_bound

NAME = "nonnegative-l1"
NORM = NORMS[NAME]
METHODS = ["auto", "power", "eigh", "refine", "exact"]

FULL = ConditionalGradient(refit="full")

every_method = pytest.mark.parametrize("method", METHODS)


def make(loss="logistic", kernel="homogeneous", norm=NAME, **form):
    X, y = data(loss)
    return X, mopn.NetworkProblem(X, y, loss=loss, kernel=kernel, norm=norm, **(form or {"strength": 1.0}))


def least_values(stack, H):
    """The largest -h' Gamma_c h / ||h||^2 of any output for the rows of H, or 0, in extended precision."""
    stack, H = np.asarray(stack, dtype=np.longdouble), np.asarray(H, dtype=np.longdouble)
    forms = np.einsum("kj,cjl,kl->kc", H, stack, H) / np.sum(H * H, axis=1)[:, None]
    return np.maximum(-forms.min(axis=1), 0)


@tried(30, seed=seeds, k=st.integers(1, 4), m=st.integers(1, 3))
def test_dual_norm_is_the_maximum_over_extreme_points(seed, k, m):
    """The nonnegative part of the ball has the extreme points 0 and the unit vectors."""
    G = np.random.default_rng(seed).integers(-2, 3, size=(k, m)).astype(float)
    points = np.vstack([np.zeros((1, k * m)), np.eye(k * m)]).reshape(-1, k, m)
    assert NORM.dual(G) == max(-np.vdot(G, point) for point in points)
    best = NORM.steepest(G)
    assert (best >= 0).all()
    assert all(NORM.value(row[None]) <= 1.0 for row in best)
    np.testing.assert_array_equal(np.sum(best * G, axis=1), -NORM.duals(G))
    assert make_regularizer(NAME, None, 2.5).conjugate(NORM.dual(G)) == max(-2.5 * np.vdot(G, p) for p in points)


@every_form
@tried(30, seed=seeds, size=st.sampled_from([0.0, 1e-9, 0.3, 2.0, 100.0]))
def test_prox_is_the_best_feasible_point(form, seed, size):
    """By the variational inequality <V - P, U - P> <= step (R(U) - R(P)) for all feasible U, at random ones."""
    rng = np.random.default_rng(seed)
    V, sizes = rng.standard_normal((3, 2)), {"strength": None, "radius": None, form: size}
    regularizer = make_regularizer(NAME, **sizes)
    P = regularizer.prox(V, 0.7)
    regularizer.check_feasible(P)
    for scale in (0.0, 1e-3, 1.0, 1e3):
        U = np.maximum(P + scale * rng.standard_normal(V.shape), 0.0)
        if form == "radius":
            U *= min(1.0, size / max(U.sum(), 1e-300))
        left, right = np.vdot(V - P, U - P), 0.7 * (regularizer.value(U) - regularizer.value(P))
        assert left <= right + 1e-13 * (1.0 + np.abs(U).sum() * (1.0 + size))


# -- the oracle --------------------------------------------------------------------------------------------------------


@every_method
@every_kind
@tried(6, seed=seeds, shape=shapes)
def test_the_oracle_finds_and_proves_the_least_eigenvalue(method, kind, seed, shape):
    rng, stack = draw(kind, seed, shape)
    optimum = max(0.0, -np.linalg.eigvalsh(stack).min())
    size = max(np.abs(stack).max(), math.ulp(0.0))
    answer = basis_oracle(NAME, method)(stack)
    expected = least_values(stack, answer.basis).astype(float)
    np.testing.assert_allclose(answer.values, expected, rtol=0, atol=1e-13 * size)
    candidates = np.vstack([answer.basis, unit_vectors(rng, 50, shape[1]), np.linalg.eigh(stack)[1][:, :, 0]])
    assert least_values(stack, candidates).max() <= answer.bound <= optimum + 1e-11 * size
    assert answer.values[0] >= optimum - 1e-12 * size
    assert basis_oracle(NAME, method).bound(stack) == answer.bound


@pytest.mark.parametrize("method", ["exact", "auto", "power"])
@every_kernel
@tried(4, seed=seeds, data=st.sampled_from(["dense", "positive", "cancelling", "unequal", "zero"]), csr=st.booleans())
def test_the_oracle_without_a_stack(method, kernel, seed, data, csr):
    """By Lanczos, and by one Cholesky factor for each output."""
    forms, _, _ = draw_forms(kernel, data, seed, n=12, d=5, sparsely=csr)
    matrices = forms.dense.matrices
    optimum, size = max(0.0, -np.linalg.eigvalsh(matrices).min()), np.linalg.norm(matrices)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "DENSE_LIMIT", 0)
        patch.setattr(search, "COMPRESSED_LIMIT", 0)
        patch.setattr(search, "FEW_FEATURES", 0)
        patch.delattr(GradientForms, "dense")
        answer = basis_oracle(NAME, method)(forms)
    assert least_values(matrices, np.linalg.eigh(matrices)[1][:, :, 0]).max() <= answer.bound
    assert answer.values[0] >= optimum * (1 - 1e-5) - 1e-9 * size
    if method != "power":
        assert answer.bound <= optimum * (1 + 1e-5) + 1e-9 * size + 10 * forms.rounding(np.inf)


@pytest.mark.parametrize("exponent", [-500, 0, 500])
@pytest.mark.parametrize("largest", [1.0, 2.0**20, 2.0**44])
@pytest.mark.parametrize("least", [-3.0, -1.0, 0.0, 1.0])
def test_no_bound_is_below_a_known_eigenvalue(exponent, largest, least):
    """Matrices with exact entries and eigenvalues; the least is tiny compared with the largest, or is there twice."""
    H = hadamard(4)
    for values in ([largest, 5.0, 2.0, least], [largest, 1.0, least, least]):
        matrix = H @ np.diag(values) @ H.T / 4.0
        assert max(-least, 0.0) <= norm_bound(matrix, max(-least, 0.0), 1e-8, one_sided=True)
        matrix = np.ldexp(matrix, exponent)
        exact, size = np.ldexp(max(-least, 0.0), exponent), np.ldexp(largest, exponent)
        stack = np.array([matrix, np.zeros((4, 4)), 0.5 * matrix])
        for method in METHODS:
            assert exact <= basis_oracle(NAME, method).bound(stack) <= exact + 1e-12 * size


def test_proofs_of_moduli_are_refused():
    with pytest.raises(ValueError, match="'lanczos' bounds moduli, got norm='nonnegative-l1'; take 'exact'"):
        basis_oracle(NAME, "lanczos")
    _, problem = make()
    for norm, other in ((NAME, make(norm="l1")[1]), ("l1", problem)):
        with pytest.raises(ValueError, match="proves nothing for this problem's"):
            mopn.certify(other, np.zeros((0, 4)), np.zeros((0, 3)), basis_oracle(norm))


def test_own_oracles_are_valued_from_one_side():
    _, problem = make("squared")
    run = problem.oracle(lambda gammas: np.linalg.eigh(gammas)[1][:, :, [0, -1]].transpose(0, 2, 1).reshape(-1, 4))
    at = problem.output_gradient(problem.start())
    expected, found = problem.lmo(at), problem.lmo(at, run)
    assert found.values[0] == pytest.approx(expected.values[0], rel=1e-12)
    assert abs(found.basis[0] @ expected.basis[0]) == pytest.approx(1.0)
    assert found.bound == expected.bound


# -- gaps --------------------------------------------------------------------------------------------------------------


@every_form
@every_kernel
@pytest.mark.parametrize(
    "solver",
    [
        ConditionalGradient(refit="none"),
        ConditionalGradient(refit=PlainStep(direction="away")),
        ConditionalGradient(refit=PlainStep(direction="pairwise")),
        ConditionalGradient(refit=OutputRefit(solver=FISTA(), max_iter=20)),
        ConditionalGradient(refit="full", max_units=3),
    ],
    ids=str,
)
def test_no_solver_leaves_nonnegative_weights(solver, kernel, form):
    _, problem = make("squared", kernel, **{form: 1.5})
    best = mopn.minimize(problem, FULL, tol=1e-6)
    result = mopn.minimize(problem, solver, tol=1e-6, max_iter=40)
    assert (result.weights >= 0).all()
    assert result.weights.any()
    assert result.fun - result.gap <= best.fun
    assert best.fun - best.gap <= result.fun + 1e-12 * best.fun


def test_joint_refits_end_at_nonnegative_weights():
    """Parallel units are merged into eigenvectors, whose eigenvalues rounding makes negative."""
    _, problem = make()
    H = np.repeat(unit_vectors(np.random.default_rng(0), 2, 4), 30, axis=0)
    joint = problem.joint(problem.start((H, np.ones((60, 3)))))
    merged = joint.unpack(joint.start())
    assert (merged["weights"] >= 0).all()
    network = problem.with_random_units(problem.start(), 12, np.random.default_rng(0))
    assert (network.weights >= 0).all()
    assert network.weights.any(axis=1).all()


def test_zero_is_the_solution_from_the_largest_strength_on():
    _, problem = make("squared")
    largest = problem.strength_max()
    assert not mopn.minimize(problem.with_strength(largest), FULL, tol=1e-6).weights.any()
    assert mopn.minimize(problem.with_strength(0.9 * largest), FULL, tol=1e-6).weights.any()
    # One-sided: with the other sign of all targets it is another one.
    X, y = data("squared")
    other = mopn.NetworkProblem(X, -y, loss="squared", norm=NAME, strength=1.0)
    both = mopn.NetworkProblem(X, y, loss="squared", norm="l1", strength=1.0)
    assert max(largest, other.strength_max()) == pytest.approx(both.strength_max(), rel=1e-12)


@every_form
def test_zero_is_the_solution_where_units_could_only_harm(form):
    """Targets below 0, which nonnegative sums of squares do not come nearer to."""
    X, _ = data("squared")
    problem = mopn.NetworkProblem(X, -1.0 - X[:, 0] ** 2, loss="squared", norm=NAME, **{form: 0.5})
    result = mopn.minimize(problem, FULL, tol=1e-9)
    assert result.success
    assert not result.weights.any()


def test_negative_weights_are_refused_or_set_to_zero():
    X, problem = make()
    H, V = np.eye(4)[:2], np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 2.0]])
    message = "the weights must be nonnegative for norm='nonnegative-l1', and the least is -1; set negative ones to 0"
    for form in ({"strength": 1.0}, {"radius": 9.0}):
        with pytest.raises(ValueError, match=message):
            mopn.certify(make(**form)[1], H, V)
    with pytest.raises(ValueError, match=message):
        mopn.certify_network(H, V, X=X, y=data("logistic")[1], norm=NAME)
    np.testing.assert_array_equal(problem.start((H, V)).weights, np.maximum(V, 0.0))
    assert mopn.certify_network(H, np.abs(V), X=X, y=data("logistic")[1], norm=NAME).gap > 0


def test_solvers_of_weights_of_both_signs_are_refused():
    _, problem = make()
    layer = problem.output_layer(problem.start((np.eye(4), np.ones((4, 3)))))
    with pytest.raises(TypeError, match="there is none for nonnegative weights; use FISTA"):
        mopn.minimize(layer, InteriorPoint())
    _, free = make(strength=0.0)
    result = mopn.minimize(free, ConditionalGradient(refit=OutputRefit(solver=FISTA(), max_iter=20)), tol=0, max_iter=3)
    assert (result.weights >= 0).all()
    assert result.weights.any()

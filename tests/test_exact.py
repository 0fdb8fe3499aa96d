"""What is called exact or proven: branch and bound, sums of squares, the smooth joint refit and certificates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from reference import matrix_optimum

import mopn
from mopn.oracles import basis_oracle
from mopn.solvers import FISTA, LBFGS, ConditionalGradient
from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.branch_and_bound import branch_and_bound
from mopn.solvers.sphere.sum_of_squares import relax

NORMS = ("l1", "l1/l2", "l1/linf")
RNG = np.random.default_rng


def stacks(kind, rng):
    """Symmetric stacks of one kind, m and d at random."""
    m, d = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    A = rng.standard_normal((m, d, d))
    A = A + A.transpose(0, 2, 1)
    if kind == "sum to zero":
        A -= A.mean(axis=0)
    if kind == "rank one":
        h = rng.standard_normal((m, d))
        A = np.einsum("ci,cj->cij", h, h) * rng.choice((-1.0, 1.0), m)[:, None, None]
    if kind == "zero":
        A[:] = 0.0
    if kind == "duplicated":
        A[:] = A[:1]
    if kind == "tiny":
        A *= 1e-12
    if kind == "huge":
        A *= 1e12
    if kind == "near ties":
        A = np.einsum("c,ij->cij", 1.0 + 1e-9 * rng.standard_normal(m), np.eye(d))
    return A


KINDS = ("gaussian", "sum to zero", "rank one", "zero", "duplicated", "tiny", "huge", "near ties")


def enumerated(A):
    """The maximum of sum_c |h' A_c h|: the largest eigenvalue over all sign vectors."""
    signs = itertools.product((1.0, -1.0), repeat=len(A))
    return max(np.linalg.eigvalsh(np.tensordot(s, A, 1))[-1] for s in signs)


def best_of_many(A, p, rng, starts=200):
    """A lower bound of the maximum: the best of many refined random starts."""
    H = rng.standard_normal((starts, A.shape[1]))
    return refine(DenseStack(A), H / np.linalg.norm(H, axis=1, keepdims=True), p)[1].max()


@pytest.mark.parametrize("kind", KINDS)
def test_branch_and_bound_is_enumeration(kind):
    rng = RNG(1)
    for _ in range(40):
        A = stacks(kind, rng)
        d = A.shape[1]
        optimum = enumerated(A)
        h, bound = branch_and_bound(DenseStack(A), np.eye(d)[:1])
        value = np.abs(np.einsum("i,cij,j->c", h, A, h)).sum()
        assert np.linalg.norm(h) == pytest.approx(1.0, rel=1e-12)
        assert bound >= optimum
        assert value >= optimum * (1 - 1e-9)
        assert bound <= optimum * (1 + 2e-9)


@pytest.mark.parametrize("max_nodes", [0, 2, 10, 50])
def test_branch_and_bound_is_a_proof_at_any_limit(max_nodes):
    rng = RNG(2)
    for _ in range(30):
        A = stacks("gaussian", rng)
        h, bound = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], max_nodes=max_nodes)
        optimum = enumerated(A)
        assert bound >= optimum
        assert np.abs(np.einsum("i,cij,j->c", h, A, h)).sum() <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("tol", [1e-3, 1e-1])
def test_branch_and_bound_keeps_its_pruning_tolerance(tol):
    rng = RNG(3)
    for _ in range(30):
        A = stacks("sum to zero", rng)
        h, bound = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], tol=tol)
        value = np.abs(np.einsum("i,cij,j->c", h, A, h)).sum()
        assert enumerated(A) <= bound <= value * (1 + tol) * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_sum_of_squares_bounds_every_value(kind):
    rng = RNG(4)
    for _ in range(15):
        A = stacks(kind, rng)
        stack, scale = DenseStack(A).scaled()
        relaxation = relax(stack)
        value = best_of_many(stack.matrices, 2, rng, starts=50)
        assert relaxation.bound >= value
        # Tight but for rounding, on forms as small as these.
        assert relaxation.bound <= value * (1 + 1e-3) + 1e-7
        assert scale > 0


def test_sum_of_squares_proof_can_be_checked():
    """The N it returns is symmetric, vanishes on every hh', and its eigenvalue is the bound."""
    rng = RNG(5)
    A = stacks("gaussian", rng)
    A = A / np.abs(A).max()
    d = A.shape[1]
    relaxation = relax(DenseStack(A))
    i, j = np.triu_indices(d)
    scale = np.where(i == j, 1.0, np.sqrt(2.0))
    H = rng.standard_normal((100, d))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    lifted = H[:, i] * H[:, j] * scale
    assert np.abs(np.einsum("ra,ab,rb->r", lifted, relaxation.N, lifted)).max() < 1e-12
    vectors = A[:, i, j] * scale
    top = np.linalg.eigvalsh(vectors.T @ vectors + relaxation.N)[-1]
    assert relaxation.bound == pytest.approx(np.sqrt(top), rel=1e-9)


def test_a_form_whose_relaxation_is_not_tight_stays_bounded():
    """Motzkin-like: sum of squares need not reach the maximum of a quartic; the bound must still hold."""
    rng = RNG(6)
    for _ in range(20):
        A = rng.standard_normal((2, 5, 5))
        A = A + A.transpose(0, 2, 1)
        A[1] = -A[0] + 1e-3 * A[1]
        assert relax(DenseStack(A)).bound >= best_of_many(A, 2, rng)


@pytest.mark.parametrize("norm", NORMS)
def test_exact_oracle_meets_its_bound(norm):
    rng = RNG(7)
    oracle = basis_oracle(norm, method="exact")
    for kind in ("gaussian", "sum to zero", "rank one"):
        A = stacks(kind, rng)
        p = {"l1": np.inf, "l1/l2": 2, "l1/linf": 1}[norm]
        atoms = oracle(A)
        assert atoms.bound >= best_of_many(A, p, rng)
        assert atoms.values[0] >= best_of_many(A, p, rng) * (1 - 1e-6)
        assert atoms.bound <= atoms.values[0] * (1 + 1e-3)


@pytest.mark.parametrize("norm", ["l1/l2", "l1/linf"])
def test_precision_trades_work_for_tightness(norm):
    A = stacks("gaussian", RNG(11))
    p = {"l1/l2": 2, "l1/linf": 1}[norm]
    oracle = basis_oracle(norm, method="exact")
    for precision in (1.0, 1e-1, 1e-2, 1e-4):
        atoms = oracle(A, precision)
        assert atoms.values[0] <= best_of_many(A, p, RNG(0)) * (1 + 1e-9)
        assert atoms.bound >= best_of_many(A, p, RNG(0))
        assert atoms.bound <= atoms.values[0] * (1 + precision) * (1 + 1e-6)


# -- the joint refit ---------------------------------------------------------------------------------------------------


def problem_of(norm, form="strength", value=1.0, loss="logistic", kernel="homogeneous", n=60, d=4):
    rng = RNG(0)
    X = rng.uniform(-1, 1, (n, d))
    y = np.argmax(np.einsum("ni,cij,nj->nc", X, rng.standard_normal((3, d, d)), X), axis=1)
    y = np.arange(n) % 3 if len(set(y)) < 3 else y
    return mopn.NetworkProblem(X, y, loss=loss, kernel=kernel, norm=norm, augment=True, **{form: value})


def random_network(problem, seed=1, k=5):
    rng = RNG(seed)
    weights = rng.standard_normal((k, problem.fit.n_outputs))
    weights[0, 1:] = 0.0
    return problem.start((rng.standard_normal((k, problem.design.shape[1])), weights))


joint_forms = pytest.mark.parametrize("form", ["strength", "radius"])
every_norm = pytest.mark.parametrize("norm", NORMS)


@joint_forms
@every_norm
@pytest.mark.parametrize("kernel", ["homogeneous", "anova"])
def test_smooth_joint_gradient(norm, form, kernel):
    problem = problem_of(norm, form, kernel=kernel, n=20)
    joint = problem.joint(random_network(problem))
    x = joint.start() * RNG(2).uniform(0.8, 1.2, joint.start().size)
    gradient = joint.value_gradient(x).gradient
    for j, e in enumerate(np.eye(len(x))):
        difference = (joint.value_gradient(x + 1e-6 * e).value - joint.value_gradient(x - 1e-6 * e).value) / 2e-6
        assert gradient[j] == pytest.approx(difference, rel=1e-5, abs=1e-6)


@joint_forms
@every_norm
def test_joint_point_is_the_network(norm, form):
    """Outputs are equal and the objective is not larger after mapping to a point and back."""
    problem = problem_of(norm, form, value=3.0)
    network = random_network(problem)
    joint = problem.joint(network)
    views = joint.unpack(joint.start())
    again = problem.network(views["basis"], views["weights"])
    fun = problem.residual(network).fun
    assert np.linalg.norm(views["basis"], axis=1) == pytest.approx(1.0, rel=1e-12)
    assert problem.norm.value(views["weights"]) <= problem.norm.value(network.weights) * (1 + 1e-12) or form == "radius"
    if form == "strength":
        assert again.outputs == pytest.approx(network.outputs, rel=1e-9, abs=1e-9)
        assert joint.value_gradient(joint.start()).value == pytest.approx(fun, rel=1e-12)
        assert problem.residual(again).fun <= fun * (1 + 1e-12)
    else:
        assert problem.norm.value(again.weights) <= 3.0 * (1 + 1e-9)


@joint_forms
@every_norm
def test_joint_refit_improves_and_stays_feasible(norm, form):
    problem = problem_of(norm, form, value=2.0)
    network = random_network(problem)
    for solver, oracle in ((LBFGS(), "gradient"), (FISTA(), "composite")):
        joint = problem.joint(network, oracle)
        before = joint.measure(joint.start()).fun
        result = mopn.minimize(joint, solver, tol=1e-8, max_iter=300)
        after = problem.network(result.basis, result.weights)
        assert problem.residual(after).fun <= result.fun * (1 + 1e-9)
        assert result.fun < before
        if form == "radius":
            assert problem.norm.value(result.weights) <= 2.0 * (1 + 1e-9)


def test_recompression_keeps_outputs_and_limits_units():
    problem = problem_of("l1", d=3)
    rng = RNG(3)
    network = problem.start((rng.standard_normal((30, 4)), rng.standard_normal((30, 3))))
    joint = problem.joint(network)
    views = joint.unpack(joint.start())
    assert len(views["basis"]) <= 4 * 3
    again = problem.network(views["basis"], views["weights"])
    assert again.outputs == pytest.approx(network.outputs, rel=1e-9, abs=1e-9)
    W = np.einsum("rc,ri,rj->cij", network.weights, network.basis, network.basis)
    nuclear = np.abs(np.linalg.eigvalsh(W)).sum()
    assert np.abs(views["weights"]).sum() == pytest.approx(nuclear, rel=1e-9)


def test_merging_parallel_units():
    problem = problem_of("l1/l2")
    rng = RNG(4)
    h = rng.standard_normal((2, 5))
    basis = np.vstack([h, -h[0], h[1] + 1e-6 * rng.standard_normal(5)])
    weights = rng.standard_normal((4, 3))
    network = problem.start((basis, weights))
    merged = network.merge_parallel_units()
    assert merged.n_units == 2
    assert merged.outputs == pytest.approx(network.outputs, rel=1e-4, abs=1e-4)
    assert problem.norm.value(merged.weights) <= problem.norm.value(network.weights) * (1 + 1e-12)
    assert merged.features == pytest.approx(problem.features(merged.basis))
    assert merged.merge_parallel_units() is merged


# -- whole fits, proven ------------------------------------------------------------------------------------------------


@joint_forms
@every_norm
@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
def test_fits_are_proven_optimal(norm, form, loss):
    problem = problem_of(norm, form, value=2.0, loss=loss)
    solver = ConditionalGradient(refit="full", oracle="exact", atoms_per_round=3)
    result = mopn.minimize(problem, solver, tol=1e-4, max_iter=60)
    assert result.success, result
    assert result.certified
    # A run with another refit and another oracle finds nothing below what is proven.
    other = mopn.minimize(problem, ConditionalGradient(oracle="refine"), tol=1e-6, max_iter=60)
    assert other.fun >= result.fun - result.gap


@pytest.mark.parametrize("norm", ["l1", "l1/linf"])
def test_proven_fit_is_the_independent_optimum(norm):
    rng = RNG(5)
    X = rng.uniform(-1, 1, (30, 3))
    y = np.arange(30) % 3
    problem = mopn.NetworkProblem(X, y, norm=norm, strength=1.0)
    optimum = matrix_optimum(problem.fit, X, norm, 1.0)
    result = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="exact"), tol=1e-6, max_iter=100)
    assert result.success
    assert result.fun == pytest.approx(optimum, rel=1e-6)


@every_norm
@joint_forms
def test_certify_any_model(norm, form):
    problem = problem_of(norm, form, value=1.5)
    best = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="exact"), tol=1e-4, max_iter=60)
    measure = mopn.certify(problem, best.basis, best.weights, "exact")
    assert measure.fun == pytest.approx(best.fun, rel=1e-12)
    assert measure.gap <= 3e-3 * measure.fun
    # A model found by something else, with units of other lengths.
    rng = RNG(6)
    basis, weights = 0.5 * rng.standard_normal((4, 5)), 0.1 * rng.standard_normal((4, 3))
    other = mopn.certify(problem, basis, weights)
    assert other.fun - other.gap <= best.fun <= other.fun


def test_certify_refuses_what_it_cannot_certify():
    ball = problem_of("l1", "radius", value=1.0)
    with pytest.raises(ValueError, match="outside the ball of radius 1"):
        mopn.certify(ball, np.ones((1, 5)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="strength=0 no certificate"):
        mopn.certify(problem_of("l1", "strength", value=0.0), np.ones((1, 5)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="basis \\(k, 5\\)"):
        mopn.certify(ball, np.ones((1, 4)), np.ones((1, 3)))

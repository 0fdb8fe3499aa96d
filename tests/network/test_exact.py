"""What is called exact or proven: branch and bound, sums of squares, the smooth joint refit and certificates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from reference import matrix_optimum
from scipy import sparse

import mopn
from mopn.network import oracles
from mopn.network.gradient_forms import GradientForms
from mopn.oracles import basis_oracle
from mopn.solvers import FISTA, LBFGS, ConditionalGradient, Status
from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.branch_regions import split_and_bound
from mopn.solvers.sphere.branch_signs import branch_and_bound
from mopn.solvers.sphere.cholesky import expected_seconds, norm_bound
from mopn.solvers.sphere.majorants import majorants
from mopn.solvers.sphere.starts import gram_starts
from mopn.solvers.sphere.sum_of_squares import Budget, Quartic, relax

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
        h, bound, _ = branch_and_bound(DenseStack(A), np.eye(d)[:1])
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
        h, bound, _ = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], max_nodes=max_nodes)
        optimum = enumerated(A)
        assert bound >= optimum
        assert np.abs(np.einsum("i,cij,j->c", h, A, h)).sum() <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("tol", [1e-3, 1e-1])
def test_branch_and_bound_keeps_its_pruning_tolerance(tol):
    rng = RNG(3)
    for _ in range(30):
        A = stacks("sum to zero", rng)
        h, bound, _ = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], tol=tol)
        value = np.abs(np.einsum("i,cij,j->c", h, A, h)).sum()
        assert enumerated(A) <= bound <= value * (1 + tol) * (1 + 1e-9)


def relaxed(A, looks=5000):
    """The bound of sums of squares on the whole sphere, and what proves it."""
    quartic = Quartic(DenseStack(A))
    return relax(quartic, quartic.whole(), 0.0, Budget(looks))


@pytest.mark.parametrize("kind", KINDS)
def test_majorants_cover_every_form(kind):
    rng, gains = RNG(18), []
    for _ in range(20):
        stack, _ = DenseStack(stacks(kind, rng)).scaled()
        M, lacking = majorants(stack)
        H = rng.standard_normal((200, stack.shape[1]))
        H /= np.linalg.norm(H, axis=1, keepdims=True)
        covered = np.einsum("ki,ij,kj->k", H, M.sum(axis=0), H) + lacking
        assert (np.abs(stack.forms(H)).sum(axis=1) <= covered).all()
        assert lacking <= 1e-6
        plain, better = (np.linalg.eigvalsh(matrices.sum(axis=0))[-1] for matrices in (stack.moduli, M))
        assert better <= plain * (1 + 1e-12)
        gains.append(plain / better if better > 0 else 1.0)
    # Worth having: on stacks in no special position the sum is clearly smaller than that of the absolute values.
    assert np.median(gains) > 1.02 or kind != "gaussian"


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_rounding_chooses_no_start(m, p):
    """Matrices that add up to zero have a combination that is rounding alone: its eigenvectors are no starts."""
    rng = RNG(20)
    A = rng.standard_normal((m, 6, 6))
    A = A + A.transpose(0, 2, 1)
    A -= A.mean(axis=0)
    starts = gram_starts(DenseStack(A), p)
    for _ in range(5):
        noise = 1 + 1e-15 * rng.standard_normal(A.shape)
        moved = gram_starts(DenseStack(A * 0.5 * (noise + noise.transpose(0, 2, 1))), p)
        assert moved.shape == starts.shape
        assert np.abs(np.einsum("kd,kd->k", moved, starts)).min() > 1 - 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1, 2])
def test_gram_starts_have_their_proven_value(kind, p):
    """||sum_c w_c Gamma_c||_2 >= ||.||_F / sqrt(d), and single flips end where s'Ms >= trace(M)."""
    rng = RNG(19)
    for _ in range(20):
        stack, _ = DenseStack(stacks(kind, rng)).scaled()
        best = np.linalg.norm(stack.forms(gram_starts(stack, p)), p, axis=1).max(initial=0.0)
        M = np.einsum("cij,eij->ce", stack.matrices, stack.matrices)
        square = np.trace(M) if p == 1 else np.linalg.eigvalsh(M)[-1]
        assert best >= np.sqrt(square / stack.shape[1]) * (1 - 1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_refinement_of_many_is_that_of_each(p):
    stack = DenseStack(stacks("gaussian", RNG(20)))
    H = RNG(21).standard_normal((12, stack.shape[1]))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    together, values = refine(stack, H, p)
    alone = [refine(stack, h[None], p) for h in H]
    np.testing.assert_allclose(values, [value[0] for _, value in alone], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(together * np.vstack([h for h, _ in alone]), axis=1)), 1.0, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_sum_of_squares_bounds_every_value(kind):
    rng = RNG(4)
    for _ in range(15):
        stack, _ = DenseStack(stacks(kind, rng)).scaled()
        value = best_of_many(stack.matrices, 2, rng, starts=50)
        bound = np.sqrt(relaxed(stack.matrices).bound)
        assert bound >= value
        # Tight but for rounding, on forms as small as these.
        assert bound <= value * (1 + 1e-3) + 1e-7


def test_sum_of_squares_proof_can_be_checked():
    """The N it returns is symmetric, vanishes on every hh', and its eigenvalue is the bound."""
    rng = RNG(5)
    A = stacks("gaussian", rng)
    A = A / np.abs(A).max()
    d = A.shape[1]
    relaxation = relaxed(A)
    i, j = np.triu_indices(d)
    scale = np.where(i == j, 1.0, np.sqrt(2.0))
    H = rng.standard_normal((100, d))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    lifted = H[:, i] * H[:, j] * scale
    assert np.abs(np.einsum("ra,ab,rb->r", lifted, relaxation.N, lifted)).max() < 1e-12
    vectors = A[:, i, j] * scale
    top = np.linalg.eigvalsh(vectors.T @ vectors + relaxation.N)[-1]
    assert relaxation.bound == pytest.approx(top, rel=1e-9)


def test_sum_of_squares_on_part_of_the_sphere():
    """With a cut, the bound holds where the cut is positive, and is below that of the whole sphere for some cut."""
    rng = RNG(13)
    lower = 0
    for _ in range(10):
        A = rng.standard_normal((3, 3, 3))
        A = A + A.transpose(0, 2, 1)
        B = rng.standard_normal((3, 3))
        B = B + B.T
        quartic = Quartic(DenseStack(A))
        whole = relax(quartic, quartic.whole(), 0.0, Budget(3000))
        part = whole.cut(quartic.lift.vectors(B[None])[0], quartic, whole.bound)
        part = relax(quartic, part, 0.0, Budget(3000))
        H = rng.standard_normal((20_000, 3))
        H /= np.linalg.norm(H, axis=1, keepdims=True)
        inside = np.einsum("ki,ij,kj->k", H, B, H) >= 0
        values = (np.einsum("ki,cij,kj->kc", H, A, H) ** 2).sum(axis=1)
        assert part.bound >= values[inside].max(initial=0.0)
        assert part.bound <= whole.bound
        lower += part.bound < 0.99 * whole.bound
    assert lower >= 2


def choi_lam_stack():
    """A stack with sum_c q_c^2 = 2 |h|^4 - F for Choi and Lam's form F = w^4 + x^2 y^2 + y^2 z^2 + z^2 x^2 - 4wxyz.

    F is nonnegative, zero at (1, 1, 1, 1), and no sum of squares: the maximum is 2, and the relaxation is not tight.
    """
    i, j = np.triu_indices(4)
    place = {(a, b): r for r, (a, b) in enumerate(zip(i, j, strict=True))}
    F = np.zeros((10, 10))
    F[0, 0] = 1.0
    for pair in ((1, 2), (2, 3), (1, 3)):
        F[place[pair], place[pair]] = 0.5
    for a, b in (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))):
        F[place[a], place[b]] = F[place[b], place[a]] = -1.0 / 3.0
    values, vectors = np.linalg.eigh(2.0 * np.eye(10) - F)
    A = np.zeros((10, 4, 4))
    A[:, i, j] = A[:, j, i] = (vectors * np.sqrt(values)).T / np.where(i == j, 1.0, np.sqrt(2.0))
    return A


def test_splitting_proves_what_one_relaxation_cannot():
    A, optimum = choi_lam_stack(), np.sqrt(2.0)
    h = np.full(4, 0.5)
    assert np.linalg.norm(np.einsum("i,cij,j->c", h, A, h)) == pytest.approx(optimum, rel=1e-12)
    assert np.sqrt(relaxed(A, 20_000).bound) >= optimum * (1 + 1e-3)
    split = split_and_bound(DenseStack(A), np.eye(4), tol=1e-5, max_looks=100_000)
    assert optimum <= split.bound <= optimum * (1 + 1.01e-5)


@pytest.mark.parametrize("max_looks", [1, 10, 100, 1000])
def test_splitting_is_a_proof_at_any_limit(max_looks):
    rng = RNG(14)
    for kind in KINDS:
        stack, _ = DenseStack(stacks(kind, rng)).scaled()
        start = np.eye(stack.shape[1])
        split = split_and_bound(stack, start, tol=1e-6, max_looks=max_looks)
        assert split.bound >= best_of_many(stack.matrices, 2, rng)
        assert split.looks <= max_looks
    assert split_and_bound(stack, start, tol=1e-6, max_time=1e-9).bound >= best_of_many(stack.matrices, 2, rng)


def test_splitting_starts_from_the_last_proof():
    A = stacks("gaussian", RNG(15))
    stack, _ = DenseStack(A).scaled()
    start = np.eye(stack.shape[1])
    cold = split_and_bound(stack, start, tol=1e-4)
    warm = split_and_bound(stack, start, tol=1e-4, N=cold.N)
    assert warm.looks < 0.5 * cold.looks
    assert warm.bound == pytest.approx(cold.bound, rel=2e-4)


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


# -- many cases: nothing is ever above what is called a bound ----------------------------------------------------------


def real_stacks():
    """Stacks of loss gradients along fits, of both kernels."""
    for kernel in ("homogeneous", "anova"):
        for norm in NORMS:
            problem = problem_of(norm, "strength", 0.5, kernel=kernel, n=40, d=3)
            for k in range(6):
                network = random_network(problem, seed=k, k=k + 1)
                yield GradientForms(problem.kernel, problem.design, problem.residual(network).gradient).dense()


def test_no_bound_is_ever_violated():
    """10,000 cases: random stacks of every kind and scale, and gradients; each bound against the enumerated optimum."""
    rng = RNG(16)
    cases = 0
    real = list(real_stacks())
    while cases < 10_000:
        kind = KINDS[cases % len(KINDS)]
        stack = DenseStack(stacks(kind, rng)) if cases % 50 else real[(cases // 50) % len(real)]
        stack, _ = stack.scaled()
        A = stack.matrices
        optimum = enumerated(A) if len(A) <= 5 else np.abs(np.einsum("ki,cij,kj->kc", *two_sided(A, rng))).sum(1).max()
        spectral = np.abs(np.linalg.eigvalsh(A)).max()
        h, bound, _ = branch_and_bound(stack, np.eye(A.shape[1])[:1], max_nodes=int(rng.integers(0, 40)))
        values = refine(stack, np.vstack([np.eye(A.shape[1]), h]), 2, max_iter=3)[1]
        assert bound >= optimum * (1 - 1e-15)
        assert stack.bound(1) >= optimum * (1 - 1e-15)
        assert stack.bound(2) >= values.max() * (1 - 1e-15)
        assert stack.bound(np.inf) >= spectral * (1 - 1e-15)
        cases += 1


def two_sided(A, rng):
    """Refined unit vectors around the stack, for einsum: for many outputs a lower bound takes enumeration's place."""
    H = rng.standard_normal((10, A.shape[1]))
    H, _ = refine(DenseStack(A), H / np.linalg.norm(H, axis=1, keepdims=True), 1)
    return H, A, H


# -- many features: nothing of shape (m, d, d) -------------------------------------------------------------------------


def wide_problem(norm="l1", m=2, n=60, d=600, sparse_data=True, kernel="anova", **form):
    rng = RNG(0)
    X = sparse.random_array((n, d), density=0.05, rng=rng, format="csr") if sparse_data else rng.uniform(-1, 1, (n, d))
    return mopn.NetworkProblem(
        X, np.arange(n) % m, norm=norm, kernel=kernel, augment=True, **(form or {"strength": 1.0})
    )


def wide_forms(problem, seed=None):
    network = problem.start() if seed is None else random_network(problem, seed)
    return GradientForms(problem.kernel, problem.design, problem.residual(network).gradient)


@pytest.mark.parametrize("kernel", ["homogeneous", "anova"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("m", [2, 4])
def test_cholesky_proves_what_lanczos_finds(norm, m, kernel):
    problem = wide_problem(norm, m, kernel=kernel)
    forms = wide_forms(problem, seed=1)
    atoms = basis_oracle(norm, method="exact")(forms, precision=1e-6)
    p = problem.norm.exponent
    dense = forms.dense()
    if p == np.inf:
        optimum = np.abs(dense.eigen[0]).max()
    elif p == 1:
        optimum = enumerated(dense.matrices)
    else:
        optimum = best_of_many(dense.matrices, 2, RNG(0), starts=1)
    assert atoms.bound >= optimum * (1 - 1e-12)
    if p != 2 or m == 2:
        assert atoms.certified
        assert atoms.bound == pytest.approx(optimum, rel=2e-6)
        assert atoms.values[0] == pytest.approx(optimum, rel=2e-6)
    else:
        assert atoms.bound <= 2.0 * optimum


@pytest.mark.parametrize("norm", NORMS)
def test_a_proof_by_cholesky_waits_for_its_time(norm):
    """What it is expected to take must fit into the patience; whatever the patience, the bound holds."""
    forms, oracle = wide_forms(wide_problem(norm, 4), seed=1), basis_oracle(norm, method="exact")
    seconds = expected_seconds(forms, oracle.norm.exponent)
    hasty, patient = (oracle(forms, precision=1e-6, patience=factor * seconds) for factor in (0.99, 1.01))
    assert hasty.bound == forms.bound(oracle.norm.exponent)
    assert patient.bound < hasty.bound
    assert oracle.bound(forms, 1e-6, 1.01 * seconds) == patient.bound
    limited = basis_oracle(norm, method="exact", max_time=0.99 * seconds)
    assert limited(forms, precision=1e-6).bound == hasty.bound


def test_many_outputs_are_no_sign_vectors_to_prove(monkeypatch):
    """2^(m - 1) of them would overflow."""
    stack = np.ones((1030, 30, 30))
    assert basis_oracle("l1/linf")._resolve(DenseStack(stack)) == "refine"
    monkeypatch.setattr(oracles, "DENSE_LIMIT", 4)
    forms = wide_forms(wide_problem("l1/linf", 1030, n=1040, d=6))
    assert basis_oracle("l1/linf", method="exact").bound(forms, 0.5) == forms.bound(1)


def test_cholesky_bound_grows_when_the_value_is_too_low():
    rng = RNG(1)
    for d in (1, 2, 30):
        A = rng.standard_normal((d, d))
        A = A + A.T
        exact = np.abs(np.linalg.eigvalsh(A)).max()
        for fraction in (1.0, 0.999, 0.5, 1e-3):
            bound = norm_bound(A, fraction * exact, 1e-8)
            assert exact <= bound <= np.linalg.norm(A) * (1 + 1e-10)
            if fraction == 1.0:
                assert bound <= exact * (1 + 1e-7)
        assert norm_bound(np.zeros((d, d)), 0.0, 1e-8) == 0.0


def test_gram_of_a_stack():
    """The Gram matrix of the matrix-free stack is that of the dense one; beyond some samples it is estimated."""
    for kernel in ("homogeneous", "anova"):
        for sparse_data in (True, False):
            forms = wide_forms(wide_problem(m=3, kernel=kernel, sparse_data=sparse_data, d=50), seed=2)
            dense = forms.dense()
            assert forms.gram() == pytest.approx(dense.gram(), rel=1e-9, abs=1e-9)
            for p in (1, 2, np.inf):
                assert forms.bound(p) >= best_of_many(dense.matrices, p, RNG(3), starts=20)
    many = wide_forms(wide_problem(m=3, n=3200, d=40), seed=2)
    assert many.gram() == pytest.approx(many.dense().gram(), rel=1.0)


@pytest.mark.parametrize("form", ["strength", "radius"])
@pytest.mark.parametrize("norm", NORMS)
def test_wide_fits_are_proven(norm, form):
    problem = wide_problem(norm, m=2, **{form: 0.2})
    result = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-4, max_iter=60)
    assert result.success, result
    assert result.certified


def test_what_is_not_proven_is_called_estimated():
    problem = wide_problem("l1/l2", m=4, strength=0.2)
    result = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="refine"), tol=1e-3, max_iter=60)
    assert result.status == Status.ESTIMATED
    assert not result.success
    assert result.gap > 1e-3 * result.fun


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

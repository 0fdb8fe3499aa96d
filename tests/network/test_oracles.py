"""The oracles of the best units: answers, bounds, proofs within their time, the memory of a run, refusals."""

import copy
import itertools
import math
import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import strategies as st
from networks import (
    DATA,
    TWO_SIDED,
    attained_by_forms,
    draw_forms,
    every_kernel,
    every_norm,
    forms_of,
    random_network,
    rows_of,
    wide_problem,
)
from properties import seeds, tried
from stacks import (
    attained,
    best_of_many,
    climb,
    draw,
    draw_small,
    every_kind,
    gaussian,
    good_vectors,
    shapes,
    slow_maximum,
    spectral,
)

import mopn
from mopn.core.kernels import KERNELS
from mopn.core.norms import NORMS, get_norm
from mopn.data.designs import make_design
from mopn.network.gradient_forms import GradientForms
from mopn.network.oracles import METHODS
from mopn.oracles import basis_oracle
from mopn.solvers import ConditionalGradient, Status
from mopn.solvers.interface import Effort
from mopn.solvers.sphere import DenseStack, dense_search, probable, search
from mopn.solvers.sphere.cholesky import OPERATIONS_A_SECOND, expected_work
from mopn.solvers.tools.budgets import FAILURE, FailureBudget

CHOICES = [(norm, method) for norm in TWO_SIDED for method in METHODS if method != "enumerate" or norm == "l1/linf"]
every_choice = pytest.mark.parametrize(("norm", "method"), CHOICES)


def check_answer(answer, reference):
    """Check the conditions on every answer; ``reference`` gives the values of vectors in extended precision."""
    H, values = answer.basis, answer.values
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-13)
    assert H.shape[0] == len(values) >= 1
    assert (np.diff(values) <= 0).all()
    assert (np.abs(H @ H.T - np.diag(np.sum(H * H, axis=1))) < 0.98).all()
    assert values[0] <= answer.bound
    assert reference(H).max() <= answer.bound
    assert type(answer.certified) is bool
    assert answer.certified == (answer.bound <= values[0] * (1 + 1e-6))


@every_choice
@every_kind
@tried(4, seed=seeds, shape=shapes)
def test_answers_of_the_oracle(norm, method, kind, seed, shape):
    rng, stack = draw(kind, seed, shape)
    p = NORMS[norm].exponent
    answer = basis_oracle(norm, method)(stack)
    check_answer(answer, lambda H: attained(stack, H, p))
    assert basis_oracle(norm, method).bound(stack) == answer.bound
    size = np.abs(stack).sum()
    expected = attained(stack, answer.basis, p).astype(float)
    np.testing.assert_allclose(answer.values, expected, rtol=0, atol=1e-14 * size)
    assert attained(stack, good_vectors(rng, stack, p), p).max() <= answer.bound
    largest = max(spectral(matrix) for matrix in stack)
    # The paper's factor: the value is at least the l1 optimum, so at least m^(-1/p) times the bound.
    slack = 1e-6 if method == "power" else 1e-14
    assert answer.values[0] >= largest * (1 - slack)
    assert answer.values[0] * (1 + 2e-6) >= answer.bound * (1.0 if p == np.inf else shape[0] ** (-1 / p))
    if p == np.inf or shape[0] == 1:
        np.testing.assert_allclose(answer.values[0], largest, rtol=1e-6 if method == "power" else 1e-13)
        assert answer.certified or method == "power"
    if p == 1 and method in ("enumerate", "exact", "auto"):
        np.testing.assert_allclose(answer.values[0], slow_maximum(stack), rtol=1e-13)
        assert answer.certified


@pytest.mark.parametrize("norm", ["l1/l2", "l1/linf"])
@pytest.mark.parametrize("kind", ["gaussian", "sum to zero"])
def test_refined_values_reach_a_plain_ascent_from_every_output(norm, kind):
    p, gained, ahead = NORMS[norm].exponent, [], []
    for seed in range(10):
        _, stack = draw(kind, seed, (5, 8))
        values, vectors = np.linalg.eigh(stack)
        starts = vectors[np.arange(5), :, np.abs(values).argmax(axis=1)]
        best = attained(stack, climb(stack, starts, p, steps=300)[-1], p).max()
        found = basis_oracle(norm, "refine", tol=1e-12)(stack).values[0]
        assert found >= best * (1 - 1e-7)
        ahead.append(found / best)
        gained.append(best / attained(stack, starts, p).max())
    # And it was worth the while: the starts themselves are clearly worse.
    assert np.median(gained) > 1.02
    # More starts find more, where the maxima are many.
    assert max(ahead) > 1.01 or p == 2


@every_choice
@every_kernel
@pytest.mark.parametrize("dense_limit", [0, 500])
@tried(2, seed=seeds, data=st.sampled_from(sorted(DATA)), sparsely=st.booleans())
def test_answers_of_the_oracle_on_forms(norm, method, kernel, dense_limit, seed, data, sparsely):
    """Above the limit everything is matrix-free; what needs matrices says so."""
    forms, X, G = draw_forms(kernel, data, seed, n=12, d=5, sparsely=sparsely)
    p, oracle = NORMS[norm].exponent, basis_oracle(norm, method)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "DENSE_LIMIT", dense_limit)
        patch.setattr(search, "COMPRESSED_LIMIT", dense_limit)
        patch.setattr(search, "FEW_FEATURES", dense_limit)
        # Nothing can be proven where terms cancel, which a twentieth of the work shows as well.
        patch.setattr(dense_search, "MAX_WORK", dense_search.MAX_WORK / 20)
        too_large = dense_limit == 0 and (method in ("eigh", "enumerate") or (method == "exact" and seed % 2 == 1))
        if too_large:
            patch.setattr(search, "CHOLESKY_LIMIT", 4)
            with pytest.raises(ValueError, match=rf"the oracle '{method}' forms d x d matrices .* got d = 5; use"):
                oracle(forms)
            return
        if dense_limit == 0:
            patch.delattr(GradientForms, "dense")
        answer = oracle(forms)
        bound = basis_oracle(norm, method, seed=0).bound(forms, Effort(work=2e8))
        # Where a cheap bound is as tight as asked for, a call with units does without the proof. Random bounds end near
        # the best value known, so that a call without units may go on from another cone.
        precision = 0.05 if method == "lanczos" else 0.0
        assert bound <= basis_oracle(norm, method, seed=0)(forms, Effort(work=2e8)).bound * (1 + precision)
    check_answer(answer, lambda H: attained_by_forms(kernel, X, G, H, p))
    size = 1e-14 * len(X) * np.sum(np.abs(G)) * np.sum(X**2)
    assert bound >= answer.values.max() - size
    expected = attained_by_forms(kernel, X, G, answer.basis, p).astype(float)
    np.testing.assert_allclose(answer.values, expected, rtol=0, atol=size)
    largest = max(spectral(matrix) for matrix in forms.dense.matrices)
    assert answer.values[0] >= largest * (1 - 1e-6) - size


@every_choice
def test_the_oracle_is_deterministic_and_leaves_its_input_and_the_global_state_alone(norm, method):
    stack = gaussian(np.random.default_rng(0), 4, 6)
    stack.setflags(write=False)
    forms, _, _ = draw_forms("anova", "dense", 0)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for given_stack in (stack, forms):
        first, second = (basis_oracle(norm, method, seed=0)(given_stack) for _ in range(2))
        np.testing.assert_array_equal(first.basis, second.basis)
        np.testing.assert_array_equal(first.values, second.values)
        assert first.bound == second.bound
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@every_norm
def test_the_oracle_takes_names_norms_lists_and_stacks(norm):
    stack = gaussian(np.random.default_rng(0), 3, 4)
    answers = [
        basis_oracle(name, "refine")(each)
        for name in (norm, get_norm(norm))
        for each in (stack, stack.tolist(), DenseStack(stack))
    ]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.values, answers[0].values)
        assert answer.bound == answers[0].bound
    # Asymmetry of the size of rounding errors is accepted, and does not enter h' Gamma h.
    noise = 1e-10 * np.random.default_rng(1).standard_normal(stack.shape)
    asymmetric = basis_oracle(norm, "refine")(stack + noise - noise.transpose(0, 2, 1))
    np.testing.assert_allclose(asymmetric.values, answers[0].values, rtol=1e-12)


# -- proofs ------------------------------------------------------------------------------------------------------------


@every_norm
@pytest.mark.parametrize("kind", ["gaussian", "sum to zero", "rank one"])
def test_precision_trades_work_for_tightness(norm, kind):
    A = draw_small(kind, np.random.default_rng(13))
    p = NORMS[norm].exponent
    oracle = basis_oracle(norm, method="exact")
    best = best_of_many(A, p, np.random.default_rng(0))
    for precision in (1.0, 1e-1, 1e-2, 1e-4):
        atoms = oracle(A, Effort(precision))
        # An ascent whose steps gain less than 1e-6 has a few of these to go.
        assert best * (1 - 1e-5) <= atoms.values[0] <= best * (1 + 1e-9)
        assert atoms.bound >= best
        assert atoms.bound <= atoms.values[0] * (1 + precision) * (1 + 1e-6)


@every_kernel
@every_norm
@pytest.mark.parametrize("m", [2, 4])
def test_cholesky_proves_what_lanczos_finds(norm, m, kernel):
    problem = wide_problem(norm, m, kernel=kernel)
    forms = forms_of(problem, random_network(problem))
    p = problem.norm.exponent
    # Sums of squares of this number of directions take a minute to be tight.
    is_tight = p != 2 or m == 2
    atoms = basis_oracle(norm, method="exact")(forms, Effort(1e-6 if is_tight else 0.5))
    dense = forms.dense
    if p == np.inf:
        optimum = np.abs(dense.eigen[0]).max()
    elif p == 1:
        optimum = slow_maximum(dense.matrices)
    else:
        optimum = best_of_many(dense.matrices, 2, np.random.default_rng(0), starts=1)
    assert atoms.bound >= optimum * (1 - 1e-12)
    if is_tight:
        assert atoms.certified
        assert atoms.bound == pytest.approx(optimum, rel=2e-6)
        assert atoms.values[0] == pytest.approx(optimum, rel=2e-6)
    else:
        assert atoms.bound <= 2.0 * optimum


@pytest.mark.slow
@pytest.mark.parametrize(("norm", "m"), [("l1/l2", 5), ("l1/linf", 13)])
def test_wide_stacks_are_proven_on_their_principal_directions(norm, m):
    """Few features matter, and hundreds hardly do."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.uniform(-1, 1, (60, 5)), rng.uniform(-1e-4, 1e-4, (60, 505))])
    y, exact = np.arange(60) % m, basis_oracle(norm, "exact")
    wide, narrow = (mopn.NetworkProblem(part, y, norm=norm, strength=1.0) for part in (X, X[:, :5]))
    run, least = exact.begin(), exact(forms_of(narrow, narrow.start()))
    atoms = run(forms_of(wide, wide.start()))
    assert atoms.values[0] >= least.values[0] * (1 - 1e-6)
    assert least.values[0] <= atoms.bound <= least.bound * (1 + 1e-2)
    assert {turned.features.shape[1] < 20 for turned in run._multipliers.values()} == {True}


@every_norm
def test_a_proof_by_cholesky_waits_for_its_time(norm, monkeypatch):
    """Its expected work must fit into the work that is left; whatever the effort, the bound holds."""
    monkeypatch.setattr(search, "COMPRESSED_LIMIT", 500)
    problem, oracle = wide_problem(norm, 4), basis_oracle(norm, method="exact")
    forms = forms_of(problem, random_network(problem))
    seconds = expected_work(forms, oracle.norm.exponent) / OPERATIONS_A_SECOND
    hasty, patient = (oracle(forms, Effort(1e-6, seconds=s)) for s in (0.99 * seconds, seconds + 60.0))
    assert hasty.bound == forms.bound(oracle.norm.exponent)
    assert patient.bound < hasty.bound
    assert oracle.bound(forms, Effort(1e-6, seconds=seconds + 60.0)) == patient.bound
    limited = basis_oracle(norm, method="exact", max_time=0.99 * seconds)
    assert limited(forms, Effort(1e-6)).bound == hasty.bound


@every_choice
def test_out_of_time_an_oracle_has_a_unit_and_a_bound(norm, method):
    """The starts, and the cheapest bound: whatever is left out, the bound is one of the maximum."""
    gammas = gaussian(np.random.default_rng(0), 5, 6)
    hasty, patient = (basis_oracle(norm, method, seed=0)(gammas, Effort(seconds=s)) for s in (0.0, math.inf))
    assert 0 < hasty.values[0] <= patient.bound
    bound = basis_oracle(norm, method, seed=0).bound(gammas, Effort(seconds=0.0))
    assert patient.values[0] <= min(hasty.bound, bound) * (1 + 1e-12)


@pytest.mark.parametrize("seconds", [1, 5, 25])
@every_choice
def test_an_oracle_looks_at_the_clock_between_decompositions(norm, method, seconds, monkeypatch):
    """On a clock that goes on by a second at each look, a call of some seconds decomposes few matrices more."""
    gammas, oracle = gaussian(np.random.default_rng(1), 9, 12), basis_oracle(norm, method)
    clock, calls = itertools.count(), []
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    for name in ("eigh", "eigvalsh"):
        decompose = getattr(np.linalg, name)
        monkeypatch.setattr(np.linalg, name, lambda A, decompose=decompose: calls.append(0) or decompose(A))
    atoms = oracle(gammas, Effort(seconds=float(seconds)))
    assert math.isfinite(atoms.bound)
    assert len(calls) <= 12 + 5 * seconds


def test_many_outputs_are_no_sign_vectors_to_prove(monkeypatch):
    """2^(m - 1) of them would overflow."""
    assert search.plan(1, 1030, 30).proof is search.Proof.BIQUADRATIC_SIGNS
    monkeypatch.setattr(search, "COMPRESSED_LIMIT", 4)
    problem = wide_problem("l1/linf", 1030, n=1040, d=6)
    forms = forms_of(problem, problem.start())
    assert basis_oracle("l1/linf", method="exact").bound(forms, Effort(0.5)) == forms.bound(1)


# -- refusals ----------------------------------------------------------------------------------------------------------


BAD_STACKS = {
    "one matrix": (np.eye(3), "Gamma must have shape (m, d, d) with m, d >= 1, got (3, 3)"),
    "not square": (np.ones((2, 3, 4)), "Gamma must have shape (m, d, d) with m, d >= 1, got (2, 3, 4)"),
    "no outputs": (np.ones((0, 3, 3)), "Gamma must have shape (m, d, d) with m, d >= 1, got (0, 3, 3)"),
    "no features": (np.ones((2, 0, 0)), "Gamma must have shape (m, d, d) with m, d >= 1, got (2, 0, 0)"),
    "NaN": (np.full((1, 2, 2), np.nan), "Gamma contains NaN or infinity"),
    "inf": (np.full((1, 2, 2), np.inf), "Gamma contains NaN or infinity"),
    "asymmetric": (np.array([[[1.0, 2.0], [3.0, 4.0]]]), "Gamma must be symmetric in its last two axes; symmetrise"),
    "slightly asymmetric": (np.array([[[1.0, 1.0], [1.0 + 1e-6, 1.0]]]), "Gamma must be symmetric in its last"),
    "tiny and asymmetric": (1e-12 * np.array([[[1.0, 2.0], [3.0, 4.0]]]), "Gamma must be symmetric"),
}


@pytest.mark.parametrize("case", BAD_STACKS)
def test_the_oracle_says_what_is_wrong_with_a_stack(case):
    stack, message = BAD_STACKS[case]
    with pytest.raises(ValueError) as raised:
        basis_oracle("l1")(stack)
    assert message in str(raised.value)


def test_basis_oracle_refuses_arguments():
    for norm in ("l1", "l1/l2"):
        with pytest.raises(ValueError, match=f"'enumerate' is for the norm 'l1/linf' only, got norm='{norm}'"):
            basis_oracle(norm, "enumerate")
    with pytest.raises(ValueError, match=r"tol must be a number in \(0, 1\), got"):
        basis_oracle("l1", tol=1)


@pytest.mark.parametrize("method", ["power", "eigh", "auto"])
@pytest.mark.parametrize("scale", [1e-60, 1e-78, 1e-100, 1e-150])
def test_small_data_do_not_make_the_bound_zero(method, scale):
    """Products of fourth order underflow where the problem's products of second order do not."""
    rng = np.random.default_rng(0)
    X, G = rng.choice([-1.0, 1.0], (40, 3)), rng.uniform(-0.5, 0.5, (40, 2))
    unit = 2.0 ** round(math.log2(scale))
    forms, tiny = (GradientForms(KERNELS["homogeneous"], rows_of(make_design(c * X)), G) for c in (1.0, unit))
    bound, small = (basis_oracle("l1", method).bound(stack) for stack in (forms, tiny))
    assert small == pytest.approx(unit**2 * bound, rel=1e-9)
    assert min(tiny.gram_bound(2), tiny.collatz_bound(2)) >= unit**2 * bound * (1 - 1e-9)


def test_rows_far_smaller_than_others_keep_their_bounds():
    X, G = np.diag([1.0, 1e-60]), np.array([[0.0, 0.0], [1.0, -1.0]])
    forms = GradientForms(KERNELS["homogeneous"], rows_of(make_design(X)), G)
    assert min(forms.gram_bound(math.inf), forms.collatz_bound(math.inf)) >= 1e-120
    X[1, 1] = 1e-120
    forms = GradientForms(KERNELS["homogeneous"], rows_of(make_design(X)), G)
    assert forms.bound(math.inf) >= 1e-240
    assert GradientForms(KERNELS["homogeneous"], rows_of(make_design(X)), 0 * G).bound(2) == 0.0


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("column", [0.9, 2.0**53 + np.arange(16)], ids=["equal rows", "few digits"])
def test_what_rounding_leaves_open_is_not_proven_at_length(column, kernel):
    """Gradients that are zero, or known to a few digits, but for the rounding of their sums over the samples."""
    X = np.repeat([[0.3, -0.7, 0.2, 0.1, 0.9]], 16, axis=0)
    X[:, -1] = column
    problem = mopn.NetworkProblem(X, np.arange(16) % 4, kernel=kernel, strength=1.0)
    at = problem.gradient_at_zero()
    atoms = problem.lmo(at)
    assert atoms.bound <= atoms.values[0] + 3.0 * problem.dual_rounding(at)
    assert atoms.work <= 1e8


# -- the table of proofs: an oracle tries the proofs that it names ----------------------------------------------------


@pytest.mark.parametrize("method", sorted({*METHODS} - {"enumerate"}))
def test_a_single_output_is_as_under_l1(method):
    for d in np.unique(np.geomspace(1, 1e5, 60).astype(int)):
        for norm in NORMS.values():
            assert search.plan(norm.exponent, 1, d, method) == search.plan(math.inf, 1, d, method)


# -- runs: equal calls give equal bits, and no two proofs of a chain share a start -------------------------------------


def drawn_problem(norm, d=5):
    rng = np.random.default_rng(0)
    return mopn.NetworkProblem(rng.uniform(-1, 1, (60, d)), rng.integers(0, 3, 60), norm=norm, strength=0.5)


def short_run(problem, oracle, start=None, **options):
    return mopn.minimize(problem, ConditionalGradient(oracle=oracle), start=start, tol=1e-3, max_iter=3, **options)


@pytest.fixture
def starts(monkeypatch):
    """The starts of all random proofs, as they are drawn."""
    drawn = []

    def noted(products, start, *rest):
        drawn.extend(start)
        return chebyshev_bound(products, start, *rest)

    chebyshev_bound = probable.chebyshev_bound
    monkeypatch.setattr(probable, "chebyshev_bound", noted)
    return drawn


def all_differ(starts):
    return len(np.unique(np.round(starts, 12), axis=0)) == len(starts) > 0


@pytest.mark.parametrize(("norm", "method", "seed"), [("l1/l2", "exact", None), ("l1", "lanczos", 3)])
def test_equal_calls_give_equal_bits_with_one_oracle(norm, method, seed):
    problem, oracle = drawn_problem(norm), basis_oracle(norm, method, seed=seed)
    first, *others = (short_run(problem, oracle) for _ in range(3))
    for other in others:
        np.testing.assert_array_equal(other.x, first.x)
        assert (other.fun, other.gap, other.nit) == (first.fun, first.gap, first.nit)


def test_no_two_proofs_of_a_chain_share_a_start(starts):
    """Not within a run, nor in runs that continue it, nor in copies; and the code does not tell the starts."""
    problem, oracle = drawn_problem("l1", d=3), basis_oracle("l1", "lanczos")
    for other in ("lanczos", oracle, copy.deepcopy(oracle), pickle.loads(pickle.dumps(oracle))):
        result = short_run(problem, other)
        short_run(problem, other, start=result)
        mopn.certify(problem, result.basis, result.weights, other)
    mopn.path(problem, 2, ConditionalGradient(oracle=oracle), tol=0.1)
    assert all_differ(starts)


def test_a_seed_repeats_a_run_but_not_within_a_chain(starts):
    problem, oracle = drawn_problem("l1"), basis_oracle("l1", "lanczos", seed=7)
    first = short_run(problem, oracle)
    of_first = np.array(starts)
    second = short_run(problem, oracle, start=first)
    assert all_differ(starts)
    starts.clear()
    short_run(problem, oracle)
    np.testing.assert_array_equal(starts, of_first)
    for stated in (first, second, mopn.certify(problem, first.basis, first.weights, oracle)):
        assert stated.proof == "probability 1 - 1e-09, over starts of seed 7"


def test_a_chain_has_one_budget_of_failure():
    problem, spent = drawn_problem("l1"), 0.0
    result = None
    for _ in range(3):
        result = short_run(problem, "lanczos", start=result)
        assert spent < result.failure < FAILURE
        assert result.proof == "probability 1 - 1e-09"
        spent = result.failure
    # A run hands on the failure probability spent before it, and its own bounds may be proven for certain.
    for start, failure in ((result, spent), (None, 0.0)):
        certain = short_run(problem, "exact", start=start)
        assert (certain.failure, certain.proof) == (failure, "deterministic")


def test_shares_of_failure_add_up_to_what_is_stated():
    failure_budget, total = FailureBudget(), 0.0
    for n in range(1, 200):
        total += failure_budget.next
        failure_budget.draw(None)
        assert failure_budget.failure == pytest.approx(total, rel=1e-9)
        assert failure_budget.failure < FAILURE
        assert FailureBudget(failure_budget.failure).proofs == n


RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (25, 3))
Y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.4, 0.4])


def problem(norm):
    return mopn.NetworkProblem(X, Y, norm=norm, strength=0.5, augment=True)


@cache
def minimum(norm):
    return mopn.minimize(problem(norm), ConditionalGradient(refit="full"), tol=1e-4, max_iter=20)


def eigenvector(gammas):
    """The dominant eigenvector of the matrix of largest norm: the best unit for l1."""
    best = max(gammas, key=lambda gamma: np.linalg.norm(gamma, 2))
    values, vectors = np.linalg.eigh(best)
    return 7.0 * vectors[:, np.argmax(np.abs(values))]


def random_units(gammas):
    return np.random.default_rng(0).standard_normal((5, gammas.shape[1]))


@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("function", [eigenvector, random_units, lambda gammas: np.eye(gammas.shape[1])[0]])
@pytest.mark.parametrize("refit", ["none", "output", "full"])
@pytest.mark.parametrize("tol", [1e-2, 0.0])
def test_certificates_are_true_whatever_the_function_selects(norm, function, refit, tol):
    """The bound is mopn's own; units of a function estimate nothing."""
    asked = []
    solver = ConditionalGradient(refit, oracle=lambda gammas: asked.append(gammas) or function(gammas))
    found, least = mopn.minimize(problem(norm), solver, tol=tol, max_iter=6), minimum(norm)
    assert least.gap < 1e-3 * least.fun
    assert least.fun - least.gap <= found.fun
    assert found.fun - found.gap <= least.fun
    assert found.status in (Status.CONVERGED, Status.MAX_ITER, Status.NO_BETTER_UNIT)
    assert (found.relative_gap <= tol) == found.success
    np.testing.assert_allclose(found.trace["estimated_gap"], found.trace["gap"], rtol=1e-12)
    assert len(asked) >= found.nit
    assert tol > 0 or found.nit == 6
    if found.status == Status.NO_BETTER_UNIT:
        assert f"{100 * found.relative_gap:.3g} %" in found.message


@pytest.mark.parametrize("units", [np.zeros(4), np.ones(3), np.ones((0, 4)), np.full(4, np.nan), np.ones((2, 2, 4))])
def test_wrong_units(units):
    at = problem("l1").output_gradient(problem("l1").start())
    with pytest.raises(ValueError, match=r"the oracle must return units|units of the oracle contains NaN"):
        problem("l1").lmo(at, lambda gammas: units)

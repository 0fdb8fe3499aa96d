"""The problem of implicit feedback: its minimum, its gap under attack, and runs of its solver."""

import numpy as np
import pytest
from reference import nuclear_minimiser
from scipy import sparse

import mopn
from mopn.implicit.proof import proven_dual
from mopn.solvers import AlternatingLeastSquares
from mopn.solvers.tools.budgets import FailureBudget


def confidences(n_users=30, n_items=20, density=0.3, seed=0, decades=0.0):
    """Pairs at random, with confidences over some orders of magnitude."""
    rng = np.random.default_rng(seed)
    observed = rng.random((n_users, n_items)) < density
    values = 10.0 ** rng.uniform(-0.5 * decades, 0.5 * decades, observed.shape)
    return sparse.csr_array(np.where(observed, values, 0.0))


def objective(C, W, strength, weight):
    fit = 0.5 * np.sum(C * (W - 1.0) ** 2)
    return fit + 0.5 * weight * np.sum(W**2) + strength * np.linalg.svd(W, compute_uv=False).sum()


def minimum(C, strength, weight):
    """The minimiser on the dense matrix: independent of factors."""
    return nuclear_minimiser(lambda W: C * (W - 1.0) + weight * W, C.shape, C.max() + weight, strength)


def dual_value(r, c, strength, weight, shape, pairs):
    """The bound that residuals r prove, by all singular values."""
    G = np.zeros(shape)
    G[pairs] = r
    values = np.linalg.svd(G, compute_uv=False)
    return np.sum(r - r**2 / (2 * c)) - np.sum(np.maximum(values - strength, 0.0) ** 2) / (2 * weight)


CASES = {
    "plain": {"C": confidences(), "strength": 1.0},
    "little strength": {"C": confidences(), "strength": 0.05},
    "weights": {"C": confidences(decades=3), "strength": 2.0, "weight": 0.1},
    "one user": {"C": confidences(1, 20), "strength": 0.5},
    "one item": {"C": confidences(20, 1), "strength": 0.5},
    "few users": {"C": confidences(4, 60), "strength": 0.5},
    "empty lines": {"C": confidences(30, 20, 0.03), "strength": 0.2},
    "large weight": {"C": confidences(), "strength": 1.0, "weight": 50.0},
    "zero": {"C": confidences(), "strength": 100.0},
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@every_case
def test_the_minimum_is_that_of_the_dense_matrix(case):
    C, strength = case["C"], case["strength"]
    weight = case.get("weight", 0.3)
    W = minimum(C.toarray(), strength, weight)
    least = objective(C.toarray(), W, strength, weight)
    problem = mopn.ImplicitProblem(C, strength, weight)
    result = mopn.minimize(problem, tol=1e-7)
    assert result.success
    assert result.relative_gap <= 1e-7
    assert result.lower <= least * (1 + 1e-13)
    assert abs(result.fun - least) <= result.gap + 1e-13 * least
    # Strong convexity: ridge / 2 ||W - W*||^2 <= gap.
    assert np.sum((result.P @ result.Q.T - W) ** 2) <= 2.1 * result.gap / weight + 1e-12
    assert result.fun == pytest.approx(objective(C.toarray(), result.P @ result.Q.T, strength, weight), rel=1e-12)


def test_it_is_a_network_problem_on_one_hot_columns():
    C = confidences(8, 6, decades=1.0)
    users, items = C.nonzero()
    rows = np.zeros((C.nnz, 14))
    rows[np.arange(C.nnz), users] = 1.0
    rows[np.arange(C.nnz), 8 + items] = 1.0
    weights = C.toarray()[users, items]
    options = {"kernel": "anova", "loss": "squared", "norm": "l1", "ridge": 0.4, "strength": 0.25}
    network = mopn.NetworkProblem(rows, np.ones(C.nnz), sample_weight=weights, **options)
    problem = mopn.ImplicitProblem(C, 0.5, 0.4)
    result = mopn.minimize(problem, tol=1e-7)
    # 2 p q' are the blocks of hh' - gg' between users and items, for h = (p, q) and g = (p, -q).
    units = np.vstack([np.vstack([result.P, sign * result.Q]).T for sign in (1.0, -1.0)])
    weights = np.repeat([[0.5], [-0.5]], result.P.shape[1], axis=0)
    point = network.start((units, weights))
    assert network.output_gradient(point).value == pytest.approx(result.fun, rel=1e-12)
    found = mopn.minimize(network, tol=1e-3, max_iter=20)
    assert found.lower <= result.fun
    assert result.lower <= found.fun


@every_case
def test_its_strength_is_relative_to_the_largest_singular_value(case):
    C = case["C"]
    problem = mopn.ImplicitProblem(C, mopn.Ratio(0.1))
    assert problem.strength == pytest.approx(0.1 * np.linalg.norm(C.toarray(), 2), rel=1e-10)


def test_value_and_gradient():
    C = confidences(decades=2.0)
    problem = mopn.ImplicitProblem(C, 0.7, 0.4)
    rng = np.random.default_rng(1)
    P, Q = rng.standard_normal((30, 3)), rng.standard_normal((20, 3))
    assert problem.value(P, Q) == pytest.approx(objective(C.toarray(), P @ Q.T, 0.7, 0.4), rel=1e-13)
    G, factor = problem.gradient(P, Q)
    dense = C.toarray()
    expected = dense * (P @ Q.T - 1.0) + 0.4 * P @ Q.T
    assert G.toarray() + factor * P @ Q.T == pytest.approx(expected, abs=1e-12 * dense.max())


# -- bounds under attack -----------------------------------------------------------------------------------------------


def wrong_residuals(problem, kind, rng):
    """Numbers for the pairs that are far from residuals of the minimum, or near values where bounds could break."""
    c = problem.pairs.confidences
    if kind == "random":
        return c * rng.standard_normal(len(c))
    if kind == "start":
        return c.copy()
    if kind == "large":
        return 1e8 * c
    if kind == "small":
        return 1e-12 * c
    if kind == "zero":
        return np.zeros(len(c))
    r = c * rng.uniform(0.5, 1.0, len(c))
    largest = np.linalg.norm(problem.pairs.matrix(r).toarray(), 2)
    return r * (problem.strength * (1.0 + 1e-15) / largest)


@every_case
@pytest.mark.parametrize("kind", ["random", "start", "large", "small", "zero", "at the strength"])
@pytest.mark.parametrize("allowance", [1e-9, 1e3])
def test_any_residuals_prove_a_bound_that_holds(case, kind, allowance):
    """Of the dense problem, and of the dual value of the residuals that the proof names."""
    C, strength = case["C"], case["strength"]
    weight = case.get("weight", 0.3)
    problem = mopn.ImplicitProblem(C, strength, weight)
    rng = np.random.default_rng(3)
    r = wrong_residuals(problem, kind, rng)
    guess = rng.standard_normal((min(C.shape), 2))
    budget = FailureBudget()
    options = {"value": -np.inf, "goal": 10.0 * allowance, "failure_budget": budget}
    found = proven_dual(problem.pairs, r, guess, strength, weight, **options)
    pairs = C.nonzero()
    exact = dual_value(found.matrix.data, problem.pairs.confidences, strength, weight, C.shape, pairs)
    size = np.sum(np.abs(found.matrix.data) + found.matrix.data**2 / problem.pairs.confidences)
    size += np.sum(found.matrix.data**2) / weight
    assert found.lower <= exact + 1e-14 * size
    if kind != "large":
        # Random bounds are looser.
        assert found.lower >= exact - 1.1 * allowance - (1e-5 if found.bound <= problem.strength else 3e-3) * size
    assert budget.failure == 0.0


@pytest.mark.parametrize("decades", [0, 4, 8, 12])
def test_gaps_hold_for_confidences_of_all_sizes(decades):
    C = confidences(25, 15, decades=decades)
    problem = mopn.ImplicitProblem(C, mopn.Ratio(0.05))
    result = mopn.minimize(problem, tol=1e-6, max_iter=300)
    # Alternating steps are slow where confidences differ by so much.
    assert result.relative_gap <= 1e-3
    again = mopn.certify(problem, result.P, result.Q)
    assert again.relative_gap <= 1e-3
    assert result.lower <= again.fun + again.rounding
    assert again.lower <= result.fun + result.rounding


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_rank_that_is_too_small_has_a_large_gap(rank):
    C = confidences()
    problem = mopn.ImplicitProblem(C, 0.5)
    best = mopn.minimize(problem, tol=1e-8)
    limited = mopn.certify(problem, best.P[:, :rank], best.Q[:, :rank])
    assert limited.fun - limited.gap <= best.fun
    assert limited.fun > best.fun
    assert limited.gap >= limited.fun - best.fun
    assert limited.relative_gap > 1e-4


def test_many_columns_are_proven_with_a_probability(monkeypatch):
    from mopn.implicit import proof

    C = confidences(60, 40)
    expected = mopn.minimize(mopn.ImplicitProblem(C, 0.7), tol=1e-6)
    monkeypatch.setattr(proof, "MAX_FACTORIZED", 10)
    problem = mopn.ImplicitProblem(C, 0.7)
    result = mopn.minimize(problem, tol=1e-3)
    assert result.success
    assert result.proof == "probability 1 - 1e-09"
    assert result.lower <= expected.fun
    assert mopn.certify(problem, result).proof == "probability 1 - 1e-09"


def test_the_dual_point_is_checked_by_a_few_lines():
    C = confidences()
    problem = mopn.ImplicitProblem(C, 0.7, 0.4)
    result = mopn.minimize(problem, tol=1e-6)
    G = result.dual.matrix
    values = np.linalg.svd(G.toarray(), compute_uv=False)
    bound = np.sum(G.data - G.data**2 / (2 * C.data)) - np.sum(np.maximum(values - 0.7, 0) ** 2) / (2 * 0.4)
    assert result.lower == result.dual.lower
    assert bound == pytest.approx(result.lower, rel=1e-6)
    assert bound >= result.lower


# -- input and runs ----------------------------------------------------------------------------------------------------


def test_equal_matrices_are_equal_problems():
    C = confidences()
    rows, columns = C.nonzero()
    twice = sparse.coo_array((np.r_[C.data, C.data] / 2, (np.r_[rows, rows], np.r_[columns, columns])), C.shape)
    zeros = sparse.coo_array((np.r_[C.data, 0.0], (np.r_[rows, 0], np.r_[columns, 0])), C.shape)
    wide = sparse.csr_array(C, copy=True)
    wide.indices = wide.indices.astype(np.int64)
    wide.indptr = wide.indptr.astype(np.int64)
    expected = mopn.minimize(mopn.ImplicitProblem(C, 0.7), tol=1e-6)
    for given in (twice, zeros, wide, C.tocsc(), C.astype(np.float32), sparse.csr_matrix(C), C.tolil()):
        before = given.copy()
        result = mopn.minimize(mopn.ImplicitProblem(given, 0.7), tol=1e-6)
        assert result.fun == pytest.approx(expected.fun, rel=1e-12)
        assert (before != given).nnz == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones((3, 2)), "sparse"),
        (sparse.csr_array([[1.0, np.nan]]), "NaN"),
        (sparse.csr_array([[1.0, np.inf]]), "infinity"),
        (sparse.csr_array([[1.0, -2.0]]), "-2"),
        (sparse.csr_array([[1.0 + 1j]]), "complex"),
        (sparse.csr_array((0, 3)), "users and items"),
        (sparse.csr_array([[1e-200, 1e100]]), "too large"),
        (sparse.coo_array(np.ones(3)), "sparse"),
    ],
)
def test_unusable_interactions_are_refused(given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        mopn.ImplicitProblem(given, 1.0)


@pytest.mark.parametrize("options", [{"strength": 0.0}, {"strength": -1.0}, {"strength": np.nan}, {"strength": "a"}])
def test_unusable_options_are_refused(options):
    with pytest.raises((TypeError, ValueError), match="strength must be"):
        mopn.ImplicitProblem(confidences(), **options)
    with pytest.raises((TypeError, ValueError), match="unobserved_weight must be"):
        mopn.ImplicitProblem(confidences(), 1.0, options["strength"])


def test_no_pairs_at_all():
    result = mopn.minimize(mopn.ImplicitProblem(sparse.csr_array((4, 3)), mopn.Ratio(0.5)))
    assert (result.fun, result.gap, result.P.shape, result.Q.shape) == (0.0, 0.0, (4, 0), (3, 0))


def test_runs_end_at_limits_and_go_on():
    problem = mopn.ImplicitProblem(confidences(60, 50), 0.3)
    first = mopn.minimize(problem, tol=1e-9, max_iter=2)
    assert first.status == mopn.Status.MAX_ITER
    assert first.gap_is_proven
    further = mopn.minimize(problem, start=first, tol=1e-9, max_iter=1)
    assert further.fun < first.fun
    assert mopn.minimize(problem, tol=0.0, max_time=0.0).status == mopn.Status.MAX_TIME
    assert np.all(np.diff(mopn.minimize(problem, tol=1e-5).trace["fun"]) < 0.0)
    few = mopn.minimize(problem, AlternatingLeastSquares(max_units=3), tol=1e-9, max_iter=50)
    assert few.P.shape == (60, 3)
    assert few.relative_gap > 1e-4


@pytest.mark.parametrize("raised", [KeyboardInterrupt, StopIteration])
def test_runs_that_are_interrupted_keep_their_best_point(raised):
    problem = mopn.ImplicitProblem(confidences(60, 50), 0.3)

    def callback(intermediate_result):
        if intermediate_result.nit == 2:
            raise raised

    result = mopn.minimize(problem, tol=1e-12, callback=callback)
    assert result.status in (mopn.Status.INTERRUPTED, mopn.Status.STOPPED)
    assert result.fun == pytest.approx(problem.value(result.P, result.Q), rel=1e-12)


def test_starts_that_do_not_fit_are_refused():
    problem = mopn.ImplicitProblem(confidences(), 1.0)
    for start in (np.ones((30, 2)), (np.ones((30, 2)), np.ones((20, 3))), (np.ones((29, 2)), np.ones((20, 2)))):
        with pytest.raises((TypeError, ValueError), match="start"):
            mopn.minimize(problem, start=start)


def test_threads_change_nothing():
    problem = mopn.ImplicitProblem(confidences(3000, 40), 5.0)
    one = mopn.minimize(problem, tol=1e-4, n_threads=1)
    two = mopn.minimize(problem, tol=1e-4, n_threads=2)
    assert np.array_equal(one.P, two.P)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("by_items", [False, True])
def test_half_steps_go_to_the_minimum_of_each_row(single, by_items):
    """No step raises the objective of a row, and many end at the solution of its normal equations."""
    C = confidences(decades=1)
    rng = np.random.default_rng(1)
    P = rng.standard_normal((30, 6))
    Q = rng.standard_normal((20, 6))
    pairs = mopn.ImplicitProblem(C, 1.0).pairs
    A, B, matrix = (Q, P, C.T.toarray()) if by_items else (P, Q, C.toarray())
    common = np.eye(6)

    def values(A):
        return 0.5 * (matrix * (A @ B.T - 1.0) ** 2).sum(1) + 0.5 * np.einsum("ik,kl,il->i", A, common, A)

    improved = A
    for _ in range(200):
        before = values(improved)
        improved = pairs.improved(improved, B, by_items=by_items)
        assert (values(improved) <= before * (1.0 + (1e-5 if single else 1e-12)) + 1e-12).all()
    exact = [np.linalg.solve(common + (B.T * c) @ B, B.T @ c) for c in matrix]
    np.testing.assert_allclose(improved, exact, atol=1e-4 if single else 1e-10)

"""Implicit feedback with features of users and items: the minimum, bounds under attack, half-steps, new users."""

import pickle

import numpy as np
import pytest
from reference import nuclear_minimiser
from scipy import sparse
from sklearn.base import clone

import mopn
from mopn.estimators import ImplicitFactorization
from mopn.implicit.proof import Residuals, krylov_space, proven_dual
from mopn.solvers.tools.budgets import FailureBudget

N_USERS, N_ITEMS = 30, 20
USERS = np.random.default_rng(1).standard_normal((N_USERS, 4))
ITEMS = np.random.default_rng(2).standard_normal((N_ITEMS, 3)) * (np.random.default_rng(3).random((N_ITEMS, 3)) < 0.6)
SIDES = {
    "ids": {},
    "users": {"user_features": USERS},
    "items": {"item_features": ITEMS},
    "both": {"user_features": USERS, "item_features": ITEMS},
}
ATTACKS = {
    "extreme scales": {"user_features": USERS * [1e6, 1e-6, 1.0, 1e3], "item_features": ITEMS * [1e-5, 1.0, 1e4]},
    "dependent columns": {"user_features": np.hstack([USERS, USERS, USERS[:, :1] + USERS[:, 1:2]])},
    "users without features": {"user_features": USERS * (np.arange(N_USERS)[:, None] % 3 == 0)},
    "zero columns": {"user_features": np.zeros((N_USERS, 2)), "item_features": ITEMS * [0.0, 1.0, 0.0]},
    "more features than ids": {"item_features": np.random.default_rng(4).standard_normal((N_ITEMS, 40))},
}
every_side = pytest.mark.parametrize("features", SIDES.values(), ids=SIDES)
every_features = pytest.mark.parametrize("features", (SIDES | ATTACKS).values(), ids=[*SIDES, *ATTACKS])
every_format = pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])


def confidences(density=0.3, seed=0):
    rng = np.random.default_rng(seed)
    return sparse.csr_array((rng.random((N_USERS, N_ITEMS)) < density) * rng.uniform(0.5, 2.0, (N_USERS, N_ITEMS)))


def columns(features, name, n):
    """The columns of ids and features."""
    ids = np.eye(n)
    return np.hstack([ids, features[name]]) if name in features else ids


def tables(features):
    return columns(features, "user_features", N_USERS), columns(features, "item_features", N_ITEMS)


def objective(C, W, features, strength, weight):
    A, B = tables(features)
    fit = 0.5 * np.sum(C.toarray() * (A @ W @ B.T - 1.0) ** 2)
    return fit + 0.5 * weight * np.sum(W**2) + strength * np.linalg.svd(W, compute_uv=False).sum()


def minimum(C, features, strength, weight):
    """The minimiser on the dense matrix: independent of factors."""
    A, B = tables(features)
    curvature = C.max() * np.linalg.norm(A, 2) ** 2 * np.linalg.norm(B, 2) ** 2 + weight

    def gradient(W):
        return A.T @ (C.toarray() * (A @ W @ B.T - 1.0)) @ B + weight * W

    return nuclear_minimiser(gradient, (A.shape[1], B.shape[1]), curvature, strength)


@every_side
@every_format
def test_the_minimum_is_that_of_the_dense_matrix(features, convert):
    C = confidences()
    least = objective(C, minimum(C, features, 1.0, 0.3), features, 1.0, 0.3)
    given = {name: convert(values) for name, values in features.items()}
    problem = mopn.ImplicitProblem(C, 1.0, 0.3, **given)
    result = mopn.minimize(problem, tol=1e-6, max_iter=300)
    assert result.relative_gap <= 1e-6
    assert result.lower <= least * (1 + 1e-13)
    assert abs(result.fun - least) <= result.gap + 1e-9 * least
    assert result.fun == pytest.approx(objective(C, result.P @ result.Q.T, features, 1.0, 0.3), rel=1e-12)
    assert np.all(np.diff(result.trace["fun"]) < 0.0)
    G, factor = problem.gradient(result.P, result.Q)
    A, B = tables(features)
    expected = A.T @ (C.toarray() * (A @ result.P @ result.Q.T @ B.T - 1.0)) @ B
    assert G.toarray() == pytest.approx(expected, abs=1e-10)
    assert factor == 0.3


def test_columns_of_zeros_are_ids_alone():
    C = confidences()
    of_ids = mopn.ImplicitProblem(C, 1.0)
    plain = mopn.minimize(of_ids, tol=1e-7)
    zeros = {"user_features": np.zeros((N_USERS, 2)), "item_features": sparse.csr_array((N_ITEMS, 3))}
    problem = mopn.ImplicitProblem(C, 1.0, **zeros)
    padded = mopn.minimize(problem, tol=1e-7)
    assert padded.relative_gap <= 1e-7
    assert padded.fun == pytest.approx(plain.fun, rel=1e-7)
    P = np.vstack([plain.P, np.zeros((2, plain.P.shape[1]))])
    Q = np.vstack([plain.Q, np.zeros((3, plain.P.shape[1]))])
    certified = mopn.certify(problem, P, Q)
    assert certified.fun == pytest.approx(plain.fun, rel=1e-12)
    assert certified.lower == pytest.approx(mopn.certify(of_ids, plain.P, plain.Q).lower, rel=1e-9)
    assert not padded.P[N_USERS:].any()


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_one_hot_features_are_ids_with_another_penalty(scale):
    """Columns (1, s) of a user are sqrt(1 + s^2) times a unit column, so W is that much shorter."""
    C = confidences()
    square = 1.0 + scale**2
    features = {"user_features": scale * np.eye(N_USERS), "item_features": sparse.csr_array(scale * np.eye(N_ITEMS))}
    ids = mopn.minimize(mopn.ImplicitProblem(C, 1.0 / square, 0.3 / square**2), tol=1e-6, max_iter=500)
    both = mopn.minimize(mopn.ImplicitProblem(C, 1.0, 0.3, **features), tol=1e-6, max_iter=500)
    assert both.fun == pytest.approx(ids.fun, rel=2e-6)
    assert both.lower == pytest.approx(ids.lower, rel=2e-6)


def test_it_is_a_network_problem_on_the_joined_columns():
    features = SIDES["both"]
    C = confidences()
    A, B = tables(features)
    users, items = C.nonzero()
    rows = np.hstack([A[users], B[items]])
    options = {"kernel": "anova", "loss": "squared", "norm": "l1", "ridge": 0.4, "strength": 0.25}
    # The anova kernel of all columns also has the products within a side: units of h and -g cancel these.
    network = mopn.NetworkProblem(rows, np.ones(C.nnz), sample_weight=C.toarray()[users, items], **options)
    result = mopn.minimize(mopn.ImplicitProblem(C, 0.5, 0.4, **features), tol=1e-6, max_iter=300)
    units = np.vstack([np.vstack([result.P, sign * result.Q]).T for sign in (1.0, -1.0)])
    weights = np.repeat([[0.5], [-0.5]], result.P.shape[1], axis=0)
    found = network.output_gradient(network.start((units, weights))).value
    assert found == pytest.approx(result.fun, rel=1e-12)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("by_items", [False, True])
@pytest.mark.parametrize("kind", [*SIDES, "dependent columns", "zero columns", "more features than ids"])
def test_half_steps_go_to_the_minimum_of_a_factor(kind, single, by_items):
    """No step raises the objective of a factor; many end at the solution of its normal equations."""
    features = (SIDES | ATTACKS)[kind]
    problem = mopn.ImplicitProblem(confidences(), 1.0, **features)
    k = 3
    rng = np.random.default_rng(1)
    found = rng.standard_normal((problem.pairs.shape[by_items], k))
    other = rng.standard_normal((problem.pairs.shape[not by_items], k))
    common = np.eye(k)
    C = confidences().toarray()
    A, B = tables(features)
    if by_items:
        C = C.T
        A, B = B, A
    others = B @ other

    def value(factor):
        return 0.5 * np.sum(C * (A @ factor @ others.T - 1.0) ** 2) + 0.5 * np.vdot(factor @ common, factor)

    # A row for each pair, a column for each number of the factor.
    rows, columns = np.nonzero(C)
    entries = np.einsum("ej,ek->ejk", A[rows], others[columns]).reshape(len(rows), -1)
    weights = C[rows, columns]
    matrix = entries.T @ (weights[:, None] * entries) + np.kron(np.eye(A.shape[1]), common)
    exact = np.linalg.solve(matrix, entries.T @ weights).reshape(found.shape)
    least = value(exact)
    for _ in range(60):
        before = value(found)
        found = problem.pairs.improved(found, other, by_items=by_items)
        assert value(found) <= before + (1e-5 if single else 1e-12) * (before + 1.0)
    assert value(found) == pytest.approx(least, rel=1e-4 if single else 1e-8)


@every_features
def test_curvatures_are_sums_over_the_pairs(features):
    pairs = mopn.ImplicitProblem(confidences(), 1.0, **features).pairs
    A, B = tables(features)
    rng = np.random.default_rng(2)
    P = rng.standard_normal((A.shape[1], 3))
    Q = rng.standard_normal((B.shape[1], 3))
    expected = [np.sum(confidences().toarray() * np.outer(A @ p, B @ q) ** 2) for p, q in zip(P.T, Q.T, strict=True)]
    assert pairs.curvatures(P, Q) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("known", [0, 2, N_ITEMS])
def test_searches_find_the_largest_singular_values(known):
    """Outside given vectors, from few directions in several steps, or all there are."""
    pairs = mopn.ImplicitProblem(confidences(), 1.0).pairs
    matrix = Residuals(pairs, pairs.confidences)
    G = confidences().toarray()
    right = np.linalg.svd(G)[2].T
    directions, images = krylov_space(matrix, right[:, :known], np.ones((N_ITEMS, 2)) + np.eye(N_ITEMS)[:, :2], 8)
    assert directions.T @ np.hstack([directions, right[:, :known]]) == pytest.approx(
        np.eye(directions.shape[1], directions.shape[1] + known), abs=1e-12
    )
    assert images == pytest.approx(G @ directions, abs=1e-12)
    found = np.linalg.svd(images, compute_uv=False)[:2]
    assert found == pytest.approx(np.linalg.svd(G, compute_uv=False)[known:][:2], rel=1e-6)


# -- bounds under attack -----------------------------------------------------------------------------------------------


@every_features
@pytest.mark.parametrize("kind", ["random", "start", "large", "at the strength"])
@pytest.mark.parametrize("allowance", [1e-9, 1e3])
def test_any_residuals_prove_a_bound_that_holds(features, kind, allowance):
    C = confidences()
    strength, weight = 0.7, 0.3
    problem = mopn.ImplicitProblem(C, strength, weight, **features)
    rng = np.random.default_rng(3)
    c = problem.pairs.confidences
    r = {"random": c * rng.standard_normal(len(c)), "start": c.copy(), "large": 1e6 * c}.get(kind, c)
    A, B = tables(features)
    if kind == "at the strength":
        r = r * (strength * (1.0 + 1e-15) / np.linalg.norm(A.T @ problem.pairs.matrix(r).toarray() @ B, 2))
    guess = rng.standard_normal((min(problem.pairs.shape), 2))
    options = {"value": -np.inf, "goal": 10.0 * allowance, "failure_budget": FailureBudget()}
    found = proven_dual(problem.pairs, r, guess, strength, weight, **options)
    t = found.matrix.data
    values = np.linalg.svd(A.T @ found.matrix.toarray() @ B, compute_uv=False)
    exact = np.sum(t - t**2 / (2 * c)) - np.sum(np.maximum(values - strength, 0.0) ** 2) / (2 * weight)
    size = np.sum(np.abs(t) + t**2 / c) + np.sum(values**2) / weight
    assert found.lower <= exact + 1e-14 * size


@every_features
def test_no_bound_is_above_the_best_objective(features):
    C = confidences()
    problem = mopn.ImplicitProblem(C, mopn.Ratio(0.05), **features)
    best = mopn.minimize(problem, tol=1e-6, max_iter=300)
    assert best.lower <= best.fun
    for rank in (0, 1, 3):
        limited = mopn.certify(problem, best.P[:, :rank], best.Q[:, :rank])
        assert limited.lower <= best.fun + best.rounding
        assert limited.fun + limited.rounding >= best.lower


def test_extra_columns_are_proven_with_a_probability(monkeypatch):
    from mopn.implicit import proof

    C = confidences()
    expected = mopn.minimize(mopn.ImplicitProblem(C, 1.0, **SIDES["both"]), tol=1e-6, max_iter=300)
    monkeypatch.setattr(proof, "MAX_FACTORIZED", 10)
    result = mopn.minimize(mopn.ImplicitProblem(C, 1.0, **SIDES["both"]), tol=1e-3)
    assert result.proof == "probability 1 - 1e-09"
    assert result.lower <= expected.fun


# -- the estimator -----------------------------------------------------------------------------------------------------


def scaled_columns(values):
    return 0.3 * values / np.linalg.norm(values, axis=0)


def fitted(features, convert=np.asarray, **options):
    given = {name: convert(values) for name, values in features.items()}
    model = ImplicitFactorization(**{"strength": 1.0, "unobserved_weight": 0.3, "tol": 1e-5, "max_iter": 300} | options)
    return model.fit(confidences(), **given)


@every_side
@every_format
def test_it_is_the_problem_on_columns_of_one_length(features, convert):
    model = fitted(features, convert)
    scaled = {name: scaled_columns(values) for name, values in features.items()}
    ones = sparse.csr_array((confidences() > 0).astype(float))
    result = mopn.minimize(mopn.ImplicitProblem(ones, 1.0, 0.3, **scaled), tol=1e-5, max_iter=300)
    assert model.objective_ == pytest.approx(result.fun, rel=2e-5)
    A, B = tables(scaled)
    assert model.user_factors_ @ model.item_factors_.T == pytest.approx(A @ result.P @ result.Q.T @ B.T, abs=1e-6)


@every_side
def test_new_users_have_the_closed_form_minimum(features):
    model = fitted(features).model_
    liked = sparse.csr_array((confidences() > 0).astype(float))[:5]
    given = None if "user_features" not in features else USERS[:5]
    folded = model.fold_in(liked, given)
    # At the minimum of the fit users are what they are by their interactions and features.
    assert folded == pytest.approx(model.user_factors[:5], abs=0.02)
    # Minimise over the row p of the user's id, others fixed: gradient 0.
    offset = 0.0 if given is None else USERS[:5] @ model.user_feature_factors
    rows = folded - offset
    squares = model.item_factors.T @ model.item_factors if model.item_squares is None else model.item_squares
    errors = liked.toarray() * (folded @ model.item_factors.T - 1.0)
    gradient = errors @ model.item_factors + rows @ (0.3 * squares + np.eye(model.n_units))
    assert gradient == pytest.approx(np.zeros_like(gradient), abs=1e-9)
    lists = model.recommend(liked, 4, user_features=given)
    assert lists.scores.shape == (5, 4)
    reasons = model.explain(liked[[2]], 1, None if given is None else given[[2]])
    assert reasons.contributions.sum() == pytest.approx(folded[2] @ model.item_factors[1], rel=1e-9)
    assert (-1 in reasons.items) == (given is not None)
    assert model.explain(2, 1).contributions.sum() == pytest.approx(reasons.contributions.sum(), rel=1e-9)
    nobody = sparse.csr_array((1, N_ITEMS))
    expected = np.zeros((1, model.n_units)) if given is None else offset[:1]
    assert model.fold_in(nobody, None if given is None else given[:1]) == pytest.approx(expected)


@every_format
def test_new_items_are_scored_by_their_features(convert, tmp_path):
    model = fitted(SIDES["both"])
    new = np.random.default_rng(5).standard_normal((6, 3))
    factors = model.fold_in_items(convert(new))
    assert factors == pytest.approx(new @ model.model_.item_feature_factors)
    scores = model.user_factors_ @ factors.T
    best = model.recommend_new_items(convert(new), n=2)
    assert np.array_equal(best.items, np.argsort(-scores, axis=1)[:, :2])
    assert np.array_equal(model.recommend_new_items(new, 3, 2).items, best.items[3])
    assert np.array_equal(model.recommend_new_items(new, [3, 4], 2).items, best.items[3:5])
    model.save(tmp_path / "model.npz")
    for again in (mopn.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.recommend_new_items(new, n=2).items, best.items)
        liked = confidences()[:2]
        assert np.array_equal(again.fold_in(liked, USERS[:2]), model.fold_in(liked, USERS[:2]))
        assert np.array_equal(again.explain(3, 4).contributions, model.explain(3, 4).contributions)
    assert clone(model).get_params() == model.get_params()


def test_options_are_chosen_with_features():
    model = ImplicitFactorization().fit(confidences(), user_features=USERS, item_features=ITEMS)
    assert model.scores_
    assert model.relative_gap_ <= 1e-3


@pytest.mark.parametrize("name", ["user_features", "item_features"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones((3, 2)), "shape"),
        (np.ones(N_USERS), "shape"),
        (np.full((N_USERS, 1), np.nan), "NaN"),
        (sparse.csr_array([[np.inf]]), "infinity"),
        ([["a"]] * N_USERS, ""),
        (np.full((N_USERS, 1), 1e80), "too large|shape"),
    ],
)
def test_unusable_features_are_refused(name, given, words):
    for fit in (ImplicitFactorization(1.0, 0.3).fit, lambda C, **options: mopn.ImplicitProblem(C, 1.0, **options)):
        with pytest.raises((TypeError, ValueError), match=f"{name}.*({words})"):
            fit(confidences(), **{name: given})


def test_features_that_the_model_does_not_know_are_refused():
    plain = fitted({})
    with pytest.raises(ValueError, match="item_features"):
        plain.recommend_new_items(ITEMS)
    with pytest.raises(ValueError, match="user_features"):
        plain.fold_in(confidences(), USERS)
    both = fitted(SIDES["both"])
    with pytest.raises(ValueError, match="user_features are for new users"):
        both.recommend([1], user_features=USERS[:1])
    with pytest.raises(ValueError, match="item_features must have a column for each of the 3"):
        both.fold_in_items(np.ones((2, 4)))
    with pytest.raises(ValueError, match="user_features must have shape"):
        both.fold_in(confidences()[:2], USERS[:3])


def test_ids_are_counted_without_features():
    assert f"users={N_USERS}, items={N_ITEMS}, " in repr(mopn.ImplicitProblem(confidences(), 1.0, **SIDES["both"]))

"""The estimator of implicit feedback: choices, recommendations, new users, files, and the input that it refuses."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mopn
from mopn.estimators import ImplicitFactorization
from mopn.models.implicit import best_of_rows


def likes(n_users=60, n_items=40, seed=0):
    """Users of two kinds, who like one half of the items more often."""
    chance = np.where(np.arange(n_users)[:, None] % 2 == np.arange(n_items) % 2, 0.5, 0.05)
    return sparse.csr_array((np.random.default_rng(seed).random((n_users, n_items)) < chance).astype(float))


def fitted(**options):
    return ImplicitFactorization(**{"strength": 2.0, "unobserved_weight": 0.3, "tol": 1e-5} | options).fit(likes())


def test_it_is_the_minimum_of_the_problem():
    model = fitted()
    result = mopn.minimize(mopn.ImplicitProblem(likes(), 2.0, 0.3), tol=1e-5)
    assert model.objective_ == pytest.approx(result.fun, rel=2e-5)
    assert model.relative_gap_ <= 1e-5
    assert model.status_ == mopn.Status.CONVERGED
    assert (model.strength_, model.unobserved_weight_, model.scores_) == (2.0, 0.3, [])
    assert model.user_factors_.shape == (60, model.n_units_)
    assert model.n_features_in_ == 40


def test_options_are_chosen_on_held_out_pairs():
    model = ImplicitFactorization().fit(likes())
    best = max(model.scores_, key=lambda tried: tried.score if tried.weight == 0.3 else 0.0)
    weights = {tried.weight for tried in model.scores_}
    assert weights == {0.1, 0.3, 1.0}
    largest = np.linalg.norm(likes().toarray(), 2)
    assert any(model.strength_ == pytest.approx(tried.ratio * largest, rel=0.1) for tried in model.scores_)
    assert best.score > 0.2
    again = ImplicitFactorization().fit(likes())
    assert np.array_equal(again.user_factors_, model.user_factors_)
    assert {tried.weight for tried in ImplicitFactorization(unobserved_weight=0.5).fit(likes()).scores_} == {0.5}


def expected_lists(scores, liked, n, *, filtered):
    rows = []
    for row, seen in zip(scores, liked, strict=True):
        left = [item for item in range(len(row)) if not (filtered and seen[item])]
        rows.append(sorted(left, key=lambda item: -row[item])[:n])
    return rows


@pytest.mark.parametrize("filtered", [True, False])
def test_recommendations_are_the_best_of_all_scores(filtered):
    model = fitted()
    scores = model.user_factors_ @ model.item_factors_.T
    expected = expected_lists(scores, likes().toarray() > 0, 5, filtered=filtered)
    found = model.recommend(n=5, filter_already_liked=filtered)
    assert found.items.tolist() == expected
    assert np.allclose(found.scores, np.take_along_axis(scores, found.items, axis=1))
    assert model.recommend([3, 7], 5, filter_already_liked=filtered).items.tolist() == [expected[3], expected[7]]
    one = model.recommend(np.int64(7), 5, filter_already_liked=filtered)
    assert one.items.tolist() == expected[7]


def test_rows_of_interactions_are_new_users_without_a_flag():
    model = fitted()
    rows = likes()[:4]
    folded = model.fold_in(rows)
    Q = model.item_factors_
    for row, factors in zip(rows.toarray(), folded, strict=True):
        liked = np.flatnonzero(row)
        matrix = 0.3 * Q.T @ Q + 2.0 * np.eye(Q.shape[1]) + Q[liked].T @ Q[liked]
        assert factors == pytest.approx(np.linalg.solve(matrix, Q[liked].sum(axis=0)), rel=1e-9)
    assert folded == pytest.approx(model.user_factors_[:4], abs=0.02)
    assert model.recommend(rows, 3).scores == pytest.approx(model.recommend(range(4), 3).scores, abs=0.02)
    nobody = sparse.csr_array((1, 40))
    assert not model.fold_in(nobody).any()
    changed = rows[[0]].tolil()
    changed[0, 1] = 1.0
    assert 1 not in model.recommend(changed, 40).items[0]


def test_users_of_whom_nothing_is_known_get_what_most_liked():
    clicks = likes().tolil()
    clicks[7] = 0.0
    clicks = clicks.tocsr()
    clicks.eliminate_zeros()
    model = ImplicitFactorization(strength=2.0, unobserved_weight=0.3).fit(clicks)
    counts = clicks.astype(bool).sum(axis=0)
    for found in (model.recommend([7, 0], 40), model.recommend(sparse.vstack([clicks[[7]], clicks[[0]]]), 40)):
        assert (np.diff(counts[found.items[0]]) <= 0).all()
        assert not found.scores[0].any()
        assert (found.scores[1][found.items[1] >= 0] != 0.0).all()


@pytest.mark.parametrize("n_items", [50, 640, 700, 3000])
@pytest.mark.parametrize("n", [1, 9, 50])
def test_lists_are_the_best_of_a_sort(n_items, n):
    """Of many items as of few, with ties, rows of few scores and rows of none."""
    scores = np.random.default_rng(0).standard_normal((40, n_items)).round(2)
    scores[:, ::3] = -np.inf
    scores[3] = -np.inf
    scores[4, 5:] = -np.inf
    places, found = best_of_rows(scores, n)
    np.testing.assert_array_equal(found, -np.sort(-scores, axis=1)[:, :n])
    np.testing.assert_array_equal(places >= 0, found > -np.inf)
    at_places = np.take_along_axis(scores, np.maximum(places, 0), axis=1)
    np.testing.assert_array_equal(np.where(places >= 0, at_places, -np.inf), found)
    for row in places:
        ids = row[row >= 0]
        assert len(set(ids.tolist())) == len(ids)


def test_lists_end_where_items_do():
    model = fitted()
    found = model.recommend(0, 100)
    left = 40 - likes()[[0]].nnz
    assert found.items.shape == (40,)
    assert (found.items >= 0).sum() == left
    assert set(found.items[left:].tolist()) == {-1}
    assert np.all(found.scores[left:] == -np.inf)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_reasons_add_up_to_the_score(alpha):
    counts = likes()
    counts.data = np.random.default_rng(1).integers(1, 9, counts.nnz).astype(float)
    model = ImplicitFactorization(2.0, 0.3, alpha=alpha, tol=1e-5).fit(counts)
    reasons = model.explain(5, 1)
    assert sorted(reasons.items.tolist()) == np.flatnonzero(counts[[5]].toarray()[0]).tolist()
    folded = model.fold_in(counts[[5]])[0]
    assert reasons.contributions.sum() == pytest.approx(folded @ model.item_factors_[1], rel=1e-9)
    assert np.all(np.diff(reasons.contributions) <= 0)
    new = model.explain(counts[[5]], 1)
    assert np.array_equal(new.items, reasons.items)


def test_similar_items_and_single_scores():
    model = fitted()
    similar = model.similar_items(0, 8)
    assert 0 not in similar.items
    assert np.all(similar.items % 2 == 0)
    assert np.all(np.diff(similar.scores) <= 0)
    assert np.array_equal(model.similar_items([0, 1], 8).items[0], similar.items)
    scores = model.user_factors_ @ model.item_factors_.T
    assert model.predict([1, 2], [3, 4]) == pytest.approx([scores[1, 3], scores[2, 4]])


def test_copies_and_files(tmp_path):
    model = fitted()
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.recommend(n=5).items, model.recommend(n=5).items)
    model.save(tmp_path / "model.npz")
    loaded = mopn.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.recommend(n=5).items, model.recommend(n=5).items)
    assert np.array_equal(loaded.fold_in(likes()), model.fold_in(likes()))
    code = (
        "import sys, mopn; model = mopn.load(sys.argv[1]); model.recommend(3); "
        "assert not {'sklearn', 'numba'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model.npz")], check=True)


def test_equal_interactions_are_equal_fits():
    given = likes()
    expected = fitted()
    wide = given.astype(np.int64)
    wide.indices = wide.indices.astype(np.int64)
    wide.indptr = wide.indptr.astype(np.int64)
    for other in (wide, given.astype(np.float32), given.tocoo(), given.astype(bool), 3 * given):
        model = ImplicitFactorization(2.0, 0.3, tol=1e-5).fit(other)
        assert model.objective_ == pytest.approx(expected.objective_, rel=2e-5)


def test_users_and_items_without_interactions():
    given = likes().toarray()
    given[4] = 0.0
    given[:, 6] = 0.0
    model = ImplicitFactorization(2.0, 0.3).fit(sparse.csr_array(given))
    assert np.abs(model.user_factors_[4]).max() < 1e-12
    assert np.abs(model.item_factors_[6]).max() < 1e-12
    assert np.isfinite(model.similar_items(6, 3).scores).all()
    assert model.explain(4, 0).items.size == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones((3, 2)), "sparse"),
        (sparse.csr_array([[1.0, np.nan]]), "NaN"),
        (sparse.csr_array([[1.0, -2.0]]), "-2"),
        (sparse.csr_array((3, 3)), "no pair"),
        (None, "sparse"),
    ],
)
def test_unusable_interactions_are_refused(given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        ImplicitFactorization().fit(given)


@pytest.mark.parametrize(
    "options",
    [{"strength": 0}, {"strength": "large"}, {"unobserved_weight": -1.0}, {"alpha": -1}, {"max_units": 0}, {"tol": -1}],
)
def test_unusable_options_are_refused(options):
    (name,) = options
    with pytest.raises((TypeError, ValueError), match=name):
        ImplicitFactorization(**options).fit(likes())


@pytest.mark.parametrize("users", [60, -1, [0, 99], 1.5, "a", [[1]]])
def test_unknown_users_are_refused(users):
    with pytest.raises((TypeError, ValueError), match="users must be ids"):
        fitted().recommend(users)
    with pytest.raises((TypeError, ValueError), match="items must be ids"):
        fitted().similar_items(users)


def test_use_before_a_fit_is_refused():
    with pytest.raises(NotFittedError):
        ImplicitFactorization().recommend(0)
    with pytest.raises(ValueError, match="40"):
        fitted().recommend(sparse.csr_array((1, 39)))

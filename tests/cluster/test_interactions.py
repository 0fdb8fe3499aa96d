"""Implicit feedback by blocks of users and items on a cluster: the same as in memory."""

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.estimators import ImplicitFactorization
from mopn.solvers.tools.blas_threads import limited_threads

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
of_dask = pytest.importorskip("mopn.dask")

OPTIONS = {"strength": mopn.Ratio(0.4), "unobserved_weight": 0.3, "alpha": 0.5, "tol": 1e-3}


def clicks(n_users=90, n_items=40):
    """Counts, among which some users and items have none."""
    rng = np.random.default_rng(0)
    liked = np.arange(n_users)[:, None] % 3 == np.arange(n_items) % 3
    counts = rng.poisson(np.where(liked, 0.6, 0.1))
    counts[10:15] = 0
    counts[:, [0, 7, n_items - 1]] = 0
    return sparse.csr_array(counts)


def chunked(matrix, sizes, convert=sparse.csr_array):
    array = da.from_array(matrix.toarray(), chunks=(sizes, matrix.shape[1]))
    return array.map_blocks(convert, dtype=float, meta=np.empty((0, 0)))


def assert_same(found, expected):
    assert found.n_units_ == expected.n_units_
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    assert found.objective_ - found.gap_ <= expected.objective_
    assert found.strength_ == pytest.approx(expected.strength_, rel=1e-10)
    users = np.arange(len(expected.user_factors_))
    assert found.relative_gap_ <= OPTIONS["tol"]
    scores = expected.user_factors_ @ expected.item_factors_.T
    assert found.user_factors_ @ found.item_factors_.T == pytest.approx(scores, abs=1e-5)
    assert (found.model_.liked != expected.model_.liked).nnz == 0
    assert found.recommend(users, 3).items.tolist() == expected.recommend(users, 3).items.tolist()


@pytest.mark.parametrize(("sizes", "n_items"), [((90,), 40), ((40, 7, 43), 130), ((10, 5, 75), 40), ((1, 88, 1), 130)])
def test_blocks_are_as_in_memory(client, on_workers, sizes, n_items):
    matrix = clicks(90, n_items)
    expected = ImplicitFactorization(**OPTIONS).fit(matrix)
    assert_same(of_dask.fit(ImplicitFactorization(**OPTIONS), chunked(matrix, sizes), client=client), expected)


def test_chunks_without_users(client, on_workers):
    matrix = clicks()
    parts = chunked(matrix, (30, 30, 30))
    parts = da.concatenate([parts[:30], parts[30:60].map_blocks(lambda part: part[:0]), parts[60:]])
    parts._chunks = ((30, 0, 30), parts.chunks[1])
    expected = ImplicitFactorization(**OPTIONS).fit(sparse.vstack([matrix[:30], matrix[60:]]))
    assert_same(of_dask.fit(ImplicitFactorization(**OPTIONS), parts, client=client), expected)


def dummies(n, seed):
    """Three features of n users or items."""
    return np.random.default_rng(seed).random((n, 3)).round()


def in_blocks(features):
    """Features as a dask array."""
    return da.from_array(features, chunks=(20, features.shape[1]))


def in_sparse_blocks(features):
    """Features as a dask array of CSR matrices."""
    return chunked(sparse.csr_array(features), (20, len(features) - 20))


@pytest.mark.parametrize("kinds", [("user",), ("item",), ("user", "item")], ids="-".join)
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, in_blocks, in_sparse_blocks])
def test_features_are_as_in_memory(client, on_workers, kinds, convert):
    matrix = clicks()
    numbers = {"user": dummies(90, 1), "item": dummies(40, 2)}
    features = {f"{kind}_features": numbers[kind] for kind in kinds}
    given = {name: convert(values) for name, values in features.items()}
    expected = ImplicitFactorization(**OPTIONS).fit(matrix, **features)
    found = of_dask.fit(ImplicitFactorization(**OPTIONS), chunked(matrix, (40, 7, 43)), client=client, **given)
    assert_same(found, expected)
    if "item" in kinds:
        new = dummies(5, 3)
        assert (
            found.recommend_new_items(new, 3, 2).items.tolist()
            == expected.recommend_new_items(new, 3, 2).items.tolist()
        )


def test_random_bounds(client, on_workers, monkeypatch):
    from mopn.implicit import proof

    monkeypatch.setattr(proof, "MAX_FACTORIZED", 10)
    expected = ImplicitFactorization(**OPTIONS).fit(clicks())
    assert_same(of_dask.fit(ImplicitFactorization(**OPTIONS), chunked(clicks(), (50, 40)), client=client), expected)


def test_few_pairs_are_gathered_and_options_chosen(client):
    found = of_dask.fit(ImplicitFactorization(), chunked(clicks(), (50, 40)), client=client)
    expected = ImplicitFactorization().fit(clicks())
    np.testing.assert_array_equal(found.user_factors_, expected.user_factors_)
    assert found.scores_ == expected.scores_


def test_what_is_wrong_with_interactions(client, on_workers):
    model = ImplicitFactorization(**OPTIONS)
    dense = clicks().toarray()
    dense[60, 3] = -1
    negative = sparse.csr_array(dense)
    for estimator, data, options, message in (
        (ImplicitFactorization(), chunked(clicks(), (90,)), {}, "strength must be given for interactions on workers"),
        (model, chunked(negative, (50, 40)), {}, "block 1: interactions must hold numbers >= 0, got -1"),
        (model, chunked(clicks(), (50, 40), np.asarray), {}, r"block [01]: interactions must be a SciPy sparse matrix"),
        (model, chunked(clicks(), (50, 40)).map_blocks(lambda part: part[:, :5]), {}, "has 5 items, .* array has 40"),
        (model, chunked(clicks(), (90,)), {"y": [1]}, "y is not for ImplicitFactorization"),
        (
            model,
            chunked(clicks(), (90,)),
            {"user_features": dummies(89, 0)},
            r"user_features must have shape \(90, p\)",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            of_dask.fit(estimator, data, client=client, **options)


@pytest.mark.parametrize("single", [True, False])
def test_threads_make_no_difference(single):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((3000, 400), density=0.1, random_state=rng, format="csr")
    problem = mopn.ImplicitProblem(matrix, mopn.Ratio(0.1))
    point = problem.start((rng.standard_normal((3000, 4)), rng.standard_normal((400, 4))))
    found = []
    for threads in (1, 2):
        with limited_threads(threads):
            following = problem.sweep(point, single=single)
            at = problem.evaluate(following)
            of_users = problem.pairs.times(at.residuals, point.Q, by_items=False)
            of_items = problem.pairs.times(at.residuals, point.P, by_items=True)
            found.append((*following, at.residuals, of_users, of_items))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)

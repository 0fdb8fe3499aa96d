"""What mopn.ranking offers: nDCG by user, rankings of items, and similar features."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples, seeds
from scipy import sparse

import mopn
from mopn.ranking import Ranker, grouped_ndcg, similar_features


def ndcg_by_definition(y, scores, k, gain):
    """Return the mean over all orders that the scores allow."""
    gains = 2.0**y - 1.0 if gain == "exponential" else y
    discounts = np.where(np.arange(len(y)) < (k or len(y)), 1.0 / np.log2(np.arange(len(y)) + 2.0), 0.0)
    orders = [
        order
        for order in itertools.permutations(range(len(y)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    best = np.sort(gains)[::-1] @ discounts
    return np.mean([gains[list(order)] @ discounts for order in orders]) / best if best > 0 else 0.0


@examples(40)
@given(seeds, st.sampled_from([None, 1, 2, 5]), st.sampled_from(["exponential", "linear"]), st.booleans())
def test_against_the_definition(seed, k, gain, ties):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(["a", "b", "c", "d"], [2, 3, 3, 5]))
    y = rng.integers(0, 6, len(groups)).astype(float)
    scores = rng.integers(0, 3, len(groups)) if ties else rng.standard_normal(len(groups))
    exact = [ndcg_by_definition(y[groups == g], scores[groups == g], k, gain) for g in "abcd"]
    assert grouped_ndcg(y, scores, groups, k, gain) == pytest.approx(np.mean(exact), rel=1e-12)


def test_users_with_one_item():
    y, scores, groups = [5, 3, 1], [0.1, 0.2, 0.3], [0, 0, 1]
    two = grouped_ndcg(y[:2], scores[:2], groups[:2])
    assert two < 1.0
    assert grouped_ndcg(y, scores, groups) == pytest.approx(two)


def test_the_right_order_is_perfect_and_the_wrong_one_the_worst():
    rng = np.random.default_rng(0)
    y, groups = rng.permutation(40).astype(float) / 10, np.repeat(np.arange(5), 8)
    assert grouped_ndcg(y, y, groups, 3) == pytest.approx(1.0)
    others = [grouped_ndcg(y, rng.standard_normal(40), groups, 3) for _ in range(20)]
    assert grouped_ndcg(y, -y, groups, 3) < min(others)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [1], [0, 0]), {}, r"y_score must have the shape \(2,\) of y_true, got \(1,\)"),
        (([1, 2], [1, 2], [0]), {}, "groups must have the shape"),
        (([], [], []), {}, "y_true must have shape"),
        (([1, np.nan], [1, 2], [0, 0]), {}, "NaN or infinity"),
        (([1, 2000], [1, 2], [0, 0]), {}, "y_true is too large for gain='exponential'"),
        (([-1, 2], [1, 2], [0, 0]), {}, "relevances must be >= 0, got -1 in y_true; shift them"),
        (([1, 2], [1, 2], [0, 1]), {}, "every group has a single item"),
        (([1, 2], [1, 2], np.array([1, "a"], dtype=object)), {}, "groups holds labels that cannot be sorted"),
        (([1, 2], [1, 2], [1.0, np.nan]), {}, "groups has missing labels"),
        ((["a", "b"], [1, 2], [0, 0]), {}, "y_true must be numeric"),
        (([1, 2], [1, 2j], [0, 0]), {}, "y_score must hold real numbers"),
        (([[1], [1, 2]], [1, 2], [0, 0]), {}, "y_true must be an array"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        grouped_ndcg(*arguments, **options)


# -- rankings of items, against the predictions of all joined rows -----------------------------------------------------


USERS, D = 4, 9  # the first features are users and contexts


def models():
    rng = np.random.default_rng(0)
    H, V, W = rng.standard_normal((3, D)), rng.standard_normal((3, 1)), rng.standard_normal((1, 1 + D))
    dummies = rng.standard_normal((3, 2))
    one = {"target": "vector", "offset": np.array([0.3]), "linear": W}
    several = {"link": "logistic", "classes": np.array([1.0, 2.0, 4.0, 5.0]), "target": "ordinal"}
    ordinal = mopn.Model(H, rng.standard_normal((3, 3)), "anova", **several)
    signs = {"degree": 2, "lams": np.array([1.0, -1.0, 2.0])}
    return {
        "network, anova": mopn.Model(H, V, "anova", **one),
        "network, homogeneous": mopn.Model(H, V, "homogeneous", **one),
        "network, dummies": mopn.Model(np.column_stack([dummies, H]), V, "anova", augment=True, **one),
        "network, no units": mopn.Model(H[:0], V[:0], "anova", **one),
        "levels": ordinal,
        "levels of equal gaps": replace(ordinal, classes=np.arange(4.0)),
        "machine": mopn.FactorizationModel(H[None], w=W[0, 1:], intercept=0.5, **signs),
        "machine, homogeneous": mopn.FactorizationModel(H[None], kernel="homogeneous", **signs),
        "machine, weights of degrees": mopn.FactorizationModel(H[None], theta=np.array([0.3, 0.7]), **signs),
        "machine, lifted": mopn.FactorizationModel(np.stack([H, 2 - H]), degree=2, form="lifted"),
        "network, lifted": mopn.FactorizationModel(
            rng.standard_normal((2, 3, D + 1)), degree=2, form="lifted", kernel="homogeneous", dummies=1
        ),
        "labels": mopn.FactorizationModel(H[None], classes=np.array(["no", "yes"]), **signs),
    }


MODELS = models()
# The score of a row is the product of its two features.
PRODUCT = mopn.FactorizationModel(np.ones((1, 1, 2)), degree=2, lams=np.ones(1))


def scores_of_rows(model, rows):
    return model.predict(rows) if model.target == "ordinal" else model.outputs(rows)[:, 0]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array])
@examples(10)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30))
def test_scores_are_predictions_of_the_joined_rows(kind, form, seed, n):
    model, rng = MODELS[kind], np.random.default_rng(seed)
    user = np.append(rng.standard_normal(USERS) * rng.integers(0, 2, USERS), np.zeros(D - USERS))[None]
    items = np.column_stack([np.zeros((20, USERS)), rng.standard_normal((20, D - USERS))])
    expected = scores_of_rows(model, user + items)
    found = Ranker(model, form(items)).rank(form(user), n)
    np.testing.assert_allclose(Ranker(model, items).scores(form(user)), expected, rtol=1e-11, atol=1e-11)
    order = np.argsort(-expected, kind="stable")[:n]
    np.testing.assert_array_equal(found.items, order)
    np.testing.assert_allclose(found.scores, expected[order], rtol=1e-11, atol=1e-11)


@examples(30)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 14), st.data())
def test_items_are_left_out(values, n, data):
    """And of equal scores the first come first."""
    ranker = Ranker(PRODUCT, np.column_stack([np.zeros(len(values)), values]))
    exclude = data.draw(st.lists(st.integers(0, len(values) - 1)))
    expected = sorted(set(range(len(values))) - set(exclude), key=lambda item: (-values[item], item))[:n]
    found = ranker.rank([[1, 0]], n, exclude=exclude)
    assert found.items.tolist() == expected
    assert found.scores.tolist() == [values[item] for item in expected]


@pytest.mark.parametrize(
    ("exclude", "error", "message"),
    [
        ([0.0], TypeError, "integers, got dtype float64"),
        ([[0]], TypeError, r"shape \(1, 1\)"),
        (0, TypeError, r"shape \(\)"),
        ([True, False], TypeError, "got dtype bool"),
        ([2], ValueError, "from 0 to 1, got 2 to 2"),
        ([-1], ValueError, "from 0 to 1, got -1 to -1"),
    ],
)
def test_only_rows_of_items_can_be_left_out(exclude, error, message):
    ranker = Ranker(PRODUCT, [[0, 1], [0, 2]])
    with pytest.raises(error, match=message):
        ranker.rank([[1, 0]], 1, exclude=exclude)


@pytest.mark.parametrize("ids", [[30, 10, 20], ["c", "a", "b"], np.array([0.5, -1.0, 2.0])])
def test_ids_stand_for_rows(ids):
    ranker = Ranker(PRODUCT, [[0, 1], [0, 3], [0, 2]], ids=ids)
    assert ranker.rank([[1, 0]], 2).items.tolist() == [ids[1], ids[2]]
    assert ranker.rank([[1, 0]], 3, exclude=[ids[2], ids[1]]).items.tolist() == [ids[0]]
    with pytest.raises(ValueError, match=r"exclude must hold ids of items, got 7, which is not in ids"):
        ranker.rank([[1, 0]], 2, exclude=[7])
    for wrong in (ids[:2], [ids[0], ids[0], ids[1]]):
        with pytest.raises(ValueError, match="another id for each of the 3 items"):
            Ranker(PRODUCT, [[0, 1], [0, 3], [0, 2]], ids=wrong)


def test_a_pipeline_is_not_a_model():
    with pytest.raises(TypeError, match=r"got SimpleNamespace; give its last step, pipeline\[-1\]"):
        Ranker(SimpleNamespace(steps=[]), np.eye(3))


def test_bad_input_is_named():
    H = np.ones((1, 3))
    one = mopn.FactorizationModel(H[None], degree=2, lams=np.ones(1))
    ranker = Ranker(one, [[0, 1, 0], [0, 0, 2]])
    cases = {
        "single row": lambda: ranker.rank([[1, 0, 0], [1, 0, 0]], 1),
        "both have the feature 2": lambda: ranker.rank([[1, 0, 1]], 1),
        "user_row has 2 features": lambda: ranker.rank([[1, 0]], 1),
        "item_rows has 2 features": lambda: Ranker(one, [[1, 0]]),
        "n must be": lambda: ranker.rank([[1, 0, 0]], 0),
        "2 outputs": lambda: Ranker(mopn.Model(H, np.ones((1, 2)), "anova"), np.eye(3)),
        "degree 3": lambda: Ranker(mopn.FactorizationModel(H[None], degree=3, lams=np.ones(1)), np.eye(3)),
        "all-subsets": lambda: Ranker(
            mopn.FactorizationModel(H[None], degree=2, kernel="all-subsets", lams=np.ones(1)), np.eye(3)
        ),
        "overflow": lambda: ranker.rank([[1e308, 0, 0]], 1) and Ranker(one, [[0, 1e300, 0]]).scores([[1e300, 0, 0]]),
    }
    for message, call in cases.items():
        with pytest.raises(ValueError, match=message):
            call()


# -- similar features, against the arrays of all interactions ----------------------------------------------------------


def pair_models():
    rng = np.random.default_rng(0)
    H, V = rng.standard_normal((3, 7)), rng.standard_normal((3, 2))
    yield mopn.Model(H, V, kernel="anova")
    yield mopn.Model(H, V, kernel="homogeneous")
    yield mopn.Model(np.column_stack([np.ones((3, 2)), H]), V, kernel="anova", augment=True)
    yield mopn.FactorizationModel(H[None], degree=2, kernel="anova", lams=np.array([1.0, -1.0, 2.0]))


@pytest.mark.parametrize("model", list(pair_models()))
def test_cosines_are_those_of_the_interactions(model):
    users, items = [0, 1, 2], [3, 4, 5, 6]
    pairs = {j: mopn.explain.interaction_weights(model, [(user, j) for user in users]).ravel() for j in items}

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    expected = sorted(((j, cosine(pairs[5], pairs[j])) for j in (3, 4, 6)), key=lambda item: -item[1])
    found = similar_features(model, 5, items)
    assert [item.feature for item in found] == [j for j, _ in expected]
    np.testing.assert_allclose([item.cosine for item in found], [value for _, value in expected], atol=1e-12)
    assert similar_features(model, 5, items, k=1, partners=users) == found[:1]


def test_features_without_interactions_are_left_out_and_bad_indices_named():
    model = mopn.Model(np.array([[1.0, 2.0, 0.0, 1.0]]), np.ones((1, 1)), kernel="anova")
    assert [item.feature for item in similar_features(model, 1, [1, 2, 3])] == [3]
    assert similar_features(model, 2, [1, 2, 3]) == []
    for name, call in {"feature": (4, [1]), "among": (1, [-1]), "partners": (1, [1], 10, [9])}.items():
        with pytest.raises(ValueError, match=name):
            similar_features(model, *call)
    with pytest.raises(ValueError, match="empty"):
        similar_features(model, 1, range(4))


@pytest.mark.parametrize("shrinkage", [0.0, 3.0, 10.0])
def test_cosines_are_shrunk_by_counts(shrinkage):
    model = next(pair_models())
    items, counts = [3, 4, 5, 6], np.array([9, 9, 9, 1, 20, 5, 0])
    plain = {item.feature: item.cosine for item in similar_features(model, 5, items)}
    share = {j: counts[j] / (counts[j] + shrinkage) if counts[j] else 0.0 for j in plain}
    found = similar_features(model, 5, items, counts=counts, shrinkage=shrinkage)
    np.testing.assert_allclose([item.cosine for item in found], [plain[j.feature] * share[j.feature] for j in found])
    assert [item.feature for item in found] == sorted(plain, key=lambda j: -plain[j] * share[j])
    for name, options in {
        "counts": {"counts": counts[:3]},
        "a number >= 0": {"counts": counts - 1},
        "shrinkage": {"counts": counts, "shrinkage": -1.0},
    }.items():
        with pytest.raises(ValueError, match=name):
            similar_features(model, 5, items, **options)

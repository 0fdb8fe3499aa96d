"""Rankings of items, against the predictions of all joined rows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from scipy import sparse

import mopn
from mopn.ranking import Ranker

USERS, D = 4, 9  # the first features are those of users and contexts


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


@pytest.mark.parametrize("kind", ["machine", "levels"])
def test_counts_shrink_scores_towards_the_mean_of_the_user(kind):
    rng = np.random.default_rng(0)
    user, items = np.eye(D)[:1], np.column_stack([np.zeros((20, USERS)), rng.standard_normal((20, D - USERS))])
    plain = Ranker(MODELS[kind], items).scores(user)
    counts = rng.integers(0, 50, 20)
    counts[0] = 0
    expected = plain.mean() + (plain - plain.mean()) * counts / (counts + 5.0)
    ranker = Ranker(MODELS[kind], items, counts=counts, shrinkage=5.0)
    np.testing.assert_allclose(ranker.scores(user), expected, rtol=1e-12)
    np.testing.assert_array_equal(ranker.rank(user, 20).items, np.argsort(-ranker.scores(user), kind="stable"))
    same = Ranker(MODELS[kind], items, counts=counts + 1, shrinkage=0.0).scores(user)
    np.testing.assert_allclose(same, plain, rtol=1e-12)
    for wrong in (counts[:3], -counts - 1):
        with pytest.raises(ValueError, match="counts must hold a number >= 0 for each of the 20 items"):
            Ranker(MODELS[kind], items, counts=wrong)


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

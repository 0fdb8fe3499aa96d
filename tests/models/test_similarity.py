"""Similar features, against the arrays of all interactions."""

import numpy as np
import pytest

import mopn
from mopn.ranking import similar_features


def models():
    rng = np.random.default_rng(0)
    H, V = rng.standard_normal((3, 7)), rng.standard_normal((3, 2))
    yield mopn.Model(H, V, kernel="anova")
    yield mopn.Model(H, V, kernel="homogeneous")
    yield mopn.Model(np.column_stack([np.ones((3, 2)), H]), V, kernel="anova", augment=True)
    yield mopn.FactorizationModel(H[None], degree=2, kernel="anova", lams=np.array([1.0, -1.0, 2.0]))


@pytest.mark.parametrize("model", list(models()))
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
    model = next(models())
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

"""Models of one output, and the weights of their interactions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import mopn
from mopn.explain import interaction_weights, interactions, strongest_interactions
from mopn.explain.interactions import Interactions
from mopn.factorization.direct import FactorizationProblem
from mopn.factorization.lifted import LiftedProblem

D = 7
DIRECT = {
    "second": {"degree": 2},
    "third and second": {"degree": 3, "fit_lower": "explicit", "fit_linear": True, "fit_intercept": True},
    "augmented": {"degree": 4, "fit_lower": "augment"},
    "shared": {"degree": 3, "fit_lower": "shared"},
    "inhomogeneous": {"degree": 3, "theta": [0.2, 0.3, 0.5]},
    "all subsets": {"kernel": "all-subsets"},
    "homogeneous": {"kernel": "homogeneous", "degree": 3, "fit_lower": "augment"},
}
LIFTED = {
    "lifted": {"degree": 3, "augment": True, "fit_linear": True},
    "lifted anova": {"degree": 2, "kernel": "anova", "fit_intercept": True},
}
KINDS = [*DIRECT, *LIFTED]


def make(kind, **options):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, D)), rng.standard_normal(30)
    if kind in DIRECT:
        problem = FactorizationProblem(X, y, n_components=5, init_scale=0.5, offset=np.full(30, 0.7), **DIRECT[kind])
    else:
        problem = LiftedProblem(X, y, rank=5, init_scale=0.5, **LIFTED[kind])
    x = problem.start(1)
    return problem, x, mopn.FactorizationModel.from_result(problem, problem.unpack(x), **options), X


def coefficient(model, group):
    """The coefficient of a product of distinct features, by differences over signs: exact for odd polynomials."""
    step, total = 1e-2, 0.0
    for signs in itertools.product((-1, 1), repeat=len(group)):
        x = np.zeros((1, D))
        x[0, list(group)] = step * np.array(signs)
        total += np.prod(signs) * model.outputs(x)[0, 0]
    return total / (2 * step) ** len(group)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_gives_the_outputs_of_its_problem(kind):
    problem, x, model, X = make(kind)
    shift = 0.7 if kind in DIRECT else 0.0
    np.testing.assert_allclose(model.outputs(X)[:, 0], problem.outputs(x) + shift, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_the_coefficients_of_the_polynomial(kind, degree):
    _, _, model, _ = make(kind)
    assert interaction_weights(model, []).shape == (0,)
    if kind == "augmented":  # its third degree of dummies is the linear term
        weights = interaction_weights(model, [(j,) for j in range(D)])
        np.testing.assert_allclose(weights, [coefficient(model, (j,)) for j in range(D)], atol=1e-8)
    groups = list(itertools.combinations(range(D), degree))
    if degree > model.degree and kind != "all subsets":
        with pytest.raises(ValueError, match="interactions of at most 2 features"):
            interaction_weights(model, groups)
        return
    weights = interaction_weights(model, groups)
    np.testing.assert_allclose(weights, [coefficient(model, group) for group in groups], atol=1e-8)
    np.testing.assert_allclose(interaction_weights(model, [group[::-1] for group in groups]), weights, atol=1e-12)

    found = strongest_interactions(model, 4, degree)
    order = np.argsort(-np.abs(weights))[:4]
    assert [item.features for item in found] == [groups[i] for i in order]
    np.testing.assert_allclose([item.weight for item in found], weights[order], rtol=1e-12)
    assert found.exact
    assert found.bound <= abs(found[-1].weight)


def test_names_stand_for_features():
    _, _, model, _ = make("second")
    named = replace(model, feature_names=NAMES)
    np.testing.assert_array_equal(interaction_weights(named, [("f2", "f5")]), interaction_weights(model, [(2, 5)]))
    with pytest.raises(ValueError, match="names must be distinct"):
        interaction_weights(replace(model, feature_names=["f"] * D), [("f2", "f5")])
    found = strongest_interactions(named, 1)[0]
    assert found.names == tuple(NAMES[j] for j in found.features)


def test_many_pairs_without_the_matrix():
    rng = np.random.default_rng(0)
    model = mopn.FactorizationModel(factors=rng.standard_normal((1, 4, 1000)), degree=2, lams=rng.standard_normal(4))
    found = strongest_interactions(model, 20)
    P = model.factors[0]
    W = np.triu((P.T * model.lams) @ P, 1)
    np.testing.assert_allclose([abs(item.weight) for item in found], np.sort(np.abs(W).ravel())[::-1][:20], rtol=1e-12)
    assert found.exact


def test_a_search_that_is_cut_off_bounds_what_it_missed(monkeypatch):
    rng = np.random.default_rng(0)
    model = mopn.FactorizationModel(factors=rng.standard_normal((1, 30, 40)), degree=4, lams=np.ones(30))
    whole = strongest_interactions(model, 3, 4)
    assert whole.exact
    for nodes in (50, 1):
        monkeypatch.setattr(interactions, "MAX_NODES", nodes)
        found = strongest_interactions(model, 3, 4)
        assert bool(found) == (nodes > 1)
        assert not found.exact
        assert found.bound >= abs(whole[0].weight)
        assert all(abs(a.weight) <= abs(b.weight) for a, b in zip(found, whole, strict=False))


FORMS = {
    "lambda": {"lams": np.zeros(2)},
    "shared": {"theta": np.array([1.0, 0.0, 0.0]), "degree": 3},
    "dummies": {"factors": np.pad(np.ones((1, 2, 4)), ((0, 0), (0, 0), (1, 0))), "dummies": 1, "degree": 3},
    "all subsets": {"kernel": "all-subsets", "lams": np.zeros(2)},
    "homogeneous": {"kernel": "homogeneous", "lams": np.zeros(2)},
    "lifted": {"form": "lifted", "kernel": "homogeneous", "factors": np.zeros((2, 2, 4)), "lams": None},
    "no units": {"factors": np.zeros((1, 0, 4)), "lams": np.zeros(0)},
}


@pytest.mark.parametrize("fields", FORMS.values(), ids=FORMS)
def test_a_form_with_interactions_has_them_whatever_its_numbers_are(fields):
    """Also where all weights are 0: it is an empty list, which loops over fits can do with."""
    model = mopn.FactorizationModel(**({"factors": np.ones((1, 2, 4)), "degree": 2, "lams": np.ones(2)} | fields))
    found = strongest_interactions(model)
    assert found == []
    assert isinstance(found, Interactions)
    assert found.exact
    np.testing.assert_array_equal(interaction_weights(model, [(0, 2)]), [0.0])


@pytest.mark.parametrize("fields", [{}, {"kernel": "homogeneous"}, {"form": "lifted", "kernel": "homogeneous"}])
def test_a_form_without_interactions_of_a_degree(fields):
    """Third degree without dummies: there are no products of two."""
    factors = np.ones((3 if "form" in fields else 1, 2, 4))
    model = mopn.FactorizationModel(factors=factors, degree=3, lams=np.ones(2), **fields)
    with pytest.raises(ValueError, match="degree=2: the model has no interactions of this number of features"):
        strongest_interactions(model)
    assert len(strongest_interactions(model, 10, 3)) == 4


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8])
def test_counts_may_be_integers_of_numpy(dtype):
    _, _, model, _ = make("augmented")
    found = strongest_interactions(model, dtype(3), dtype(2))
    assert found == strongest_interactions(model, 3, 2)


NAMES = [f"f{j}" for j in range(D)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 3}, "degree=3, but the model has interactions of at most 2"),
        ({"degree": 10**12}, "but the model has interactions of at most 2"),
    ],
)
def test_bad_options(options, message):
    _, _, model, _ = make("second")
    with pytest.raises((TypeError, ValueError), match=message):
        strongest_interactions(model, **options)


def test_no_products_of_more_features_than_there_are():
    _, _, model, _ = make("all subsets")
    assert len(strongest_interactions(model, 2, D)) == 1
    with pytest.raises(ValueError, match="at most 7 features"):
        strongest_interactions(model, 2, D + 1)


NETWORKS = {
    "polynomial": ("homogeneous", 1, 3),
    "factorization": ("anova", 2, 3),
    "one output": ("anova", 0, 1),
}


def network(kernel, dummies, outputs):
    rng = np.random.default_rng(3)
    H, V = rng.standard_normal((4, dummies + D)), rng.standard_normal((4, outputs))
    return mopn.Model(H, V, kernel=kernel, augment=dummies > 0)


@pytest.mark.parametrize("fields", NETWORKS.values(), ids=NETWORKS)
def test_interactions_of_a_network_are_those_of_its_outputs(fields):
    model = network(*fields)
    groups = list(itertools.combinations(range(D), 2))
    outputs = [mopn.FactorizationModel.from_outputs(model, e) for e in np.eye(fields[2])]
    expected = np.stack([interaction_weights(output, groups) for output in outputs], axis=1)
    weights = interaction_weights(model, groups)
    np.testing.assert_allclose(weights.reshape(len(groups), -1), expected, rtol=1e-12, atol=1e-12)
    for c, output in enumerate(outputs):
        order = np.argsort(-np.abs(expected[:, c]))[:5]
        assert [item.features for item in strongest_interactions(output, 5)] == [groups[i] for i in order]
    # For all outputs together, the strongest interactions are the longest.
    lengths = np.linalg.norm(weights.reshape(len(groups), -1), axis=1)
    order = np.argsort(-lengths)[:4]
    found = strongest_interactions(model, 4)
    assert [item.features for item in found] == [groups[i] for i in order]
    np.testing.assert_allclose([item.weight for item in found], weights[order], rtol=1e-12)
    assert found.exact
    np.testing.assert_allclose(found.bound, lengths[order[-1]], rtol=1e-12)


@pytest.mark.parametrize("degree", [2, 3])
def test_a_scale_gives_the_weights_of_scaled_features(degree):
    _, _, model, _ = make("third and second")
    scale = np.arange(1.0, D + 1)
    groups = list(itertools.combinations(range(D), degree))
    weights = interaction_weights(model, groups) * np.prod(scale[np.array(groups)], axis=1)
    order = np.argsort(-np.abs(weights))[:4]
    found = strongest_interactions(model, 4, degree, scale=scale)
    assert [item.features for item in found] == [groups[i] for i in order]
    np.testing.assert_allclose([item.weight for item in found], weights[order], rtol=1e-12)
    with pytest.raises(ValueError, match=r"scale must hold one number per feature, 7 in all, got shape \(3,\)"):
        strongest_interactions(model, scale=np.ones(3))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([(0, 0)], "distinct"),
        ([(0, 9)], "below 7"),
        ([(0, -1)], "below 7"),
        ([("a", "b")], "or of names"),
        ([(0, 1), (0, 1, 2)], "same length"),
    ],
)
def test_bad_features(features, message):
    _, _, model, _ = make("third and second")
    with pytest.raises(ValueError, match=message):
        interaction_weights(model, features)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"factors": np.ones((2, 3))}, "three axes"),
        ({"lams": np.ones(2)}, "one number per unit"),
        ({"form": "lifted", "factors": np.ones((3, 1, 4))}, "as many factors"),
        ({"dummies": 4}, "no columns besides the dummies"),
        ({"w": np.ones(3)}, "w must have shape"),
        ({"target": "labels"}, "need classes"),
        ({"factors": np.full((1, 1, 4), np.nan)}, "factors contains NaN"),
        ({"lams": np.array([np.inf])}, "lams contains NaN or infinity"),
        ({"theta": np.ones(3)}, "theta must hold 2"),
        ({"theta": [[1], [1, 2]]}, "theta must be an array"),
        ({"theta": np.ones(2), "factors": np.ones((2, 1, 4))}, "one degree at least and 1 at most, got 2"),
        ({"factors": np.ones((3, 1, 4))}, "one degree at least and 2 at most, got 3"),
        ({"factors": np.ones((0, 1, 4))}, "one degree at least and 2 at most, got 0"),
        ({"intercept": np.ones(2)}, "intercept must be a number, got shape"),
        ({"degree": 10**12}, "degree must be at most 65536"),
        ({"form": "lifted", "kernel": "all-subsets", "factors": np.ones((2, 1, 4))}, "has no lifted form"),
        ({"form": "lifted", "factors": np.ones((3, 1, 4)), "degree": 3}, "has no lifted form"),
        ({"classes": ["a", "b"]}, "classes must be an array of labels"),
        ({"classes": np.array([0.0, np.nan])}, "classes contains NaN"),
    ],
)
def test_bad_models(fields, message):
    good = {"factors": np.ones((1, 1, 4)), "degree": 2, "lams": np.ones(1)}
    with pytest.raises((TypeError, ValueError), match=message):
        mopn.FactorizationModel(**(good | fields))


def test_bad_data_for_a_model():
    X, y = np.random.default_rng(0).standard_normal((30, D)), np.arange(30.0)
    problem = FactorizationProblem(X, y, offset=y)
    with pytest.raises(ValueError, match="offset differs"):
        mopn.FactorizationModel.from_result(problem, problem.unpack(problem.start()))
    several = LiftedProblem((X, X[:, :2]), y)
    with pytest.raises(ValueError, match="has its own X"):
        mopn.FactorizationModel.from_result(several, several.unpack(several.start()))


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
@pytest.mark.parametrize("augment", [False, True])
def test_outputs_of_a_network_as_one(kernel, augment):
    """A combination of outputs predicts the combined outputs, and has the interactions of their matrices."""
    rng = np.random.default_rng(0)
    ones = {"anova": 2, "homogeneous": 1}[kernel] if augment else 0
    model = mopn.Model(
        rng.standard_normal((3, ones + 4)),
        rng.standard_normal((3, 2)),
        kernel=kernel,
        augment=augment,
        offset=rng.standard_normal(2),
        linear=rng.standard_normal((2, 5)),
    )
    combination, X = np.array([2.0, -1.0]), rng.standard_normal((5, 4))
    single = mopn.FactorizationModel.from_outputs(model, combination)
    np.testing.assert_allclose(single.predict(X), model.outputs(X) @ combination, rtol=1e-11)
    W = np.einsum("sj,s,sk->jk", model.basis, model.weights @ combination, model.basis)[ones:, ones:]
    W *= 1.0 if kernel == "anova" else 2.0
    pairs = [(0, 1), (3, 1)]
    np.testing.assert_allclose(interaction_weights(single, pairs), [W[pair] for pair in pairs], rtol=1e-11)
    with pytest.raises(ValueError, match="combination must hold 2 finite numbers, one per output"):
        mopn.FactorizationModel.from_outputs(model, np.ones(3))
    for bad in ("ab", [1.0, np.nan], [1.0, None]):
        with pytest.raises((TypeError, ValueError), match="combination"):
            mopn.FactorizationModel.from_outputs(model, bad)

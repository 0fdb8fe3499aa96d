"""Products of features of different groups alone: kernels by brute force, optima found independently, errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import DATA, data, rows_of
from properties import examples, seeds
from reference import between, derivatives
from scipy import sparse
from stacks import every_p, good_vectors, norms

import mopn
from mopn.core.kernels import check_groups, feature_groups, get_kernel
from mopn.data import designs
from mopn.data.designs import make_design
from mopn.data.feature_scaling import Coordinates
from mopn.data.losses_of_rows import Losses
from mopn.data.rows import ArrayRows
from mopn.network.gradient_forms import GradientForms
from mopn.network.two_layers import two_layers
from mopn.solvers import ConditionalGradient
from mopn.solvers.sphere import enumerate_signs
from mopn.solvers.sphere.bounds import upper_bound

STORAGES = {"dense": np.asarray, "float32": np.float32, "csr": sparse.csr_array, "csc": sparse.csc_array}
every_storage = pytest.mark.parametrize("storage", STORAGES.values(), ids=STORAGES)
every_count = pytest.mark.parametrize("dummies", [0, 2])
# Groups of neighbours, of others, of one feature, and beside features of none.
GROUPS = [[0, 0, 1, 1, 1], [0, 1, 0, 1, 0], [-1, 0, 0, -1, -1], [3, 1, 3, 3, -1]]
every_groups = pytest.mark.parametrize("groups", GROUPS, ids=str)


def kernel_of(groups):
    return get_kernel("anova", check_groups(groups, len(groups)))


def augmented(X, groups, dummies):
    """X and the groups of its columns, after dummies."""
    return np.hstack([np.ones((len(X), dummies)), X]), np.append(np.full(dummies, -1), groups)


def brute_force(H, X, groups):
    """The sums (n, k) over all pairs of different groups, one after the other, in the precision of X and H."""
    pairs = [pair for pair in itertools.combinations(range(len(groups)), 2) if between(groups)[pair]]
    return sum((np.outer(X[:, i] * X[:, j], H[:, i] * H[:, j]) for i, j in pairs), np.zeros((len(X), len(H)), X.dtype))


def draw(seed, n=12, d=5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * (rng.random((n, d)) < 0.7)
    X[seed % n] = 0.0
    return rng, X.astype(np.float32).astype(np.float64)


@every_storage
@every_count
@every_groups
def test_kernel_and_matrices_are_those_of_the_pairs(groups, dummies, storage):
    rng, X = draw(0)
    kernel, (Z, labels) = kernel_of(groups), augmented(X, groups, dummies)
    H, G, W = rng.standard_normal((9, Z.shape[1])), rng.standard_normal((12, 5)), rng.standard_normal((9, 5))
    design = make_design(storage(X), dummies)
    K = brute_force(H, Z, labels)
    np.testing.assert_allclose(kernel.features(design, H), K, rtol=0, atol=1e-13)
    forms = GradientForms(kernel, rows_of(design, size=5), G)
    dense = GradientForms(kernel, rows_of(design), G).dense()
    gammas = 0.5 * between(labels) * np.einsum("nc,ni,nj->cij", G, Z, Z)
    np.testing.assert_allclose(dense.matrices, gammas, rtol=0, atol=1e-14)
    assert not dense.matrices[:, ~between(labels)].any()
    np.testing.assert_allclose(forms.forms(H), K.T @ G, rtol=0, atol=1e-12)
    np.testing.assert_allclose(forms.products(W, H), np.einsum("rc,cij,rj->ri", W, gammas, H), rtol=0, atol=1e-12)
    of_rows = 0.5 * between(labels) * np.einsum("ni,nj->nij", Z, Z)
    inner = np.einsum("aij,bij->ab", of_rows, of_rows) / design.unit**4
    np.testing.assert_allclose(kernel.inner_products(design), inner, rtol=0, atol=1e-14)


@every_storage
@every_groups
def test_small_blocks_and_other_coordinates(groups, storage, monkeypatch):
    """float32 data is mapped block by block."""
    monkeypatch.setattr(designs, "CACHE_ENTRIES", 12)
    rng, X = draw(1)
    scale, H = rng.uniform(0.5, 2.0, 5), rng.standard_normal((3, 5))
    design = Coordinates(None, scale).design(make_design(storage(X)))
    K = brute_force(H, X / scale, np.array(groups))
    np.testing.assert_allclose(kernel_of(groups).features(design, H), K, rtol=0, atol=1e-13)


@every_groups
@pytest.mark.parametrize("kind", DATA)
@every_p
@examples(12)
@given(seed=seeds, storage=st.sampled_from(["dense", "csr"]), dummies=st.sampled_from([0, 2]))
def test_no_attained_value_exceeds_the_bounds(groups, kind, p, seed, storage, dummies):
    rng = np.random.default_rng(seed)
    X, G = DATA[kind](rng, 10, 5), rng.standard_normal((10, 3))
    if kind == "cancelling":
        G[1::2] = -G[:9:2]
    forms = GradientForms(kernel_of(groups), rows_of(make_design(STORAGES[storage](X), dummies)), G)
    dense = forms.dense()
    H = good_vectors(rng, dense.matrices, p).astype(np.longdouble)
    Z, labels = augmented(X.astype(np.longdouble), groups, dummies)
    largest = (norms(brute_force(H, Z, labels).T @ G, p) / np.sum(H * H, axis=1)).max()
    assert largest <= forms.bound(p)
    assert largest <= forms.collatz_bound(p)
    assert largest <= upper_bound(dense, p)
    if p == 1:
        assert largest <= enumerate_signs(dense)[1]


@pytest.mark.parametrize("linear", [False, True])
@every_count
@every_groups
def test_both_layers(groups, dummies, linear):
    """Dense and sparse rows, against differences of the definition."""
    rng, X = draw(2, n=20)
    y, (Z, labels) = rng.integers(0, 5, 20), augmented(X, groups, dummies)
    y[:5] = range(5)
    H, V = rng.standard_normal((6, 5 + dummies)), rng.standard_normal((6, 5))
    W = rng.standard_normal((5, 6)) if linear else np.zeros((5, 0))
    fit = Losses.of_data("logistic", y, 20)

    def value(H, V, W):
        linear = np.hstack([np.ones((20, 1)), X]) @ W.T if W.size else 0.0
        return fit.value(brute_force(H, Z, labels) @ V + linear)

    point = H, V, W
    moved = [lambda A, p=place: value(*point[:p], A, *point[p + 1 :]) for place in range(3)]
    expected = [derivatives(function, at) for function, at in zip(moved, point, strict=True)]
    for storage in STORAGES.values():
        for single, tol in ((False, 1e-6), (True, 1e-3)):
            layers = two_layers(ArrayRows(make_design(storage(X), dummies), fit, 7), kernel_of(groups), single=single)
            found, *gradients = layers.value_gradient(*point)
            assert found == pytest.approx(value(*point), rel=tol * 1e-3)
            assert layers.value(*point) == pytest.approx(found, rel=tol * 1e-3)
            for gradient, reference in zip(gradients, expected, strict=True):
                size = max(np.abs(reference).max(initial=0), 1)
                np.testing.assert_allclose(gradient, reference, rtol=0, atol=tol * size)


@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_models_keep_the_groups(norm, storage, tmp_path):
    X, y = data("logistic", n=40, d=5)
    groups = [[0, 3], [1, 4]]
    problem = mopn.NetworkProblem(
        storage(X), y, kernel="anova", norm=norm, strength=0.5, augment=True, scale="features", interactions=groups
    )
    result = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-2, max_iter=2)
    assert "between 2 groups" in repr(problem)
    model = mopn.Model.from_result(problem, result)
    np.testing.assert_array_equal(model.groups, [0, 1, -1, 0, 1])
    outputs = problem.start(result).outputs
    np.testing.assert_allclose(model.outputs(storage(X)), outputs, rtol=0, atol=1e-12 * np.abs(outputs).max())
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(mopn.load(tmp_path / "model.npz").outputs(X), model.outputs(X))
    assert not mopn.explain.interaction_weights(model, [(0, 3), (1, 4)]).any()
    assert mopn.explain.interaction_weights(model, [(0, 1), (2, 4)]).all()


def test_groups_that_restrict_nothing_are_the_plain_kernel():
    X, y = data("logistic")
    for interactions in (None, [], [[0], [1], [2]]):
        problem = mopn.NetworkProblem(X, y, kernel="anova", strength=1.0, interactions=interactions)
        assert problem.kernel is get_kernel("anova")


NAMES = ["age", "user", "item"]
WRONG = {
    "no groups": (3, TypeError, "interactions must hold groups of columns, such as"),
    "text": ("age", TypeError, "interactions must hold groups of columns"),
    "no lists": ([0, 1], TypeError, "interactions must hold groups of columns"),
    "names alone": (["age", "user"], TypeError, "interactions must hold groups of columns"),
    "overlap": ([[0, 1], [1, 2]], ValueError, "the groups 0 and 1 overlap in the column 1; give each column in one"),
    "twice": ([["age", 0]], ValueError, "the groups 0 and 0 overlap in the column 0"),
    "beyond": ([[0, 3]], ValueError, "indices of columns from 0 to 2, or names of columns, got 3"),
    "negative": ([[0, -1]], ValueError, "got -1"),
    "fraction": ([[0, 1.0]], ValueError, "got 1.0"),
    "flag": ([[0, True]], ValueError, "got True"),
    "unknown": ([["age", "film"]], ValueError, "got 'film'"),
    "empty": ([[0, 1], []], ValueError, "the group 1 is empty; leave it out"),
    "everything": ([NAMES], ValueError, "all columns are in one group, so no pair is left"),
}


@pytest.mark.parametrize(("interactions", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_groups_are_named(interactions, error, message):
    with pytest.raises(error, match=message):
        feature_groups(interactions, 3, NAMES)


def test_what_has_no_groups():
    X, y = data("logistic")
    with pytest.raises(ValueError, match="interactions are for factorization machines, kernel='anova'"):
        mopn.NetworkProblem(X, y, strength=1.0, interactions=[[0, 1]])
    with pytest.raises(ValueError, match="as the columns have no names, got 'age'"):
        mopn.NetworkProblem(X, y, kernel="anova", strength=1.0, interactions=[["age", 1]])
    with pytest.raises(ValueError, match="groups of features that do not interact need kernel='anova'"):
        mopn.Model(np.ones((1, 2)), np.ones((1, 1)), groups=[0, 0])
    for groups in ([0], [0, -2], [0.0, 1.0]):
        with pytest.raises(ValueError, match="groups must hold an integer of at least -1 for each of the 2 features"):
            mopn.Model(np.ones((1, 2)), np.ones((1, 1)), kernel="anova", groups=groups)

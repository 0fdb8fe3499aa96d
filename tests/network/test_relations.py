"""Networks on relation blocks against networks on the plain matrix, and the metric of their joint refits."""

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.data.relation_design import RelationDesign, RowIds
from mopn.network import curvature
from mopn.network.curvature import RelationPreconditioner
from mopn.network.two_layers import RelationLayers, two_layers
from mopn.oracles import basis_oracle
from mopn.solvers import LBFGS

RNG = np.random.default_rng(0)
N, K, M = 200, 5, 3
TABLES = [sparse.random(12, 6, 0.5, format="csr", random_state=1), RNG.standard_normal((5, 4)), sparse.eye_array(4)]
ROWS = np.column_stack([RNG.integers(0, table.shape[0], N) for table in TABLES])
RELATED = mopn.RelationBlocks(TABLES, ROWS)
PLAIN = RELATED.tocsr()
D = PLAIN.shape[1]
LABELS = RNG.integers(0, M, N)
WEIGHTS = RNG.uniform(0.5, 2.0, N)
OPTIONS = {
    "anova": {"kernel": "anova"},
    "anova, dummies, linear term": {"kernel": "anova", "augment": True, "alpha": 0.5},
    "anova, scaled": {"kernel": "anova", "alpha": 0.5, "scale": "features"},
    "anova, large features scaled": {"kernel": "anova", "scale": "large"},
    "anova, dummies, ridge": {"kernel": "anova", "augment": True, "ridge": 0.5},
    "homogeneous": {"kernel": "homogeneous"},
    "homogeneous, dummy, linear term": {"kernel": "homogeneous", "augment": True, "alpha": 0.5, "scale": "data"},
}


def problems(strength=1.0, **options):
    given = {"strength": strength, "sample_weight": WEIGHTS} | options
    return tuple(mopn.NetworkProblem(X, LABELS, **given) for X in (RELATED, PLAIN))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_sums_over_the_samples(options):
    related, plain = problems(**options)
    d, alpha = plain.rows.shape[1], options.get("alpha")
    H, V, G = (RNG.standard_normal(shape) for shape in ((K, d), (K, M), (N, M)))
    W = np.zeros((M, 0)) if alpha is None else RNG.standard_normal((M, 1 + D))
    layers, expected = (two_layers(problem.rows, problem.kernel) for problem in (related, plain))
    assert isinstance(layers, RelationLayers)
    np.testing.assert_allclose(layers.value(H, V, W), expected.value(H, V, W), rtol=1e-13)
    pairs = [*zip(layers.value_gradient(H, V, W), expected.value_gradient(H, V, W), strict=True)]
    pairs += [(layers.forms(G, H), expected.forms(G, H)), (layers.products(G, V, H), expected.products(G, V, H))]
    for found, right in pairs:
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11 * np.abs(right).max(initial=0.0))


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
def test_the_constant_of_one_output(kernel):
    """Coefficients of one output lie in memory as loops read them, so these may not write there."""
    y, options = 5.0 + PLAIN.toarray()[:, 0], {"loss": "squared", "kernel": kernel, "strength": 1.0, "alpha": 1.0}
    related, plain = (mopn.NetworkProblem(X, y, **options) for X in (RELATED, PLAIN))
    H, V, W = RNG.standard_normal((K, D)), RNG.standard_normal((K, 1)), RNG.standard_normal((1, 1 + D))
    given = W.copy()
    layers, expected = (two_layers(problem.rows, problem.kernel) for problem in (related, plain))
    assert layers.value(H, V, W) == pytest.approx(expected.value(H, V, W), rel=1e-12)
    for found, right in zip(layers.value_gradient(H, V, W), expected.value_gradient(H, V, W), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11 * np.abs(right).max())
    np.testing.assert_array_equal(W, given)
    fits = [mopn.minimize(problem, mopn.solvers.ConditionalGradient("full"), tol=1e-6) for problem in (related, plain)]
    assert fits[0].fun == pytest.approx(fits[1].fun, rel=1e-5)
    assert all(fit.success for fit in fits)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_fits_and_their_proofs(options):
    # Refits have another metric, so they agree where they are fits to the end.
    refit = mopn.solvers.FullRefit(polish_tol=1e-10, polish_iter=5000)
    found, expected = (
        mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit=refit, max_units=2), tol=1e-9, max_iter=3)
        for problem in problems(strength=20.0, **options)
    )
    assert found.fun == pytest.approx(expected.fun, rel=1e-9)
    assert found.gap_is_proven
    # How tight a gap is depends on the clock; each is a bound for the other network, too.
    for one, other in ((found, expected), (expected, found)):
        assert one.fun - one.gap <= other.fun * (1.0 + 1e-12)


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
def test_bounds(kernel):
    """The matrices Gamma, and bounds that do not form them."""
    oracle = basis_oracle("l1/l2", method="exact")
    stacks = []
    for problem in problems(kernel=kernel):
        at = problem.output_gradient(problem.start())
        forms = at.forms(problem.kernel)
        stacks.append((forms.dense.matrices, forms.collatz_bound(2), forms.gram_bound(2), problem.bound(at, oracle)))
    for found, expected in zip(*stacks, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_fits_do_not_form_the_plain_matrix(monkeypatch):
    monkeypatch.setattr(RelationDesign, "matrix", lambda self: pytest.fail("formed"))
    for options in OPTIONS.values():
        related, _ = problems(**options)
        result = mopn.minimize(related, mopn.solvers.ConditionalGradient(max_units=2), tol=1e-3, max_iter=3)
        mopn.Model.from_result(related, result).outputs(RELATED[:7])


def test_predictions():
    related, _ = problems(kernel="anova", alpha=0.5, scale="large")
    result = mopn.minimize(related, mopn.solvers.ConditionalGradient(max_units=3), tol=1e-3)
    model = mopn.Model.from_result(related, result)
    np.testing.assert_allclose(model.outputs(RELATED), model.outputs(PLAIN), rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match="X has 10 features, but the model was trained with 14"):
        model.outputs(mopn.RelationBlocks(TABLES[:2], ROWS[:, :2]))


def test_means_are_not_subtracted():
    with pytest.raises(ValueError, match="takes no RelationBlocks"):
        mopn.NetworkProblem(RELATED, LABELS, augment=True, center=True, strength=1.0)


# -- the metric of joint refits: ids and what is collinear with them, the curvature, what it brings --------------------


def tables(rng, n_users=40, n_items=30):
    """Users and items by ids and by random other columns, and genres without ids."""
    others = [sparse.random_array((size, 25), density=0.3, random_state=rng) for size in (n_users, n_items)]
    sides = [sparse.hstack([sparse.eye_array(part.shape[0]), part], format="csr") for part in others]
    return [*sides, rng.uniform(0.0, 1.0, (5, 2))]


def ratings_problem(kernel="anova", norm="l1/l2", **options):
    rng = np.random.default_rng(0)
    parts = tables(rng)
    places = np.column_stack([rng.integers(0, part.shape[0], 600) for part in parts])
    X = mopn.RelationBlocks(parts, places)
    y = np.where(rng.standard_normal((600, 3)) + np.sin(places[:, :1]) > 0, 1.0, -1.0)
    options = {"strength": 0.5, "alpha": 0.5} | options
    return mopn.NetworkProblem(X, y, loss="binary-logistic", kernel=kernel, norm=norm, **options)


@pytest.mark.parametrize("storage", [sparse.csr_array, sparse.csr_matrix])
def test_ids_are_the_largest_columns_of_one_row_alone(storage):
    B = storage([[2.0, 3.0, 0.0, 1.0], [0.0, 0.0, 0.01, 5.0], [0.0, 0.0, 0.0, 4.0]])
    ids = RowIds(B)
    assert ids.rows.tolist() == [0]
    assert ids.ids.tolist() == [1]
    np.testing.assert_array_equal(ids.N.toarray(), [[2.0 / 3.0, 0.0, 1.0 / 3.0]])


def test_the_inverse_is_that_of_ids_and_others_in_the_rows_outputs():
    """With few columns, all of whose eigenvectors are told apart, both blocks are inverted exactly."""
    rng = np.random.default_rng(1)
    B = np.hstack([np.diag(rng.uniform(0.5, 2.0, 6)), rng.uniform(0.0, 1.0, (6, 3))])
    ids, D, ridge = RowIds(sparse.csr_array(B)), rng.uniform(0.0, 3.0, (6, 2)), np.array([0.3, 2.0])
    G = rng.standard_normal((9, 2))
    found = ids.solve(G, *ids.inverse_scales(D, ridge))
    # h = J (a, h_others) with h_ids = (a - N h_others) / e.
    E, N = np.diag(B[:, :6]), B[:, 6:]
    J = np.block([[np.diag(1.0 / E), -N / E[:, None]], [np.zeros((3, 6)), np.eye(3)]])
    for k in range(2):
        blocks = np.zeros((9, 9))
        blocks[:6, :6] = np.diag(1.0 / (D[:, k] + ridge[k] / E**2))
        scaled = N / E[:, None]
        blocks[6:, 6:] = np.linalg.inv(ridge[k] * (np.eye(3) + scaled.T @ scaled))
        np.testing.assert_allclose(found[:, k], J @ blocks @ J.T @ G[:, k], rtol=1e-9)


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("options", [{}, {"alpha": None}, {"augment": True}, {"strength": None, "radius": 2.0}])
def test_the_metric_is_symmetric_and_positive_definite(kernel, norm, options, monkeypatch):
    monkeypatch.setattr(curvature, "MAX_EVALUATIONS", 0)
    problem = ratings_problem(kernel, norm, **options)
    rng = np.random.default_rng(2)
    joint = problem.joint(problem.with_random_units(problem.start(), 3, rng))
    x, none = joint.start(), np.zeros(0, int)
    metric = joint.metric(x)
    assert isinstance(metric, RelationPreconditioner)
    g, h = rng.standard_normal((2, x.size))
    assert g @ metric.solve(h, none) == pytest.approx(h @ metric.solve(g, none), rel=1e-9)
    assert g @ metric.solve(g, none) > 0
    assert metric.solve(g, none).shape == x.shape


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
def test_the_curvature_of_rows_is_that_of_gauss_and_newton(kernel, monkeypatch):
    """A number of a row has the slope of the others under ANOVA, and twice the slope of all in a square."""
    monkeypatch.setattr(curvature, "MAX_EVALUATIONS", 0)
    problem = ratings_problem(kernel)
    network = problem.with_random_units(problem.start(), 2, np.random.default_rng(3))
    A, E = network.basis, network.weights
    joint = problem.joint(network)
    blocks = joint.curvature(A, E, network.linear)
    design = problem.design
    values, places = design.tables.project(A), design.places
    hessian = problem.losses.in_memory.hessian(network.outputs).diagonal
    expected = np.zeros_like(blocks.rows)
    for i, row in enumerate(places):
        for u in row:
            whole = values[row].sum(axis=0)
            slope = whole - values[u] if kernel == "anova" else 2.0 * whole
            expected[u, :2] += slope**2 * (E**2 @ hessian[i])
            expected[u, 2:] += hessian[i]
    np.testing.assert_allclose(blocks.rows, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_refits_of_relation_blocks_take_fewer_iterations():
    problem = ratings_problem()
    start = problem.start()
    with_it = mopn.minimize(problem.joint(start), LBFGS(), tol=1e-9)
    joint = problem.joint(start)
    joint.curvature = None
    without = mopn.minimize(joint, LBFGS(), tol=1e-9)
    assert with_it.nit < 0.9 * without.nit
    assert with_it.fun <= without.fun * (1.0 + 1e-7)

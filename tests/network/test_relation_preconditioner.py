"""The metric of joint refits of relation blocks: ids and what is collinear with them, the curvature, what it brings."""

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.data.relation_design import RowIds
from mopn.network.curvature import RelationPreconditioner
from mopn.solvers import LBFGS


def tables(rng, n_users=40, n_items=30):
    """Users and items by ids and by random other columns, and genres without ids."""
    others = [sparse.random_array((size, 25), density=0.3, random_state=rng) for size in (n_users, n_items)]
    sides = [sparse.hstack([sparse.eye_array(part.shape[0]), part], format="csr") for part in others]
    return [*sides, rng.uniform(0.0, 1.0, (5, 2))]


def problem_of(kernel="anova", norm="l1/l2", **options):
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
    monkeypatch.setattr("mopn.network.curvature._EVALUATIONS", 0)
    problem = problem_of(kernel, norm, **options)
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
    """A number of a row has the slope of the others under ANOVA, and twice that of all in a square."""
    monkeypatch.setattr("mopn.network.curvature._EVALUATIONS", 0)
    problem = problem_of(kernel)
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
    problem = problem_of()
    start = problem.start()
    with_it = mopn.minimize(problem.joint(start), LBFGS(), tol=1e-9)
    joint = problem.joint(start)
    joint.curvature = None
    without = mopn.minimize(joint, LBFGS(), tol=1e-9)
    assert with_it.nit < 0.9 * without.nit
    assert with_it.fun <= without.fun * (1.0 + 1e-7)

"""The metric of joint refits: blocks of second derivatives, their inverse among free variables, and what it brings."""

import math

import numpy as np
import pytest
from networks import LOSSES, data, every_form, every_kernel, every_norm, problem_of, random_network

import mopn
from mopn.network.curvature import BlockMetric, Curvature
from mopn.solvers import LBFGS


def outputs_slopes(problem, A):
    """dK(a_r, x_i)/da_r as if the kernel had all products: (n, k, d)."""
    X = np.asarray(problem.design.rows(slice(None)).project(np.eye(A.shape[1])))
    share = 1.0 if problem.kernel.name == "homogeneous" else 0.5
    return 2.0 * share * (X @ A.T)[:, :, None] * X[:, None, :]


@every_kernel
@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_have_the_traces_of_gauss_and_newton(loss, kernel):
    """Those of units are multiples of X'X, weighted."""
    options, weights = {"strength": 1.0, "augment": True}, np.random.default_rng(0).uniform(0.5, 2.0, 30)
    problem = mopn.NetworkProblem(*data(loss, n=30), loss=loss, kernel=kernel, sample_weight=weights, **options)
    network = random_network(problem)
    A, E = network.basis, network.weights
    curvature = Curvature(problem.rows, problem.kernel, problem.linear_term)
    units, directions, earned = curvature(A, E, network.linear)
    assert earned == pytest.approx(-np.vdot(problem.output_gradient(network).G, network.outputs), rel=1e-12)
    hessian = problem.losses.in_memory.hessian(network.outputs)
    n, m = network.outputs.shape
    matrices = np.stack([hessian.product(np.tile(e, (n, 1))) for e in np.eye(m)], axis=2)
    slopes, features = outputs_slopes(problem, A), network.features
    X = np.asarray(problem.design.project(np.eye(A.shape[1])))
    values, vectors = curvature.axes
    np.testing.assert_allclose(vectors * values @ vectors.T, X.T * weights @ X, rtol=1e-9, atol=1e-9)
    for r in range(len(A)):
        trace = np.einsum("id,c,ice,e,id->", slopes[:, r], E[r], matrices, E[r], slopes[:, r])
        of_direction = np.einsum("i,ice->ce", features[:, r] ** 2, matrices)
        assert units[r] * (weights @ X**2).sum() == pytest.approx(trace, rel=1e-9)
        np.testing.assert_allclose(directions[r], of_direction, rtol=1e-9, atol=1e-9 * np.abs(of_direction).max())


@pytest.mark.parametrize("with_directions", [False, True])
def test_the_metric_is_the_inverse_among_the_free_variables(with_directions):
    rng = np.random.default_rng(0)
    k, d, m, q = 3, 4, 2, 2
    A, Q = rng.standard_normal((k, m, m)), np.linalg.qr(rng.standard_normal((d, d)))[0]
    directions, values = A @ A.transpose(0, 2, 1), rng.uniform(0.5, 2.0, (k, d))
    units = [Q / value @ Q.T for value in values]
    rest = rng.uniform(0.5, 2.0, q)
    blocks = [*units, *(directions if with_directions else []), np.diag(1.0 / rest)]
    size = sum(map(len, blocks))
    dense, at = np.zeros((size, size)), 0
    for block in blocks:
        dense[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    held = np.array([k * d, k * d + 3]) if with_directions else np.zeros(0, int)
    free = np.setdiff1d(np.arange(size), held)
    g = rng.standard_normal(size)
    g[held] = 0.0
    expected = np.zeros(size)
    expected[free] = np.linalg.solve(dense[np.ix_(free, free)], g[free])
    metric = BlockMetric(values, Q, directions if with_directions else None, rest)
    np.testing.assert_allclose(metric.solve(g, held), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@every_form
@every_norm
@every_kernel
def test_the_metric_of_a_refit_is_positive_definite(norm, form, kernel):
    problem = problem_of(norm, form, kernel=kernel, n=40)
    joint = problem.joint(random_network(problem))
    if joint.curvature is None:
        pytest.skip("the metric takes longer than the refit, or more memory than the data")
    x = joint.start()
    metric = joint.metric(x)
    nothing = np.zeros(0, int)
    inverse = np.array([metric.solve(e, nothing) for e in np.eye(x.size)])
    np.testing.assert_allclose(inverse, inverse.T, rtol=0, atol=1e-9 * np.abs(inverse).max())
    assert np.linalg.eigvalsh(0.5 * (inverse + inverse.T))[0] > 0


@pytest.mark.parametrize("form", ["strength", "radius"])
def test_no_curvature_at_all_is_no_error(form):
    """A perfect fit of squared hinges has none; in a ball there is no penalty either."""
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]] * 5), np.array([0, 1, 0, 1] * 5)
    problem = mopn.NetworkProblem(X, y, loss="squared-hinge", **{form: 1e4})
    joint = problem.joint(problem.network(np.eye(2), 1e3 * np.array([[1.0, -1.0], [-1.0, 1.0]])))
    metric = joint.metric(joint.start())
    g = np.ones(joint.start().size)
    assert 0 < metric.solve(g, np.zeros(0, int)) @ g < math.inf


@every_norm
def test_flat_losses_give_steps_no_unit(norm):
    """Quantile losses far from all targets have no curvature; a run does not depend on the unit of the objective."""
    X = np.random.default_rng(0).uniform(-1, 1, (30, 4))
    Y = 100.0 * np.sign(X[:, :2] * X[:, 2:])

    def fun(c):
        sizes = {"strength": 0.3 * c, "sample_weight": np.full(30, float(c))}
        problem = mopn.NetworkProblem(X, Y, loss="quantile", norm=norm, **sizes)
        start = problem.with_random_units(problem.start(None), 3, np.random.default_rng(0))
        return mopn.minimize(problem.joint(start), LBFGS(), tol=1e-4, max_iter=3).fun / c

    assert fun(2.0**-14) == pytest.approx(fun(1.0), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1/l2", "l1/linf"])
def test_fewer_iterations_for_the_same_objective(norm):
    """On correlated features of noisy classes, half of what is left after as many iterations without it, at most."""
    rng = np.random.default_rng(0)
    X = np.clip(0.5 + 0.1 * rng.standard_normal((600, 8)) + 0.3 * rng.standard_normal((600, 1)), -1, 1)
    scores = np.einsum("id,cde,ie->ic", X, rng.standard_normal((4, 8, 8)), X) + 0.3 * rng.gumbel(size=(600, 4))
    problem = mopn.NetworkProblem(X, scores.argmax(axis=1), norm=norm, strength=0.2, augment=True)
    start = problem.start((rng.standard_normal((20, 9)), 0.01 * rng.standard_normal((20, 4))))

    def fun(max_iter, metric):
        joint = problem.joint(start)
        joint.curvature = joint.curvature if metric else None
        return mopn.minimize(joint, LBFGS(), tol=0, max_iter=max_iter).fun

    best = fun(1000, True)
    assert fun(100, True) - best <= 0.5 * (fun(100, False) - best)

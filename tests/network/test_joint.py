"""The smooth joint refit: gradients, points that are networks, fewer units of the same outputs, and its metric."""

import math

import numpy as np
import pytest
from networks import LOSSES, data, every_form, every_kernel, every_norm, problem_of, random_network
from reference import derivatives
from scipy import sparse

import mopn
from mopn.network.curvature import Axes, BlockMetric, Curvature
from mopn.network.joint import _scales
from mopn.solvers import FISTA, LBFGS, ConditionalGradient, FullRefit
from mopn.solvers.interface import Form


@every_form
@every_norm
@every_kernel
def test_smooth_joint_gradient(norm, form, kernel):
    problem = problem_of(norm, form, kernel=kernel, n=20)
    joint = problem.joint(random_network(problem))
    x = joint.start() * np.random.default_rng(2).uniform(0.8, 1.2, joint.start().size)
    numeric = derivatives(lambda x: joint.value_gradient(x).value, x, h=1e-6)
    assert joint.value_gradient(x).gradient == pytest.approx(numeric, rel=1e-5, abs=1e-6)


@every_form
@every_norm
def test_joint_point_is_the_network(norm, form):
    """Outputs are equal and the objective is not larger after mapping to a point and back."""
    problem = problem_of(norm, form, value=3.0)
    network = random_network(problem)
    joint = problem.joint(network)
    views = joint.unpack(joint.start())
    again = problem.network(views["basis"], views["weights"])
    fun = problem.output_gradient(network).value
    assert np.linalg.norm(views["basis"], axis=1) == pytest.approx(1.0, rel=1e-12)
    assert problem.norm.value(views["weights"]) <= problem.norm.value(network.weights) * (1 + 1e-12) or form == "radius"
    if form == "strength":
        assert again.outputs == pytest.approx(network.outputs, rel=1e-9, abs=1e-9)
        assert joint.value_gradient(joint.start()).value == pytest.approx(fun, rel=1e-12)
        assert problem.output_gradient(again).value <= fun * (1 + 1e-12)
    else:
        assert problem.norm.value(again.weights) <= 3.0 * (1 + 1e-9)


@every_form
@every_norm
def test_joint_refit_improves_and_stays_feasible(norm, form):
    problem = problem_of(norm, form, value=2.0)
    network = random_network(problem)
    for solver, oracle in ((LBFGS(), "gradient"), (FISTA(), "composite")):
        joint = problem.joint(network, Form(oracle))
        before = joint.measure(joint.start()).fun
        result = mopn.minimize(joint, solver, tol=1e-8, max_iter=300)
        after = problem.network(result.basis, result.weights)
        assert problem.output_gradient(after).value <= result.fun * (1 + 1e-9)
        assert result.fun < before
        if form == "radius":
            assert problem.norm.value(result.weights) <= 2.0 * (1 + 1e-9)


def test_recompression_keeps_outputs_and_limits_units():
    problem = problem_of("l1", d=3)
    rng = np.random.default_rng(3)
    network = problem.start((rng.standard_normal((30, 4)), rng.standard_normal((30, 3))))
    joint = problem.joint(network)
    views = joint.unpack(joint.start())
    assert len(views["basis"]) <= 4 * 3
    again = problem.network(views["basis"], views["weights"])
    assert again.outputs == pytest.approx(network.outputs, rel=1e-9, abs=1e-9)
    W = np.einsum("rc,ri,rj->cij", network.weights, network.basis, network.basis)
    nuclear = np.abs(np.linalg.eigvalsh(W)).sum()
    assert np.abs(views["weights"]).sum() == pytest.approx(nuclear, rel=1e-9)


POWERS_OF_TWO = tuple(2.0**k for k in (-20, 1, 20))
DECADES = (1e-6, 0.3, 1e6)


def in_other_units(units, norm, form, kernel):
    """One problem for X in several units, whose ones stand for dummies: strength and radius follow the kernel."""
    X, y = data("logistic", n=40)
    X = np.hstack([np.ones((len(X), 2)), X])
    for c in (1.0, *units):
        value = {"strength": 0.5 * c**2} if form == "strength" else {"radius": 6.0 / c**2}
        yield mopn.NetworkProblem(c * X, y, kernel=kernel, norm=norm, **value)


@pytest.mark.parametrize("options", [{"max_units": 4}, {"max_units": 4, "schedule": "fill"}], ids=["grow", "fill"])
@every_form
@every_norm
@every_kernel
def test_a_refit_of_both_layers_does_not_depend_on_the_unit_of_the_data(norm, form, kernel, options):
    """In powers of two nothing is rounded differently; elsewhere rounding chooses among minima but for l1."""
    units = POWERS_OF_TWO + (DECADES if norm == "l1" else ())
    solver = ConditionalGradient(refit="full", oracle="refine", **options)
    problems = in_other_units(units, norm, form, kernel)
    first, *others = (mopn.minimize(problem, solver, tol=1e-4, max_iter=4) for problem in problems)
    for c, run in zip(units, others, strict=True):
        assert run.fun == pytest.approx(first.fun, rel=1e-12 if c in POWERS_OF_TWO else 1e-4)
        assert run.gap == pytest.approx(first.gap, abs=1e-3 * first.fun)


@pytest.mark.parametrize("alpha", [None, 1.0])
@every_form
@every_norm
def test_nor_does_it_depend_on_the_unit_of_the_targets(norm, form, alpha):
    """Under the squared loss, in powers of four: nothing is rounded differently, roots of the unit included."""
    X, y = data("squared", n=40)
    runs = []
    for c in (1.0, 4.0**-20, 4.0**20):
        problem = mopn.NetworkProblem(X, c * y, loss="squared", norm=norm, alpha=alpha, **{form: 2.0 * c})
        result = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="refine", max_units=4), max_iter=5)
        runs.append(result.fun / c**2)
    assert runs == pytest.approx([runs[0]] * 3, rel=1e-12)


@every_form
@every_kernel
def test_data_that_are_zero_can_be_refitted(form, kernel):
    problem = mopn.NetworkProblem(np.zeros((6, 3)), [0, 1, 2, 0, 1, 2], kernel=kernel, **{form: 1.0})
    network = random_network(problem)
    for solver, oracle in ((LBFGS(), "gradient"), (FISTA(), "composite")):
        result = mopn.minimize(problem.joint(network, Form(oracle)), solver, tol=1e-6, max_iter=100)
        assert result.fun == pytest.approx(6 * np.log(3), rel=1e-3 if form == "strength" else 1e-12)


@every_norm
def test_a_start_of_zeros_has_a_finite_gradient(norm):
    problem = problem_of(norm)
    joint = problem.joint(random_network(problem))
    at = joint.value_gradient(np.zeros(joint.start().shape))
    assert np.isfinite(at.value)
    assert np.isfinite(at.gradient).all()


@pytest.mark.parametrize("d", [4, 40])
def test_steps_in_units_and_linear_term_match_on_one_hot_rows(d):
    """However seldom features occur, steps in both are such that they change the objective alike."""
    rows = np.eye(d // 2)[np.arange(10 * d) % (d // 2)]
    X = sparse.csr_array(np.hstack([rows, rows]))
    problem = mopn.NetworkProblem(X, rows[:, :1], "squared", strength=1.0, alpha=1e-9)
    of_units, _, of_linear = _scales(problem.rows, problem.linear_term)
    # Outputs have the unit of W, and the unit of B squared.
    np.testing.assert_allclose(of_linear[1:], of_units**2, rtol=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_steps_in_the_linear_term_do_not_depend_on_what_all_samples_have_little_of(storage):
    """Films that a user rated, for instance: counted as ones, they made steps ten times too long."""
    ones = np.eye(6)[np.arange(60) % 6]
    steps = []
    for least in (0.0, 1e-9):
        X = storage(np.hstack([ones, np.full((60, 20), least)]))
        problem = mopn.NetworkProblem(X, ones[:, :1], "squared", strength=1.0, alpha=1.0)
        steps.append(_scales(problem.rows, problem.linear_term)[2])
    np.testing.assert_allclose(steps[1], steps[0], rtol=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fraction", [0.25, 0.99])
def test_a_refit_on_a_sample_is_one_on_fewer_samples_of_larger_weight(storage, fraction):
    X, y = data("logistic", n=40)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    weights[:4] = 0.0
    options = {"strength": 1.0, "augment": True, "alpha": 1.0}
    problem = mopn.NetworkProblem(storage(X), y, sample_weight=weights, **options)
    rows, fit = problem.losses.in_memory.sample(fraction, 0)
    assert len(rows) == math.ceil(36 * fraction)
    assert not np.isin(rows, range(4)).any()
    assert np.sum(fit.weights) == pytest.approx(np.sum(weights))
    np.testing.assert_allclose(fit.weights / weights[rows], fit.weights[0] / weights[rows[0]])
    joint = problem.joint(random_network(problem), Form(sample_fraction=fraction))
    other = np.zeros(40)
    other[rows] = fit.weights
    expected = mopn.NetworkProblem(X, y, sample_weight=other, **options).joint(random_network(problem))
    x = joint.start() + 0.1
    found, direct = joint.value_gradient(x), expected.value_gradient(x)
    assert found.value == pytest.approx(direct.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, direct.gradient, rtol=1e-9, atol=1e-9 * np.abs(direct.gradient).max())


def test_a_smaller_sample_is_part_of_a_larger_one():
    X, y = data("logistic", n=200)
    fit = mopn.NetworkProblem(X, y, strength=1.0).losses.in_memory
    small, large = (set(fit.sample(fraction, 0)[0].tolist()) for fraction in (0.1, 0.3))
    assert len(small) == 20 < len(large) == 60
    assert small < large


def test_samples_are_taken_where_they_have_many_rows_for_every_parameter():
    """Ten at least."""
    X, y = data("logistic", n=400)
    problem = mopn.NetworkProblem(X, y, strength=1.0)
    parameters = X.shape[1] + problem.losses.n_outputs
    networks = {k: problem.start((np.ones((k, X.shape[1])), np.ones((k, 3)))) for k in (1, 2, 8, 30)}
    found = {k: problem.sample_fractions(network) for k, network in networks.items()}
    assert found == {k: [s for s in (1 / 16, 1 / 4) if s * 400 >= 10 * k * parameters] for k in found}
    assert found[1] == [1 / 4]
    assert found[30] == []


@pytest.mark.slow
def test_a_fit_of_many_samples_starts_on_some_and_is_as_good():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 4))
    y = (X[:, 0] * X[:, 1] + X[:, 2] ** 2 + 0.3 * rng.standard_normal(20_000) > 0.3).astype(int)
    problem = mopn.NetworkProblem(X, y, strength=20.0, augment=True)
    whole = mopn.NetworkProblem(X, y, strength=20.0, augment=True)
    whole.sample_fractions = lambda network: []
    solver = ConditionalGradient(refit=FullRefit(polish_tol=5e-3), max_units=3, schedule="fill")
    fractions, joint = [], problem.joint
    problem.joint = lambda network, form: fractions.append(form.sample_fraction) or joint(network, form)
    sampled, direct = mopn.minimize(problem, solver, tol=1e-3), mopn.minimize(whole, solver, tol=1e-3)
    assert {1 / 16, 1 / 4, 1.0} <= set(fractions)
    assert sampled.fun <= direct.fun * (1 + 5e-3)


# -- the metric: blocks of second derivatives, their inverse among free variables, and what it brings ------------------


def outputs_slopes(problem, A):
    """dK(a_r, x_i)/da_r as if the kernel had all products: (n, k, d)."""
    X = np.asarray(problem.design.rows(slice(None)).project(np.eye(A.shape[1])))
    share = 1.0 if problem.kernel.name == "homogeneous" else 0.5
    return 2.0 * share * (X @ A.T)[:, :, None] * X[:, None, :]


@every_kernel
@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_have_the_traces_of_gauss_and_newton(loss, kernel):
    """The blocks of units are multiples of X'X, weighted."""
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
    values = curvature.axes.values
    gram = curvature.axes.scaled(np.eye(len(values)), np.tile(values, (len(values), 1)))
    np.testing.assert_allclose(gram, X.T * weights @ X, rtol=1e-9, atol=1e-9)
    for r in range(len(A)):
        trace = np.einsum("id,c,ice,e,id->", slopes[:, r], E[r], matrices, E[r], slopes[:, r])
        of_direction = np.einsum("i,ice->ce", features[:, r] ** 2, matrices)
        assert units[r] * (weights @ X**2).sum() == pytest.approx(trace, rel=1e-9)
        np.testing.assert_allclose(directions[r], of_direction, rtol=1e-9, atol=1e-9 * np.abs(of_direction).max())


@every_kernel
def test_sparse_columns_count_as_uncorrelated(kernel):
    rng = np.random.default_rng(0)
    X = np.hstack([rng.standard_normal((60, 4)), np.eye(6)[rng.integers(0, 6, 60)]])[:, [0, 4, 1, 5, 6, 2, 3, 7, 8, 9]]
    weights = rng.uniform(0.5, 2.0, 60)
    options = {"strength": 1.0, "augment": True, "scale": "features", "sample_weight": weights}
    problem = mopn.NetworkProblem(sparse.csr_array(X), X[:, 0], loss="squared", kernel=kernel, **options)
    axes = Curvature(problem.rows, problem.kernel, problem.linear_term).axes
    Z = problem.rows.template.project(np.eye(problem.rows.shape[1]))
    gram = Z.T * weights @ Z
    full = np.array([*range(problem.kernel.dummies), *(problem.kernel.dummies + np.array([0, 2, 5, 6]))])
    expected = np.diag(np.diag(gram))
    expected[np.ix_(full, full)] = gram[np.ix_(full, full)]
    found = axes.scaled(np.eye(len(gram)), np.tile(axes.values, (len(gram), 1)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


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
    metric = BlockMetric(values, Axes(np.ones(d), Q, slice(None)), directions if with_directions else None, rest)
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
    """On correlated features of noisy classes, at most half of the error that the same iterations leave without it."""
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

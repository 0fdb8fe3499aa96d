"""Steps to better dual points under l1, and networks of fewer units."""

import numpy as np
import pytest
from networks import data, every_kernel
from reference import derivatives
from scipy import sparse

import mopn
from mopn.network.dual_projection import Compression, DualProjection, _least_modulus
from mopn.network.thinning import with_orthogonal_units
from mopn.network.trace_norm_model import TraceNormModel
from mopn.solvers import ConditionalGradient, FullRefit
from mopn.solvers.conditional_gradient.algorithm import _Rounds

TWO_CLASSES = "two classes"
# Losses with curvature everywhere, and those without in parts.
LOSSES = ("logistic", TWO_CLASSES, "squared-hinge", "smoothed-hinge", "squared", "binary-logistic", "poisson")
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_ridge = pytest.mark.parametrize("ridge", [0.0, 0.2])


def problem_of(loss="logistic", kernel="homogeneous", ridge=0.0, ratio=0.05, n=150, d=6, seed=0, **options):
    X, y = data("logistic" if loss == TWO_CLASSES else loss, n, d, seed=seed)
    if loss == TWO_CLASSES:
        y = y > 0
    if loss == "poisson":
        y = np.random.default_rng(seed).poisson(np.exp(np.clip(y, -3, 2)))
    name = "logistic" if loss == TWO_CLASSES else loss
    options = {"norm": "l1", "augment": True, "strength": mopn.Ratio(ratio)} | options
    return mopn.NetworkProblem(X, y, loss=name, kernel=kernel, ridge=ridge, **options)


def roughly_fitted(problem):
    """A network whose objective is near the minimum, but not its gradient."""
    solver = ConditionalGradient(FullRefit(least_tol=1e-3), max_units=40, schedule="fill", prove=False)
    result = mopn.minimize(problem, solver, tol=1e-3, max_iter=4)
    return problem.start((result.basis, result.weights, result.linear))


def a_projection(problem, gap=0.1):
    network = roughly_fitted(problem)
    projection = DualProjection(problem, network, problem.output_gradient(network), gap)
    assert projection.size
    return projection


def a_point(projection, size=0.1):
    return size * np.random.default_rng(1).standard_normal(projection.size)


def slopes_of_losses(projection, outputs):
    return projection._slopes(projection.losses.value_gradient(outputs)[1])


# -- the small problem -------------------------------------------------------------------------------------------------


@every_kernel
@every_loss
def test_outputs_and_slopes_are_those_of_a_network(loss, kernel):
    projection = a_projection(problem_of(loss, kernel))
    x = a_point(projection)
    moved = projection._moved(x)
    first = projection.first
    outputs = projection.outputs + projection._outputs(x - first)
    if loss == TWO_CLASSES:  # depends on the difference alone
        assert outputs[:, 1] - outputs[:, 0] == pytest.approx(np.diff(np.asarray(moved.outputs))[:, 0], abs=1e-6)
    else:
        assert outputs == pytest.approx(np.asarray(moved.outputs), abs=1e-6)

    def of_losses(x):
        return projection.losses.value(projection.outputs + projection._outputs(x - first))

    # Where two classes move alike, a variable moves two outputs.
    classes = np.concatenate([np.full(each.size, np.abs(each.outputs).sum()) for each in projection.compressions])
    slopes = slopes_of_losses(projection, np.asarray(moved.outputs))
    assert slopes * classes == pytest.approx(derivatives(of_losses, x), rel=1e-4, abs=1e-4)


@every_ridge
@pytest.mark.parametrize("loss", ["logistic", TWO_CLASSES, "squared"])
def test_units_move_along_where_there_is_room(loss, ridge):
    """At first all is as in the network, whose units T has taken over; the slopes are those of the objective."""
    problem = problem_of(loss, ridge=ridge)
    projection = a_projection(problem)
    first = projection.first
    assert projection.rest.n_units < projection.network.n_units
    network = projection._moved(first)
    outputs, others = np.asarray(network.outputs), np.asarray(projection.network.outputs)
    assert outputs - outputs[:, :1] == pytest.approx(others - others[:, :1], abs=1e-6)

    def smooth(x):
        outputs = projection.outputs + projection._outputs(x - first)
        return projection._point(x, outputs).value - projection.target * projection._norm(x)

    assert projection.first_slopes == pytest.approx(derivatives(smooth, first), rel=1e-4, abs=1e-4)


@every_kernel
@every_ridge
@pytest.mark.parametrize("loss", ["logistic", TWO_CLASSES, "squared", "squared-hinge"])
def test_steps_lower_the_objective_and_the_largest_slope(loss, kernel, ridge):
    problem = problem_of(loss, kernel, ridge)
    projection = a_projection(problem)
    before = problem.output_gradient(projection.network)
    moved = projection.solve()
    after = problem.output_gradient(moved)
    # The target is a little less than the strength.
    rise = (projection.strength - projection.target) * np.abs(moved.weights).sum()
    assert after.value <= before.value * (1 + 1e-9) + rise
    values = [np.abs(np.linalg.eigvalsh(at.forms(problem.kernel).dense.matrices)).max() for at in (before, after)]
    assert values[1] < values[0]


@every_kernel
@pytest.mark.parametrize("loss", ["logistic", TWO_CLASSES, "squared", "squared-hinge"])
def test_curvatures_are_derivatives_of_slopes(loss, kernel):
    projection = a_projection(problem_of(loss, kernel))
    x, step = a_point(projection), 1e-6 * a_point(projection, 1.0)
    outputs = projection.outputs + projection._outputs(x)
    change = slopes_of_losses(projection, outputs + projection._outputs(step))
    change = change - slopes_of_losses(projection, outputs - projection._outputs(step))
    K, unit = projection._curvature(outputs)
    assert 2.0 * unit * K @ step == pytest.approx(change, rel=1e-3, abs=1e-5 * np.abs(change).max())


@every_kernel
def test_slopes_of_the_ridge_are_those_of_the_network_of_the_point(kernel):
    problem = problem_of(kernel=kernel, ridge=0.2)
    projection = a_projection(problem)
    x = a_point(projection)
    first = 0
    for each in projection.compressions:
        part = x[first : first + each.size]
        first += each.size

        def half_length(z, each=each):
            basis, weights = each.units(z)
            return problem._ridge.value(basis, weights) / problem.ridge

        assert each.ridge_slopes(part) == pytest.approx(derivatives(half_length, part), rel=1e-4, abs=1e-6)


@every_kernel
def test_first_slopes_are_eigenvalues_of_the_gradient(kernel):
    problem = problem_of(kernel=kernel)
    projection = a_projection(problem)
    _, G = problem.losses.value_gradient(projection.outputs)
    for each in projection.compressions:
        assert each.first_slopes == pytest.approx(each.slopes(G @ each.outputs), abs=1e-9)


def test_the_prox_is_that_of_the_nuclear_norm():
    projection = a_projection(problem_of())
    each: Compression = max(projection.compressions, key=lambda each: each.size)
    x = np.random.default_rng(0).standard_normal(each.size)
    values = np.linalg.eigvalsh(each.matrix(x))
    middle = float(np.median(np.abs(values)))
    shrunk = each.shrunk(x, middle)
    # Moreau: the part taken away is in the ball of the dual norm, and aligned with the rest.
    assert each.largest(x - shrunk) <= middle * (1 + 1e-12)
    nuclear = np.abs(np.linalg.eigvalsh(each.matrix(shrunk))).sum()
    assert (x - shrunk) @ shrunk == pytest.approx(middle * nuclear)
    assert each.vector(each.matrix(x)) == pytest.approx(x)
    assert x @ x == pytest.approx(np.sum(each.matrix(x) ** 2))


@every_ridge
@pytest.mark.parametrize("loss", ["logistic", TWO_CLASSES, "squared"])
def test_the_quadratic_problem_is_solved(loss, ridge):
    projection = a_projection(problem_of(loss, ridge=ridge))
    K, _ = projection._curvature(projection.outputs)
    model = TraceNormModel(K, projection._shrunk, projection._largest)
    b = np.concatenate([each.first_slopes for each in projection.compressions]) / projection.target
    x = model.minimiser(b, np.zeros(projection.size))
    slopes = K @ x + b
    nuclear = sum(np.abs(np.linalg.eigvalsh(each.matrix(part))).sum() for each, part in projection._parts(x))
    assert projection._largest(slopes) <= 1.004
    assert -slopes @ x == pytest.approx(nuclear, rel=0.02)
    # Other starts lead to the same slopes.
    other = a_point(projection, 0.1 * np.abs(x).max())
    assert projection._largest(K @ model.minimiser(K @ other + b, other) + b) <= 1.004


def test_the_number_of_variables_is_limited():
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 3.0, 60) for _ in range(5)]
    least = _least_modulus(values, 1.0)
    q = np.array([np.sum(each > least) for each in values])
    assert 800 < np.sum(q * (q + 1) // 2) <= 1000
    assert _least_modulus([each[:5] for each in values], 1.0) == 0.8


# -- what it proves ----------------------------------------------------------------------------------------------------


def proven(problem, network):
    at = problem.output_gradient(network)
    bound = problem.bound(at)
    return at, bound, problem.lower(at, bound)


@every_kernel
@every_ridge
@every_loss
def test_a_better_dual_point_proves_more_and_never_too_much(loss, ridge, kernel):
    problem = problem_of(loss, kernel, ridge)
    network = roughly_fitted(problem)
    at, bound, lower = proven(problem, network)
    moved = problem.better_dual(network, at, (at.value - lower) / at.value)
    if moved is None:
        assert bound <= problem.strength
        return
    _, new_bound, new_lower = proven(problem, moved)
    best = mopn.minimize(problem, ConditionalGradient(FullRefit()), tol=1e-6, max_iter=60)
    assert new_lower <= best.fun + 1e-9 * abs(best.fun)
    assert new_bound < bound
    if not ridge:
        # At least a third of the gap goes.
        assert best.fun - new_lower < 0.67 * (best.fun - lower)


WAYS = {
    "weights": {"sample_weight": np.random.default_rng(2).integers(0, 4, 150).astype(float)},
    "offsets": {"offset": np.random.default_rng(3).standard_normal((150, 3))},
    "a linear term": {"alpha": 0.5},
    "a center and a scale": {"center": True, "scale": "features"},
}


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_a_proof_of_a_run_is_that_of_its_dual_point(options):
    problem = problem_of(**options)
    solver = ConditionalGradient(FullRefit(least_tol=1e-3), max_units=40, schedule="fill", ftol=5e-3)
    result = mopn.minimize(problem, solver, tol=1e-2)
    assert result.status.name == "CONVERGED"
    # The dual point is of another network than the result, and proves what the run says.
    D = result.dual.point(problem)
    at = problem.output_gradient(problem.network(result.dual.basis, result.dual.weights, result.dual.linear))
    assert np.allclose(D, result.dual.scale * np.asarray(at.G), rtol=1e-9)
    assert problem.lower(at, problem.bound(at)) == pytest.approx(result.fun - result.gap, rel=1e-6)
    exact = mopn.minimize(problem, ConditionalGradient(FullRefit()), tol=1e-6, max_iter=100)
    assert result.fun - result.gap <= exact.fun <= result.fun * (1 + 1e-9)


@pytest.mark.parametrize("storage", [sparse.csr_array, sparse.csc_array])
@every_kernel
def test_steps_are_the_same_in_every_storage(kernel, storage):
    X, y = data("logistic", 150, 6)
    X[X < 0.2] = 0.0
    options = {"kernel": kernel, "norm": "l1", "strength": 0.5, "augment": True}
    dense, stored = (mopn.NetworkProblem(each, y, **options) for each in (X, storage(X)))
    network = roughly_fitted(dense)
    moved = dense.better_dual(network, dense.output_gradient(network), 0.1)
    same = stored.network(network.basis, network.weights, network.linear)
    other = stored.better_dual(same, stored.output_gradient(same), 0.1)
    assert np.asarray(other.outputs) == pytest.approx(np.asarray(moved.outputs), abs=1e-6)


def test_far_from_the_minimum_there_may_be_no_step():
    problem = problem_of(ratio=0.001)
    network = problem.start((np.ones((1, 7)), np.full((1, 3), 1e3)))
    at = problem.output_gradient(network)
    moved = problem.better_dual(network, at, 1.0)
    assert moved is None or problem.bound(problem.output_gradient(moved)) < problem.bound(at)


OTHERS = {
    "another norm": {"norm": "l1/l2"},
    "a ball": {"strength": None, "radius": 1.0},
    "nonnegative weights": {"norm": "nonnegative-l1"},
}


@pytest.mark.parametrize("options", OTHERS.values(), ids=OTHERS)
def test_other_problems_offer_no_step(options):
    problem = problem_of(**options)
    network = problem.start((np.eye(7)[:2], np.ones((2, 3))))
    assert problem.better_dual(network, problem.output_gradient(network), 0.5) is None


@pytest.mark.parametrize(("price", "ftol"), [(0.0, 0.0), (0.0, 5e-3), (100.0, 0.0)])
def test_cheap_steps_and_those_of_a_run_for_a_proof_do_not_wait(price, ftol, monkeypatch):
    assert min(steps_of_a_run(price, ftol, monkeypatch)) == 0


@pytest.mark.parametrize(("price", "ftol"), [(100.0, 5e-3), (1e6, 0.0), (1e6, 5e-3)])
def test_dear_steps_wait_for_a_level_objective_and_the_dearest_are_not_taken(price, ftol, monkeypatch):
    taken = steps_of_a_run(price, ftol, monkeypatch)
    assert all(level > 1 for level in taken)
    assert bool(taken) == (price < 1e6)


def steps_of_a_run(price, ftol, monkeypatch):
    """For each step to a better dual point, the number of level rounds before it."""
    levels, taken = [0], []
    problem = problem_of(ratio=0.02)
    better_dual, has_levelled_off = type(problem).better_dual, _Rounds._has_levelled_off

    def count(self, *arguments):
        taken.append(levels[-1])
        return better_dual(self, *arguments)

    def look(self, fun):
        ends = has_levelled_off(self, fun)
        levels.append(self.level_rounds)
        return ends

    monkeypatch.setattr(type(problem), "dual_step_price", lambda self, network: price)
    monkeypatch.setattr(type(problem), "better_dual", count)
    monkeypatch.setattr(_Rounds, "_has_levelled_off", look)
    solver = ConditionalGradient(FullRefit(least_tol=1e-3), max_units=40, schedule="fill", ftol=ftol)
    mopn.minimize(problem, solver, tol=1e-4, max_iter=12)
    return taken


# -- fewer units -------------------------------------------------------------------------------------------------------


@every_kernel
@every_ridge
@every_loss
def test_thinned_networks_are_within_the_objective_allowed(loss, ridge, kernel):
    problem = problem_of(loss, kernel, ridge)
    network = roughly_fitted(problem)
    at = problem.output_gradient(network)
    for rise in (0.0, 1e-3, 1e-2):
        most = at.value * (1.0 + rise)
        thinner, at_thinner = problem.thinned(network, at, most)
        assert at_thinner.value <= most
        assert at_thinner.value == pytest.approx(problem.output_gradient(thinner).value, rel=1e-12)
        assert thinner.n_units <= network.n_units


def test_a_unit_that_does_nothing_leaves():
    problem = problem_of("squared")
    network = roughly_fitted(problem)
    at = problem.output_gradient(network)
    extra = network.with_more(np.eye(7)[:1], np.full((1, 3), 1e-9))
    thinner, _ = problem.thinned(extra, problem.output_gradient(extra), at.value * (1 + 1e-6))
    assert thinner.n_units <= network.n_units


def test_units_of_one_output_that_depend_on_each_other_become_fewer():
    problem = problem_of("squared", d=4)
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((12, 5))
    network = problem.start((basis, rng.standard_normal((12, 1)) * np.array([[1.0, 0.0, 0.0]])))
    fewer = with_orthogonal_units(problem, network)
    assert fewer.n_units <= 5
    assert problem.output_gradient(fewer).value <= problem.output_gradient(network).value
    assert np.asarray(fewer.outputs) == pytest.approx(np.asarray(network.outputs))


@every_kernel
@every_loss
@every_ridge
def test_certificates_take_the_steps(loss, kernel, ridge):
    """Bounds are better than those of the network's own gradient, and below the minimum; the objective is the same."""
    problem = problem_of(loss, kernel, ridge)
    network = roughly_fitted(problem)
    own = problem.measure(network)
    found = mopn.certify(problem, network.basis, network.weights, linear=network.linear)
    start = network.basis, network.weights, network.linear
    best = mopn.minimize(problem, ConditionalGradient("full"), start=start, tol=1e-8)
    assert found.fun == pytest.approx(own.fun, rel=1e-12)
    assert own.lower < found.lower <= best.fun * (1.0 + 1e-12)

"""The ridge of network problems: objective, derivatives, matrices, fits and certificates."""

import numpy as np
import pytest
from mpmath import lu_solve, matrix, mp, mpf
from networks import LOSSES, data, every_kernel, random_network, wide_problem
from properties import generators, tried
from reference import conjugate, derivatives, matrix_optimum, norm_of_rows, squared_length
from scipy import sparse

import mopn
from mopn.core.norms import NORMS
from mopn.network.ridge_bounds import EigenvalueConjugate, ShiftedConjugate, half_square
from mopn.solvers import FISTA, LBFGS, ConditionalGradient, FullRefit, InteriorPoint, OutputRefit, PlainStep
from mopn.solvers.interface import Form

every_norm = pytest.mark.parametrize("norm", sorted(NORMS))
EPS = np.finfo(float).eps


def problem_of(norm="l1", kernel="homogeneous", ridge=0.3, strength=0.5, loss="logistic", n=40, d=4, **options):
    X, y = data(loss, n, d)
    return mopn.NetworkProblem(X, y, loss=loss, kernel=kernel, norm=norm, strength=strength, ridge=ridge, **options)


def network_of(problem, seed=1, k=5):
    network = random_network(problem, seed, k)
    return problem.start((network.basis, np.abs(network.weights))) if problem.norm.nonnegative else network


def forms_of(network):
    """W_c = sum_r v_rc h_r h_r', (m, d, d)."""
    return np.einsum("rc,ri,rj->cij", network.weights, network.basis, network.basis)


# -- objective and derivatives -----------------------------------------------------------------------------------------


@every_norm
@every_kernel
@pytest.mark.parametrize("augment", [False, True])
def test_the_objective_has_the_squared_length_of_the_functions(norm, kernel, augment):
    problem = problem_of(norm, kernel, augment=augment)
    network = network_of(problem)
    length = squared_length(forms_of(network), kernel)
    losses = problem.losses.value(network.outputs)
    expected = losses + 0.5 * norm_of_rows(network.weights, norm) + 0.15 * length
    at = problem.output_gradient(network)
    assert at.value == pytest.approx(expected, rel=1e-13)
    assert abs(at.value - expected) <= at.rounding


@every_norm
@every_kernel
@pytest.mark.parametrize("form", ["gradient", "composite"])
def test_gradients_of_joint_refits(norm, kernel, form):
    problem = problem_of(norm, kernel, augment=True, alpha=0.7)
    joint = problem.joint(network_of(problem), Form(form))
    x = joint.start()
    if form == "gradient":
        value, gradient = joint.value_gradient(x)[:2]
        assert joint.bounds is None or (x <= joint.bounds[1]).all()
        assert value == pytest.approx(problem.output_gradient(network_of(problem)).value)
        assert gradient == pytest.approx(derivatives(lambda x: joint.value_gradient(x).value, x), abs=1e-7)
    else:
        gradient = joint.smooth(x).gradient
        assert gradient == pytest.approx(derivatives(joint.smooth_value, x), abs=1e-7)


@every_kernel
def test_derivatives_of_the_output_layer(kernel):
    problem = problem_of("l1/l2", kernel)
    network = network_of(problem)
    layer = problem.output_layer(network)
    x = layer.start(network.weights)
    image = layer.image(x)
    assert layer.smooth(image).gradient == pytest.approx(
        derivatives(lambda x: layer.smooth_value(layer.image(x)), x), abs=1e-7
    )
    hessian, D = layer.hessian(image), np.random.default_rng(0).standard_normal(network.weights.shape)
    along = [layer.smooth(layer.image(x + t * D.ravel())).gradient for t in (1e-5, -1e-5)]
    assert hessian.product(D).ravel() == pytest.approx((along[0] - along[1]) / 2e-5, abs=1e-4)
    fun = layer.smooth(image).value + layer.regularizer_value(x)
    assert fun == pytest.approx(problem.output_gradient(network).value)


@every_norm
@every_kernel
@pytest.mark.parametrize("direction", ["towards", "away", "pairwise"])
def test_segments_have_the_values_and_slopes_of_their_points(norm, kernel, direction):
    problem = problem_of(norm, kernel)
    network = network_of(problem)
    at = problem.output_gradient(network)
    unit = None if direction == "away" else problem.lmo(at).basis[:1]
    segment = problem.segment(network, at, unit, away=None if direction == "towards" else 2)
    ridge = [problem._ridge.value(p.basis, p.weights) for p in map(segment.point, (0.0, 0.3 * segment.limit))]
    assert segment.ridge(0.0) == pytest.approx(ridge[0])
    assert segment.ridge(0.3 * segment.limit) == pytest.approx(ridge[1])
    step = 1e-6 * segment.limit
    assert segment.gap == pytest.approx((segment.value(0.0) - segment.value(step)) / step, rel=1e-3)


# -- matrices ----------------------------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_matrices_are_those_of_the_whole_gradient(kernel, storage):
    X, y = data("logistic")
    problem = mopn.NetworkProblem(storage(X), y, kernel=kernel, strength=1.0, ridge=0.7, augment=True)
    network = network_of(problem)
    at = problem.output_gradient(network)
    found, H = at.forms(problem.kernel), network_of(problem, seed=2).basis
    dense = found.dense
    expected = at.forms(problem.kernel).of_losses.dense.matrices
    W = forms_of(network)
    if kernel == "anova":
        W = 0.5 * W * (1.0 - np.eye(W.shape[1]))
    assert dense.matrices == pytest.approx(expected + 0.7 * W)
    assert found.forms(H) == pytest.approx(dense.forms(H))
    weights = np.random.default_rng(0).standard_normal((len(H), dense.shape[0]))
    assert found.products(weights, H) == pytest.approx(dense.products(weights, H))
    matrix, error = found.combination(weights[0])
    assert matrix == pytest.approx(dense.combine(weights[:1])[0])
    assert 0.0 < error < 1e-10
    scaled, scale = found.scaled()
    assert scaled.forms(H) * scale == pytest.approx(dense.forms(H))
    for p in (1, 2, np.inf):
        assert np.linalg.norm(found.forms(H), p, axis=1).max() <= found.bound(p)


@every_norm
@every_kernel
def test_bounds_of_wide_data_hold_without_matrices(norm, kernel):
    problem = wide_problem(norm, kernel=kernel, strength=1.0, ridge=0.5)
    network = network_of(problem)
    at = problem.output_gradient(network)
    for method in ("auto", "power", "refine"):
        atoms = problem.lmo(at, method)
        assert atoms.values[0] == pytest.approx(
            float(problem.norm.duals(at.forms(problem.kernel).forms(atoms.basis))[0])
        )
        assert atoms.values[0] <= atoms.bound
    zero = mopn.certify(problem, network.basis[:0], network.weights[:0])
    assert mopn.certify(problem, network.basis, network.weights).lower <= zero.fun


# -- conjugates --------------------------------------------------------------------------------------------------------


def in_digits(matrices):
    return np.asarray(matrices, dtype=np.longdouble)


# The size of gradients and the ridge, where squares of the first are numbers, and where they underflow.
sizes_and_ridges = pytest.mark.parametrize(("size", "ridge"), [(1.0, 0.25), (1e-180, 1e-120), (1e60, 1e130)])


@tried(60, rng=generators)
@sizes_and_ridges
def test_shifted_conjugates_are_lengths(size, ridge, rng):
    """||Z - Y||^2 / (2 ridge) at Y = -s (Gamma + ridge W), for the best s up to the largest."""
    gradient, slopes = (size * 10.0 ** rng.uniform(-6, 6) * rng.standard_normal((2, 3, 3)) for _ in range(2))
    if rng.uniform() < 0.3:
        gradient = -slopes * (1.0 + 10.0 ** rng.uniform(-16, -1))
    largest, t = float(rng.choice([0.0, rng.uniform(0, 2)])), float(rng.uniform(0.0, 2.0))
    gradient_, slopes_, whole = in_digits(gradient), in_digits(slopes), in_digits(gradient) + in_digits(slopes)
    length = float(np.sqrt(np.vdot(whole, whole))) * (1.0 + 4.0 * EPS)
    crossed, of_network = np.vdot(gradient_, slopes_) / ridge, np.vdot(slopes_, slopes_) / (2 * in_digits(ridge))
    errors = float(abs(crossed)) * EPS, float(of_network) * EPS
    conjugate_ = ShiftedConjugate(
        largest, half_square(length, ridge), float(crossed), errors[0], float(of_network), errors[1]
    )
    found = conjugate_.conjugate(t)
    s = np.clip(t * np.vdot(gradient_, whole) / np.vdot(whole, whole), 0, largest)
    exact = np.sum(((t - s) * gradient_ - s * slopes_) ** 2) / (2 * in_digits(ridge))
    terms = np.vdot(gradient_, gradient_) / ridge + of_network
    assert exact <= found <= exact * (1.0 + 1e-9) + 1e-12 * terms


@tried(60, rng=generators)
@sizes_and_ridges
def test_eigenvalue_conjugates_are_the_distances_from_the_ball(size, ridge, rng):
    sizes = size * 10.0 ** rng.uniform(-3, 3, 6)
    sizes[0] = strength = size * float(10.0 ** rng.uniform(-3, 3))
    t = float(rng.choice([1.0, rng.uniform(0, 2)]))
    exact = np.sum(np.maximum(in_digits(t) * in_digits(sizes) - in_digits(strength), 0) ** 2) / (2 * in_digits(ridge))
    found = EigenvalueConjugate(ridge, strength, sizes).conjugate(t)
    assert exact <= found <= exact * (1 + 1e-9) + 1e-25 * in_digits(strength) ** 2 / ridge


# -- certificates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "nonnegative-l1", "l1/linf"])
@every_kernel
@pytest.mark.parametrize(("strength", "ridge"), [(1.0, 0.01), (0.3, 1.0), (0.0, 0.3), (1e-6, 1e-3)])
def test_certificates_against_the_optimum_over_matrices(norm, kernel, strength, ridge):
    X, y = data("logistic", n=15, d=3)
    problem = mopn.NetworkProblem(X, y, norm=norm, kernel=kernel, strength=strength, ridge=ridge)
    optimum = matrix_optimum(problem.losses, X, norm, strength, kernel, ridge=ridge, iterations=400)
    found = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-3, max_iter=10)
    assert found.lower <= optimum
    if strength > 0.1:
        assert found.fun == pytest.approx(optimum, rel=2e-3)
        assert found.success
    lower = [found.lower]
    for seed in range(6):
        network, size = network_of(problem, seed), 10.0 ** np.random.default_rng(seed).uniform(-8, 4)
        near = np.vstack([found.basis, network.basis]), np.vstack([found.weights, size * network.weights])
        for basis, weights in (near, (network.basis, size * network.weights)):
            lower.append(mopn.certify(problem, basis, weights, "refine" if seed % 2 else "power").lower)
    assert max(lower) <= optimum


@every_norm
@every_kernel
@pytest.mark.parametrize("loss", LOSSES)
def test_no_bound_is_above_an_objective(norm, kernel, loss):
    """Over weights, offsets, linear terms and sizes of the ridge; networks are random, near a minimum, and far."""
    rng = np.random.default_rng(0)
    X, y = data(loss, n=20, d=3)
    for trial in range(4):
        options = {"sample_weight": rng.uniform(0, 2, 20), "offset": rng.standard_normal((1, 3)).repeat(20, axis=0)}
        ridge, alpha = 10.0 ** rng.uniform(-12, 12), [None, 1.0][trial % 2]
        problem = mopn.NetworkProblem(
            X, y, loss=loss, norm=norm, kernel=kernel, strength=trial % 3, ridge=ridge, alpha=alpha, **options
        )
        best = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-3, max_iter=4)
        measured = [mopn.certify(problem, best.basis, best.weights, linear=best.linear)]
        for size in (1e-6, 1.0, 1e4):
            network = network_of(problem, trial)
            measured.append(mopn.certify(problem, network.basis, size * network.weights))
        least = min(m.fun + m.rounding for m in measured)
        assert max(m.lower for m in [*measured, best]) <= least
        assert all(m.restricted_gap <= m.gap for m in measured)


def best_of_units(H, X, y, ridge):
    """The best weights (k, 1) of units for the squared loss, and the sum of losses and ridge, in 40 digits."""
    with mp.workdps(40):
        H, X, y = (matrix(values.tolist()) for values in (H, X, y))
        features, K = ((A * H.T).apply(lambda product: product**2) for A in (X, H))
        weights = lu_solve(features.T * features + ridge * K, features.T * y)
        rest = features * weights - y
        value = (rest.T * rest)[0] / 2 + ridge * (weights.T * K * weights)[0] / 2
        return np.array(weights.tolist(), dtype=float), value


@pytest.mark.parametrize("d", [4, 600], ids=["matrices", "no matrices"])
@pytest.mark.parametrize("angle", [1.0, 1e-3, 1e-6, 1e-9, 0.0])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_restricted_gaps_without_a_strength_hold_for_nearly_parallel_units(d, angle, ridge):
    """Their combinations of length 1 have large slopes where the units themselves have small ones."""
    rng = np.random.default_rng(3)
    X, H, y = np.zeros((6, d)), np.zeros((3, d)), rng.standard_normal((6, 1))
    X[:, :3], H[:, :3] = rng.standard_normal((6, 3)), rng.standard_normal((3, 3))
    H[1] = H[0] + angle * H[1]
    problem = mopn.NetworkProblem(X, y, loss="squared", strength=0.0, ridge=ridge)
    H = problem.start((H, np.zeros((3, 1)))).basis
    if angle == 0.0:
        weights, least = best_of_units(H[1:, :3], X[:, :3], y, ridge)
        weights = np.vstack([0.5 * weights[:1], 0.5 * weights[:1], weights[1:]])
    else:
        weights, least = best_of_units(H[:, :3], X[:, :3], y, ridge)
    for near in (weights, 0.99 * weights, np.sign(weights) * 1e-9):
        found = mopn.certify(problem, H, near)
        assert found.fun - least <= found.restricted_gap
    if angle >= 1e-3:
        assert mopn.certify(problem, H, weights).restricted_gap <= 1e-6 * found.fun


@pytest.mark.parametrize("norm", ["l1", "nonnegative-l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize(("size", "ridge"), [(1e20, 1e-140), (1e30, 1e-140), (1e20, 1e-100), (1.0, 1e-130)])
def test_no_bound_is_above_an_objective_where_squares_of_slopes_underflow(norm, size, ridge):
    """Losses of outputs of some hundreds have slopes of 1e-200."""
    problem = mopn.NetworkProblem(size * np.eye(2), [0, 1], norm=norm, strength=0.0, ridge=ridge)
    signs = np.eye(2) if norm == "nonnegative-l1" else np.array([[1.0, -1.0], [-1.0, 1.0]]) / 2
    bounds, objectives = [], []
    for output in (100.0, 300.0, 465.0, 500.0, 700.0):
        found = mopn.certify(problem, np.eye(2), output * signs / size**2)
        bounds += [found.lower, found.fun - found.restricted_gap]
        with mp.workdps(60):
            weights = [mpf(float(weight)) for weight in (output * signs / size**2).ravel()]
            losses = 2 * mp.log1p(mp.exp(mpf(size) ** 2 * (weights[1] - weights[0])))
            objectives.append(losses + mpf(ridge) / 2 * mp.fsum(weight**2 for weight in weights))
    assert max(bounds) <= min(objectives)


@every_norm
def test_a_tiny_ridge_costs_no_tightness(norm):
    plain, tiny = (problem_of(norm, ridge=ridge, augment=True) for ridge in (0.0, 1e-12))
    found = mopn.minimize(plain, ConditionalGradient(refit="full"), tol=1e-3)
    gaps = [mopn.certify(problem, found.basis, found.weights).gap for problem in (plain, tiny)]
    of_ridge = 1e-12 * np.abs(found.weights).sum() ** 2
    assert gaps[1] <= gaps[0] * (1.0 + 1e-6) + of_ridge


def test_the_gap_of_l1_is_of_second_order():
    problem = problem_of("l1", ridge=1.0, augment=True)
    found = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-9)
    gaps = [mopn.certify(problem, found.basis, (1 - t) * found.weights).gap for t in (1e-2, 1e-3)]
    assert gaps[1] <= 0.02 * gaps[0]


def test_without_a_strength_the_problem_is_a_kernel_machine():
    X, y = data("squared", d=3)
    for kernel, K in (("homogeneous", (X @ X.T) ** 2), ("anova", 0.5 * ((X @ X.T) ** 2 - X**2 @ (X**2).T))):
        problem = mopn.NetworkProblem(X, y, loss="squared", kernel=kernel, strength=0.0, ridge=0.5)
        exact = 0.5 * 0.5 * np.vdot(y, np.linalg.solve(K + 0.5 * np.eye(len(X)), y))
        found = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-6)
        assert found.success
        assert found.fun == pytest.approx(exact, rel=1e-6)
        assert found.lower <= exact <= found.fun * (1.0 + 1e-12)


def test_the_dual_point_proves_the_bound():
    problem = problem_of("l1", ridge=0.5)
    found = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-4)
    D = found.dual.point(problem)
    gammas = np.einsum("ic,ij,ik->cjk", D, problem.design.matrix(), problem.design.matrix())
    excess = np.maximum(np.abs(np.linalg.eigvalsh(gammas)) - 0.5, 0.0)
    assert -conjugate(problem.losses, D) - np.sum(excess**2) / (2 * 0.5) >= found.lower


# -- fits --------------------------------------------------------------------------------------------------------------


@every_norm
@every_kernel
@pytest.mark.parametrize(
    "refit", ["output", "full", PlainStep(), FullRefit(solver=FISTA()), OutputRefit(solver=FISTA())], ids=repr
)
def test_all_corrections_minimise_the_same(norm, kernel, refit):
    problem = problem_of(norm, kernel, strength=2.0, ridge=0.5, n=20, d=3)
    best = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-4)
    found = mopn.minimize(problem, ConditionalGradient(refit=refit), tol=1e-2, max_iter=60)
    assert best.success
    assert best.lower * (1 - 1e-12) <= found.fun
    assert found.fun == pytest.approx(best.fun, rel=0.03)


@pytest.mark.parametrize("solver", [InteriorPoint(), FISTA(), LBFGS()], ids=repr)
def test_refits_of_the_output_layer_prove_their_gap(solver):
    problem = problem_of("l1/l2", ridge=0.4, strength=0.0 if isinstance(solver, LBFGS) else 0.5)
    layer = problem.output_layer(network_of(problem))
    found = mopn.minimize(layer, solver, tol=1e-6, max_iter=2000)
    again = mopn.minimize(layer, FISTA(), tol=1e-7, max_iter=1000)
    assert found.fun == pytest.approx(again.fun, rel=1e-5)
    if not isinstance(solver, LBFGS):
        assert found.success
        assert again.lower <= found.fun


def test_paths_keep_the_ridge():
    found = mopn.path(problem_of("l1/l2", ridge=0.2), [2.0, 1.0], tol=1e-3, rounds=None)
    for strength, result in zip((2.0, 1.0), found.results, strict=True):
        alone = mopn.certify(problem_of("l1/l2", ridge=0.2, strength=strength), result.basis, result.weights)
        assert alone.fun == pytest.approx(result.fun)


@pytest.mark.parametrize("norm", ["l1", "l1/l2"])
def test_paths_go_from_the_kernel_machine_to_few_units_and_back(norm):
    """The minimum at each strength does not depend on the direction."""
    problem, solver, tol = problem_of(norm, ridge=0.2), ConditionalGradient("full"), 1e-3
    down = mopn.path(problem, [2.0, 0.5, 0.0], tol=tol, rounds=None)
    assert down.strengths.tolist() == [2.0, 0.5, 0.0]
    result = None
    for strength, found in zip(down.strengths[::-1], down.results[::-1], strict=True):
        result = mopn.minimize(problem.with_strength(strength), solver, start=result, tol=tol, max_iter=50)
        assert result.lower <= found.fun
        assert found.lower <= result.fun
        if norm == "l1":  # of l1/l2 a path's bound may be loose
            assert found.gap <= tol * found.fun
            assert result.fun <= (1.0 + tol) * found.fun
    with pytest.raises(ValueError, match="or 0 with a ridge"):
        mopn.path(problem.with_ridge(0.0), [1.0, 0.0])


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_oracles_without_a_strength():
    problem = problem_of(strength=0.0)
    assert problem.oracles == {"corrective"}
    assert problem.regularized
    assert mopn.certify(problem, np.zeros((0, 4)), np.zeros((0, 3))).gap < np.inf

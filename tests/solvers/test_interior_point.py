"""The interior-point solver: gaps recomputed from the definition, other solvers' optima, and degenerate problems."""

import math
from functools import cache

import numpy as np
import pytest
from networks import TWO_SIDED
from own_losses import LogCosh
from reference import conjugate

import mopn
from mopn.core.norms import NORMS
from mopn.losses.losses import LOSSES
from mopn.solvers import FISTA, InteriorPoint, Status
from mopn.solvers.interior_point import _NewtonSystem

NAMES = sorted(LOSSES)
PER_OUTPUT = [name for name in NAMES if LOSSES[name].targets != "labels"]
FORMS = [(norm, form) for norm in TWO_SIDED for form in ("strength", "radius")]
DUALS = {"l1": np.inf, "l1/l2": 2, "l1/linf": 1}

every_loss = pytest.mark.parametrize("loss", NAMES)
every_form = pytest.mark.parametrize(("norm", "form"), FORMS)


def data(loss, n=60, k=8, m=3, condition=None, seed=0):
    """Random features, of a condition number if one is given, and targets with some noise."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, k))
    if condition is not None:
        U, _, W = np.linalg.svd(features, full_matrices=False)
        features = math.sqrt(n) * (U * np.geomspace(1.0, 1.0 / condition, k)) @ W
    scores = features @ rng.standard_normal((k, m)) + rng.standard_normal((n, m))
    if LOSSES[loss].targets == "labels":
        return features, scores.argmax(axis=1)
    if loss == "poisson":
        return features, np.round(np.exp(np.clip(0.5 * scores, None, 3.0)))
    return features, np.sign(scores) if loss.startswith("binary") else scores


def layer(loss, norm, form, size=1.0, **options):
    features, y = data(loss, **options)
    return mopn.OutputLayerProblem(features, y, loss=loss, norm=norm, **{form: size})


def solve(problem, tol=1e-9, max_iter=100, **options):
    return mopn.minimize(problem, InteriorPoint(), tol=tol, max_iter=max_iter, **options)


def recomputed_gap(problem, norm, form, V, size=1.0):
    """Primal minus dual objective by the definition, with the loss gradient at V, made feasible, as the dual point."""
    fit, features = problem.losses, problem.features
    value, G = fit.value_gradient(features @ V)
    pulled = features.T @ G
    exponent = DUALS[norm]
    dual = np.linalg.norm(pulled, exponent, axis=1).max()
    if form == "radius":
        return value + conjugate(fit, G) + size * dual
    penalty = size * np.linalg.norm(V, {np.inf: 1, 2: 2, 1: np.inf}[exponent], axis=1).sum()
    return value + penalty + conjugate(fit, min(1.0, size / dual) * G)


def check_optimal(problem, norm, form, result, rel=1e-8):
    assert result.success
    assert result.gap_is_proven
    assert result.gap <= 1e-9 * result.fun
    # The certificate may come from another iterate; the last one alone proves a little less. Where the curvature of the
    # losses vanishes, small steps change their gradients by more.
    if problem.losses.loss.name in ("huber", "quantile"):
        rel *= 10.0
    gap = recomputed_gap(problem, norm, form, result.weights)
    assert -1e-13 * result.fun <= gap <= rel * result.fun
    if form == "radius":
        assert NORMS[norm].value(result.weights) <= 1.0


# Optima


@every_loss
@every_form
def test_gap_and_optimum(loss, norm, form):
    """From scratch; a first-order method finds the same optimum, within both gaps."""
    problem = layer(loss, norm, form)
    result = solve(problem)
    check_optimal(problem, norm, form, result, rel=1e-7)
    fista = mopn.minimize(problem, FISTA(), tol=1e-9, max_iter=3000)
    assert fista.fun - fista.gap <= result.fun * (1 + 1e-14)
    assert result.fun - result.gap <= fista.fun * (1 + 1e-14)
    assert result.fun <= fista.fun * (1 + 1e-9)
    if fista.success:
        assert -1e-9 * fista.fun <= recomputed_gap(problem, norm, form, fista.weights) <= 1e-4 * fista.fun


@every_loss
@every_form
def test_nearly_collinear_features(loss, norm, form):
    """Condition 1e8. Neither the features' small directions nor their large ones cost iterations."""
    problem = layer(loss, norm, form, m=3, condition=1e8)
    check_optimal(problem, norm, form, solve(problem), rel=1e-6)


@pytest.mark.parametrize("loss", PER_OUTPUT)
@every_form
def test_one_output(loss, norm, form):
    problem = layer(loss, norm, form, m=1)
    result = solve(problem)
    check_optimal(problem, norm, form, result, rel=1e-7)
    if norm in DUALS:
        l1 = solve(layer(loss, "l1", form, m=1))
        assert result.fun == pytest.approx(l1.fun, rel=2e-9)


@every_form
def test_few_iterations(norm, form):
    """The levels fall by a factor of 10, from 0.1 of the gap: 9 of them for a gap of 1e-9, and some to begin with."""
    for condition in (None, 1e8):
        assert solve(layer("logistic", norm, form, condition=condition)).nit <= 40


@every_form
@pytest.mark.parametrize(("weight", "unit"), [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-4), (1.0, 1e4)])
def test_scale_of_the_loss_and_of_the_features(norm, form, weight, unit):
    """A weight of all samples, or features in another unit, and the strength or the radius with them."""
    features, y = data("logistic")
    size = weight * unit if form == "strength" else 1.0 / unit
    weights = np.full(len(y), weight)
    problem = mopn.OutputLayerProblem(unit * features, y, norm=norm, sample_weight=weights, **{form: size})
    result = solve(problem, tol=1e-8)
    assert result.success
    assert result.fun / weight == pytest.approx(solve(layer("logistic", norm, form), tol=1e-8).fun, rel=2e-8)


# Starts


@pytest.mark.parametrize("loss", ["squared-hinge", "squared"])
@every_form
def test_any_start_leads_to_the_same_objective(loss, norm, form):
    problem = layer(loss, norm, form)
    cold = solve(problem)
    far = 100.0 * np.random.default_rng(1).standard_normal(problem.shape)
    # The last one lies on a coordinate axis, in a ball at one of its vertices.
    corner = np.zeros(problem.shape)
    corner[2, 1] = 5.0
    for result in (cold, *(solve(problem, start=start) for start in (far, corner))):
        check_optimal(problem, norm, form, result, rel=1e-7)
        assert result.fun == pytest.approx(cold.fun, rel=2e-9)
        assert result.fun <= result.trace["fun"][0]


@every_form
def test_the_result_is_never_worse_than_the_start(norm, form):
    """Not even where there is nothing left to gain, or one step only; a run from the solution ends at once."""
    problem = layer("logistic", norm, form)
    best = mopn.minimize(problem, FISTA(), tol=1e-13, max_iter=3000)
    again = solve(problem, tol=1e-6, start=best)
    assert again.nit == 0
    # The projection of a start onto its ball may round.
    np.testing.assert_allclose(again.weights, best.weights, rtol=1e-14, atol=0)
    for start, limits in ((best, {"max_iter": 1}), (best, {"max_iter": 5}), (None, {"max_iter": 1})):
        result = solve(problem, tol=0, start=start, **limits)
        assert result.fun <= result.trace["fun"][0] * (1 + 1e-14)
        assert result.fun <= result.trace["fun"].min() * (1 + 1e-14)


@every_loss
@pytest.mark.parametrize("norm", TWO_SIDED)
def test_strength_at_and_above_its_maximum_gives_zero(loss, norm):
    """strength max is the dual norm of the gradient at zero, where zero becomes optimal."""
    features, y = data(loss)
    fit = mopn.OutputLayerProblem(features, y, loss=loss, strength=1.0).losses
    G = fit.value_gradient(np.zeros((len(y), 3)))[1]
    limit = np.linalg.norm(features.T @ G, DUALS[norm], axis=1).max()
    at = solve(mopn.OutputLayerProblem(features, y, loss=loss, norm=norm, strength=limit))
    np.testing.assert_array_equal(at.weights, 0.0)
    assert at.gap <= 1e-9 * at.fun
    above = mopn.OutputLayerProblem(features, y, loss=loss, norm=norm, strength=1.1 * limit)
    far = solve(above, start=np.ones((8, 3)))
    np.testing.assert_array_equal(far.weights, 0.0)
    assert far.fun == pytest.approx(fit.value(np.zeros((len(y), 3))), rel=1e-14)
    below = solve(mopn.OutputLayerProblem(features, y, loss=loss, norm=norm, strength=0.9 * limit))
    assert np.abs(below.weights).max() > 0
    assert below.fun < at.fun


@pytest.mark.parametrize("tol", [1e-9, 1e-11])
@pytest.mark.parametrize("norm", TWO_SIDED)
def test_zeros_are_those_of_fista(norm, tol):
    """Exact ones, entries for l1 and rows for the others."""
    features, y = data("logistic", k=20)
    G = mopn.OutputLayerProblem(features, y, strength=1.0).losses.value_gradient(np.zeros((60, 3)))[1]
    strength = 0.3 * np.linalg.norm(features.T @ G, DUALS[norm], axis=1).max()
    problem = mopn.OutputLayerProblem(features, y, norm=norm, strength=strength)
    ours, theirs = solve(problem, tol=tol).weights, mopn.minimize(problem, FISTA(), tol=1e-12, max_iter=5000).weights
    assert 0 < np.count_nonzero(theirs) < theirs.size
    np.testing.assert_array_equal(ours == 0, theirs == 0)


# Degenerate problems


@every_form
@pytest.mark.parametrize("tol", [1e-9, 0.0])
def test_no_units(norm, form, tol):
    problem = mopn.OutputLayerProblem(np.zeros((10, 0)), np.arange(10) % 3, norm=norm, **{form: 1.0})
    result = solve(problem, tol=tol)
    assert result.weights.shape == (0, 3)
    assert result.fun == pytest.approx(10 * np.log(3), rel=1e-14)
    assert result.gap <= 1e-12 * result.fun


@every_form
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_unused_and_repeated_columns(loss, norm, form):
    """Units without features change nothing; nor do repeated ones."""
    features, y = data(loss, n=30)
    padded = mopn.OutputLayerProblem(np.insert(features, [0, 3, 8], 0, axis=1), y, loss=loss, norm=norm, **{form: 1.0})
    result, once = solve(padded), solve(layer(loss, norm, form, n=30))
    check_optimal(padded, norm, form, result, rel=2e-7)
    assert result.fun == pytest.approx(once.fun, rel=2e-9)
    twice = solve(mopn.OutputLayerProblem(np.hstack([features] * 2), y, loss=loss, norm=norm, **{form: 1.0}))
    assert twice.success
    assert twice.fun == pytest.approx(once.fun, rel=2e-9)


@every_form
def test_more_units_than_samples(norm, form):
    problem = layer("logistic", norm, form, n=15, k=30)
    check_optimal(problem, norm, form, solve(problem), rel=1e-7)


@pytest.mark.parametrize("norm", TWO_SIDED)
def test_a_ball_without_inside_is_refused(norm):
    with pytest.raises(TypeError, match="InteriorPoint asks for the oracle 'barrier'"):
        solve(layer("logistic", norm, "radius", 0.0), tol=0.0)


@pytest.mark.parametrize("norm", TWO_SIDED)
@pytest.mark.parametrize("loss", ["binary-squared-hinge", "squared"])
def test_a_ball_that_restrains_nothing(norm, loss):
    """The optimum lies inside: of least squares, or without any curvature (hinges of separable classes)."""
    features, y = data("squared")
    y = y if loss == "squared" else np.sign(features @ np.ones((8, 3)))
    problem = mopn.OutputLayerProblem(features, y, loss=loss, norm=norm, radius=1e3)
    result = solve(problem, tol=1e-6 if loss == "squared" else 0, max_iter=60)
    if loss == "squared":
        assert result.success
        exact, *_ = np.linalg.lstsq(features, y, rcond=None)
        assert result.fun == pytest.approx(0.5 * np.sum((features @ exact - y) ** 2), rel=2e-6)
    else:
        # A hinge loses nothing once all margins are 1.
        assert 0 <= result.fun <= 1e-6


@every_form
def test_targets_that_zero_weights_fit_exactly(norm, form):
    features, _ = data("squared")
    problem = mopn.OutputLayerProblem(features, np.zeros((60, 3)), loss="squared", norm=norm, **{form: 1.0})
    cold = solve(problem, max_iter=30)
    np.testing.assert_array_equal(cold.weights, 0.0)
    warm = solve(problem, start=np.full(problem.shape, 0.01), max_iter=60)
    assert 0 <= warm.fun <= 1e-12


@every_form
def test_separable_classes(norm, form):
    """A small strength or a large radius: most losses are nearly 0, and so is their curvature."""
    features, _ = data("logistic")
    y = (features @ np.random.default_rng(5).standard_normal((8, 3))).argmax(axis=1)
    size = 1e-3 if form == "strength" else 1e2
    problem = mopn.OutputLayerProblem(features, y, norm=norm, **{form: size})
    result = solve(problem, tol=1e-6, max_iter=200)
    assert result.success
    assert recomputed_gap(problem, norm, form, result.weights, size) <= 1e-4 * result.fun


# Options and limits


@every_form
@pytest.mark.slow
def test_without_a_tolerance_the_run_ends_at_the_limit_of_accuracy(norm, form):
    """tol=0: stalled, or out of iterations, but with a gap of rounding errors and a finite point."""
    result = solve(layer("logistic", norm, form), tol=0, max_iter=200)
    assert result.status in (Status.STALLED, Status.MAX_ITER)
    assert result.gap <= 1e-10 * result.fun
    assert np.isfinite(result.weights).all()


@cache
def optimum_of(norm, form):
    return mopn.minimize(layer("logistic", norm, form), FISTA(), tol=1e-12, max_iter=3000).fun


@every_form
@pytest.mark.parametrize("options", [{"largest_tol": 0.5}, {"largest_tol": 1e-8}, {"max_iter": 1}, {"max_iter": 2}])
def test_the_accuracy_of_steps_changes_the_way_and_not_the_optimum(norm, form, options, monkeypatch):
    """Truncated steps are slow, but prove their results."""
    optimum = optimum_of(norm, form)
    for name, value in options.items():
        monkeypatch.setattr(_NewtonSystem, name, value)
    result = mopn.minimize(layer("logistic", norm, form), InteriorPoint(), tol=1e-7, max_iter=200)
    assert result.success or "max_iter" in options
    assert (result.trace["inner"][1:] >= 1).all()
    assert result.trace["inner"].max() <= options.get("max_iter", np.inf)
    assert ((result.trace["step"][1:] > 0) & (result.trace["step"][1:] <= 1)).all()
    assert "mu" in result.trace
    assert result.fun - result.gap <= optimum * (1 + 1e-14)
    assert optimum <= result.fun * (1 + 1e-12)
    assert result.fun == pytest.approx(optimum, rel=2e-7 if result.success else 1e-4)


def test_a_loss_without_hessian_has_no_barrier():
    features, y = data("squared")
    problem = mopn.OutputLayerProblem(features, y, loss=LogCosh(), strength=1.0)
    assert problem.oracles == {"composite"}
    with pytest.raises(TypeError, match="asks for the oracle 'barrier', which OutputLayerProblem"):
        solve(problem)


@pytest.mark.parametrize("weighted", [False, True])
@every_loss
def test_hessian_of_the_layer_is_dense_algebra(loss, weighted):
    """Phi' H Phi by Kronecker products, and its blocks on the diagonal with the losses' own curvatures."""
    features, y = data(loss, n=20, k=4)
    rng = np.random.default_rng(0)
    weights = rng.uniform(size=20) if weighted else None
    problem = mopn.OutputLayerProblem(features, y, loss=loss, strength=1.0, sample_weight=weights)
    V = rng.standard_normal((4, 3))
    image = problem.image(V.ravel())
    hessian, losses = problem.hessian(image), problem.losses.in_memory.hessian(image)
    per_sample = np.stack([losses.product(np.tile(e, (20, 1))) for e in np.eye(3)], axis=2)
    expected = np.einsum("ir,icd,iq->rcqd", features, per_sample, features)
    for e in np.eye(12).reshape(12, 4, 3):
        np.testing.assert_allclose(hessian.product(e), np.einsum("rcqd,qd->rc", expected, e), rtol=1e-12, atol=1e-13)
    blocks = np.stack([expected[:, c, :, c] for c in range(3)])
    np.testing.assert_allclose(hessian.blocks(), blocks, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("form", ["strength", "radius"])
def test_bounds_from_predicted_gradients_are_bounds(loss, form):
    """Whatever the step and however far the prediction is off, no bound exceeds the minimum."""
    problem = layer(loss, "l1/l2", form)
    best = solve(problem, tol=1e-8)
    rng = np.random.default_rng(0)
    for scale in (0.0, 1e-2, 1.0, 30.0):
        V = problem.start(best.weights + 0.3 * rng.standard_normal(best.weights.shape))
        image = problem.image(V)
        at = problem.smooth(image)
        step = scale * rng.standard_normal(image.shape)
        bound = problem.predicted_bound(at, problem.hessian(image), step)
        assert bound <= best.fun
        if scale == 0.0:
            assert bound == pytest.approx(problem.dual_bound(at), rel=1e-9)


def test_an_estimate_ends_the_run_sooner_than_a_proof():
    problem = layer("logistic", "l1/linf", "strength")
    proven = mopn.minimize(problem, InteriorPoint(), tol=1e-6)
    estimated = mopn.minimize(problem, InteriorPoint(prove=False), tol=1e-6)
    assert proven.success
    assert estimated.status in (Status.ESTIMATED, Status.CONVERGED)
    assert estimated.nit <= proven.nit
    assert estimated.fun <= proven.fun * (1 + 2e-6)

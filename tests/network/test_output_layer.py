"""The output layer: gaps recomputed from the definition, solvers that agree, and a solution in closed form."""

from fractions import Fraction

import numpy as np
import pytest
from networks import LOSSES, data, every_form, every_norm

import mopn
from mopn.core.norms import NORMS
from mopn.solvers import FISTA, LBFGS, InteriorPoint


@pytest.mark.parametrize(("k", "expected"), [(30, InteriorPoint), (80, FISTA)])
def test_the_default_solver_is_that_of_refits(k, expected):
    features = np.random.default_rng(0).uniform(0, 1, (60, k))
    problem = mopn.OutputLayerProblem(features, features[:, 0] > 0.5, norm="l1", strength=0.1)
    assert isinstance(problem.default_solver(), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_lbfgs_and_fista_agree_on_the_smooth_problem(loss):
    X, y = data(loss)
    problem = mopn.OutputLayerProblem(X**2, y, loss=loss, norm="squared-l2", strength=0.5)
    fista = mopn.minimize(problem, FISTA(), tol=1e-9, max_iter=5000)
    lbfgs = mopn.minimize(problem, LBFGS(gtol=1e-12), tol=1e-9)
    assert fista.success
    assert lbfgs.success
    assert lbfgs.fun == pytest.approx(fista.fun, rel=3e-9)
    assert lbfgs.weights == pytest.approx(fista.weights, abs=1e-3)
    with pytest.raises(TypeError, match=r"there is none for a smooth penalty; use LBFGS\(\)"):
        mopn.minimize(problem, InteriorPoint())


@pytest.mark.parametrize("tol", [1e-13, 2e-13, 4e-13])
def test_success_is_a_gap_below_the_tolerance_with_its_rounding(tol):
    for seed in range(8):
        problem = mopn.OutputLayerProblem(
            *np.split(np.random.default_rng(seed).standard_normal((50, 6)), [5], 1), loss="squared", strength=1.0
        )
        result = mopn.minimize(problem, InteriorPoint(), tol=tol)
        assert result.success == (result.gap <= tol * result.fun)


@pytest.mark.parametrize("solver", [InteriorPoint(), FISTA()], ids=repr)
@pytest.mark.parametrize(("y", "strength", "start"), [(1.5, 0.5, -1.1e8), (1.25, 0.75, -1.1e8), (1.25, 0.75, -3e7)])
def test_bounds_from_far_starts_are_kept_as_they_were_proven(y, strength, start, solver):
    """For one sample x = 1 the minimum is strength y - strength^2 / 2; at a far start fun - gap is rounded by more."""
    problem = mopn.OutputLayerProblem(np.ones((1, 1)), [[y]], loss="squared", norm="l1", strength=strength)
    result = mopn.minimize(problem, solver, start=np.array([[start]]), tol=1e-3)
    weight, lam = Fraction(float(result.weights[0, 0])), Fraction(strength)
    minimum = lam * Fraction(y) - lam**2 / 2
    exact = (weight - Fraction(y)) ** 2 / 2 + lam * abs(weight)
    assert Fraction(result.lower) <= minimum
    assert Fraction(result.gap) >= max(exact, Fraction(result.fun)) - minimum


@every_form
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("norm", sorted(NORMS))
def test_working_sets_lead_to_the_minimum_over_all_units(norm, loss, form):
    rng = np.random.default_rng(0)
    features = (rng.uniform(-1, 1, (60, 5)) @ rng.standard_normal((5, 120))) ** 2
    y = features[:, :3] - features[:, 3:6] if loss == "squared" else np.argmax(features[:, :3], axis=1)
    ratio = mopn.OutputLayerProblem(features, y, loss, norm, strength=1.0)
    slopes = ratio.smooth(ratio.image(ratio.start())).gradient
    strength = 0.3 * ratio.regularizer.dual(ratio.split(slopes)[0])
    value = {"strength": strength, "radius": 2.0 / strength}[form]
    problem = mopn.OutputLayerProblem(features, y, loss, norm, **{form: value})
    result = mopn.minimize(problem, FISTA(), tol=1e-5, max_iter=10_000)
    assert result.success
    assert 0 < np.count_nonzero(result.weights.any(axis=1)) <= 50
    # Computed again from the weights of all units; the best bound of the run may be of another point.
    assert problem.measure(result.x).gap <= 1e-4 * result.fun


@every_norm
def test_a_working_set_is_the_problem_of_its_units(norm):
    """With a ridge and a linear term; a set that is no half of the units begins with those that have weights."""
    rng = np.random.default_rng(0)
    X, H, V = rng.uniform(-1, 1, (60, 4)), rng.standard_normal((120, 4)), rng.standard_normal((120, 2))
    V[rng.permutation(120)[3:]] = 0.0
    options = {"norm": norm, "strength": 0.1, "ridge": 0.3, "alpha": 0.1}
    network = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, **options)
    layer = network.output_layer(network.start((H, V)))
    x = layer.start(V)
    inner, kept, lower = layer.working_set(x, 50)
    assert layer.working_set(x, 60) is None
    assert set(np.flatnonzero(x)) <= set(kept)
    assert inner.shape == (50, 2)
    whole = layer.smooth(layer.image(x))
    part = inner.smooth(inner.image(x[kept]))
    assert part.value == pytest.approx(whole.value, rel=1e-12)
    assert part.gradient == pytest.approx(whole.gradient[kept], rel=1e-9, abs=1e-12)
    assert inner.regularizer_value(x[kept]) == pytest.approx(layer.regularizer_value(x), rel=1e-12)
    assert lower == layer.dual_bound(whole) <= inner.dual_bound(part) + 1e-12 * whole.value

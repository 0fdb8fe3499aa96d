"""Weights by target: the loss itself, gaps of problems with it, and what has no such weights."""

import numpy as np
import pytest
from networks import data, every_form, every_norm
from own_losses import LogCosh
from properties import generators, tried
from reference import derivatives, loss_of_sample, norm_of_rows

import mopn
from mopn.losses.loss import WeightedByTarget
from mopn.losses.losses import LOSSES
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint

PER_OUTPUT = sorted(name for name in LOSSES if LOSSES[name].targets != "labels")
WEIGHTS = np.array([2.0, 0.1, 30.0])
every_loss = pytest.mark.parametrize("loss", PER_OUTPUT)


def targets(loss, rng, n=6, m=3):
    numbers = rng.standard_normal((n, m))
    return {"signs": np.sign(numbers), "counts": np.floor(3.0 * np.abs(numbers))}.get(LOSSES[loss].targets, numbers)


def by_definition(loss, y, O, weights=WEIGHTS):  # noqa: E741
    """The weighted losses of the rows, (n,)."""
    rows = [[loss_of_sample(loss, y[i, [c]], O[i, [c]]) for c in range(y.shape[1])] for i in range(len(y))]
    return np.array(rows) @ weights


@every_loss
@tried(20, rng=generators)
def test_value_gradient_and_conjugate_are_those_of_the_weighted_sum(loss, rng):
    weighted, y = WeightedByTarget(LOSSES[loss], WEIGHTS), targets(loss, rng)
    O = np.asarray(rng.standard_normal(y.shape), order=rng.choice(["C", "F"]))  # noqa: E741
    values, G = weighted.value_gradient(y, O)
    np.testing.assert_allclose(values, by_definition(loss, y, O), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(weighted.value(y, O), values, rtol=1e-12)
    slopes = derivatives(lambda O: weighted.value(y, O).sum(), O)  # noqa: E741
    # Where a slope bends within a difference's step, its error is in proportion to the weight.
    bends = loss in ("quantile", "huber", "binary-squared-hinge")
    assert np.all(np.abs(G - slopes) <= (1e-3 * WEIGHTS if bends else 1e-6) + 1e-7 * np.abs(slopes))
    # Equality in Fenchel's inequality at the gradient, and the inequality at other dual points.
    np.testing.assert_allclose(weighted.conjugate(y, G), np.sum(G * O, axis=1) - values, rtol=1e-9, atol=1e-9)
    other = weighted.dual_point(y, rng.standard_normal(y.shape))
    assert np.all(weighted.conjugate(y, other) >= np.sum(other * O, axis=1) - values - 1e-9)
    scale = min(weighted.max_scale(y, G), 4.0)
    assert np.all(weighted.conjugate(y, scale * G) >= scale * np.sum(G * O, axis=1) - values - 1e-9)


@every_loss
def test_the_weighted_loss_keeps_the_contract(loss):
    weighted = WeightedByTarget(LOSSES[loss], WEIGHTS)
    mopn.testing.check_loss(weighted)
    assert weighted.has_hessian
    assert (weighted.name, weighted.link) == (loss, LOSSES[loss].link)


@every_form
@every_norm
@every_loss
def test_gaps_hold(loss, norm, form):
    """Against what full refits find, and with objectives by the definition."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (30, 3)), targets(loss, rng, 30)
    problem = mopn.NetworkProblem(X, y, loss, norm=norm, target_weight=WEIGHTS, **{form: 0.7})
    best = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-2, max_iter=5)
    penalty = 0.7 * norm_of_rows(best.weights, norm) if form == "strength" else 0.0
    outputs = (X @ best.basis.T) ** 2 @ best.weights
    assert best.fun == pytest.approx(by_definition(loss, y, outputs).sum() + penalty, rel=1e-10)
    for share in (0.0, 0.5, 0.99):
        found = mopn.certify(problem, best.basis, share * best.weights)
        assert found.fun - found.gap <= best.fun <= found.fun * (1 + 1e-12)


@pytest.mark.parametrize("loss", [*PER_OUTPUT, LogCosh()])
def test_under_l1_each_target_is_a_problem_of_its_own(loss):
    """t F + strength |u| is t times the problem of the strength / t."""
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, (30, 3)), targets("squared" if isinstance(loss, mopn.Loss) else loss, rng, 30)

    def minimum(y, strength, weights=None):
        problem = mopn.NetworkProblem(X, y, loss, norm="l1", strength=strength, target_weight=weights)
        return mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-6, max_iter=60).fun

    alone = [t * minimum(y[:, c], 0.5 / t) for c, t in enumerate(WEIGHTS)]
    assert minimum(y, 0.5, WEIGHTS) == pytest.approx(sum(alone), rel=1e-5)


@pytest.mark.slow
def test_under_l1_linf_a_weight_is_a_repeated_target():
    """As the largest modulus of a row of weights does not change."""
    X, y = data("squared", m=2)
    solver, options = ConditionalGradient(refit="full"), {"loss": "squared", "norm": "l1/linf", "strength": 1.0}
    weighted = mopn.NetworkProblem(X, y, target_weight=[3.0, 1.0], **options)
    repeated = mopn.NetworkProblem(X, y[:, [0, 0, 0, 1]], **options)
    weighted, repeated = (mopn.minimize(each, solver, tol=1e-6, max_iter=60) for each in (weighted, repeated))
    assert weighted.fun == pytest.approx(repeated.fun, rel=1e-5)


@every_norm
def test_equal_weights_are_weights_of_all_samples(norm):
    X, y = data("squared")
    H, V = np.eye(4), np.arange(12.0).reshape(4, 3) / 10
    measures = [
        mopn.certify(mopn.NetworkProblem(X, y, "squared", norm=norm, strength=1.0, **weights), H, V)
        for weights in ({"target_weight": np.full(3, 2.5)}, {"sample_weight": np.full(len(X), 2.5)})
    ]
    assert measures[0].fun == pytest.approx(measures[1].fun, rel=1e-13)
    assert measures[0].lower == pytest.approx(measures[1].lower, rel=1e-9)


def test_blocks_find_the_same():
    X, y = data("binary-logistic")
    options = {"loss": "binary-logistic", "strength": 0.5, "target_weight": WEIGHTS}
    H, V = np.eye(4), np.arange(12.0).reshape(4, 3) / 10
    expected = mopn.certify(mopn.NetworkProblem(X, y, **options), H, V)
    blocks = mopn.RowBlocks([X[:15], X[15:]], y)
    found = mopn.certify(mopn.NetworkProblem(blocks, **options), H, V)
    assert found.fun == pytest.approx(expected.fun, rel=1e-12)
    assert found.lower == pytest.approx(expected.lower, rel=1e-9)


@every_loss
def test_refits_of_the_output_layer(loss):
    rng = np.random.default_rng(2)
    features, y = rng.uniform(0, 1, (40, 4)), targets(loss, rng, 40)
    problem = mopn.OutputLayerProblem(features, y, loss, strength=0.5, target_weight=WEIGHTS)
    newton = mopn.minimize(problem, InteriorPoint(), tol=1e-7)
    first_order = mopn.minimize(problem, FISTA(), tol=1e-5, max_iter=5000)
    assert newton.success
    assert first_order.fun >= newton.fun - newton.gap
    assert newton.fun >= first_order.fun - first_order.gap
    penalty = 0.5 * norm_of_rows(newton.weights, "l1/l2")
    assert newton.fun == pytest.approx(by_definition(loss, y, features @ newton.weights).sum() + penalty, rel=1e-10)


def test_losses_of_ones_own_have_weights_as_far_as_they_go():
    X, y = data("squared")
    options = {"loss": LogCosh(), "norm": "l1", "strength": 0.5}
    assert not mopn.NetworkProblem(X, y, target_weight=WEIGHTS, **options).losses.loss.has_hessian
    layer = mopn.OutputLayerProblem(X, y, target_weight=WEIGHTS, **options)
    assert mopn.minimize(layer, tol=1e-3).success
    with pytest.raises(TypeError, match="has no hessian"):
        mopn.minimize(layer, InteriorPoint())


class Coupled(mopn.Loss):
    """Half of the squared distance, of which a row's outputs share the root."""

    targets = "numbers"

    def smoothness(self, m):
        return 1.0

    def value_gradient(self, y, O):  # noqa: E741
        R = O - y
        root = np.sqrt(1.0 + np.sum(R**2, axis=1))
        return root - 1.0, R / root[:, None]

    def conjugate(self, y, G):
        return np.sum(G * y, axis=1) + 1.0 - np.sqrt(np.maximum(1.0 - np.sum(G**2, axis=1), 0.0))


class Several(mopn.Loss):
    """The squared loss, in a unit of its own for each of three outputs."""

    targets = "numbers"
    units = np.array([1.0, 2.0, 3.0])

    def smoothness(self, m):
        return 3.0

    def value_gradient(self, y, O):  # noqa: E741
        R = O - y
        return 0.5 * np.sum(self.units * R**2, axis=1), self.units * R

    def conjugate(self, y, G):
        return np.sum(G * (0.5 * G / self.units + y), axis=1)


@pytest.mark.parametrize("loss", [Coupled(), Several()])
def test_losses_that_are_no_sum_of_the_same_loss_are_refused(loss):
    X, y = data("squared")
    assert mopn.NetworkProblem(X, y, loss, strength=1.0).losses.loss is loss
    with pytest.raises(ValueError, match="target_weight is for sums of losses per output; loss="):
        mopn.NetworkProblem(X, y, loss, strength=1.0, target_weight=WEIGHTS)


@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge", "squared-hinge"])
def test_losses_of_classes_have_no_targets(loss):
    X, y = data(loss)
    with pytest.raises(ValueError, match=f"target_weight is for losses per output; loss='{loss}' compares"):
        mopn.NetworkProblem(X, y, loss, strength=1.0, target_weight=WEIGHTS)
    with pytest.raises(ValueError, match="target_weight is for losses per output"):
        mopn.NetworkProblem(mopn.RowBlocks([X], y), None, loss, strength=1.0, target_weight=WEIGHTS)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"target_weight must have shape \(3,\), one weight per target, got \(2,\)"),
        ([1.0, 0.0, 1.0], "target_weight must be > 0; leave targets without a weight out of y"),
        ([1.0, np.nan, 1.0], "target_weight contains NaN"),
        ([1.0, 1e-60, 1.0], "target_weight is too small"),
        ([1.0, 1e60, 1.0], "target_weight is too large"),
    ],
)
def test_weights_that_are_refused(weights, message):
    X, y = data("squared")
    with pytest.raises(ValueError, match=message):
        mopn.NetworkProblem(X, y, "squared", strength=1.0, target_weight=weights)
    with pytest.raises(ValueError, match=message):
        mopn.OutputLayerProblem(X, y, "squared", strength=1.0, target_weight=weights)

# ruff: noqa: E741
"""Lower bounds are below the minimum for own losses whose dual side is wrong where no check of a few rows looks."""

import numpy as np
import pytest

import mopn
from mopn.losses.hessians import Diagonal
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint

N, THRESHOLD = 60, 200.0
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (N, 3))
PLAIN = rng.standard_normal((N, 1))
OUTLIER = np.where(np.arange(N)[:, None] == 31, 1e6, PLAIN)


class Own(mopn.Loss):
    """Huber's loss as one of one's own; the methods of its dual side are replaced."""

    targets, threshold = "numbers", THRESHOLD

    def smoothness(self, m):
        return 1.0

    def value_gradient(self, y, O):
        G = np.clip(O - y, -self.threshold, self.threshold)
        return np.sum(G * (O - y - 0.5 * G), axis=1), G

    def conjugate(self, y, G):
        return np.sum(G * (0.5 * G + y), axis=1)

    def hessian(self, y, O):
        return Diagonal(np.where(np.abs(O - y) <= self.threshold, 1.0, 0.0))


def beyond(change):
    """A conjugate that is wrong for slopes beyond a tenth of the threshold, where the check draws none."""

    def conjugate(self, y, G):
        large = np.abs(G).max(axis=1) > 0.1 * self.threshold
        with np.errstate(invalid="ignore"):
            return np.where(large, change(Own.conjugate(self, y, G)), Own.conjugate(self, y, G))

    return {"conjugate": conjugate}


FAULTS = {
    "right": {},
    "scales without limit": {"max_scale": lambda self, y, G: np.inf},
    "scales that are NaN": {"max_scale": lambda self, y, G: np.nan},
    "dual points outside": {"dual_point": lambda self, y, G: 4.0 * G},
    "conjugate too small": beyond(lambda values: values - 1e9),
    "conjugate by a factor": beyond(lambda values: 3.0 * values),
    "conjugate of minus infinity": beyond(lambda values: np.full_like(values, -np.inf)),
    "conjugate of NaN": beyond(lambda values: np.full_like(values, np.nan)),
    "conjugate of 0": beyond(lambda values: 0.0 * values),
}
every_fault = pytest.mark.parametrize("fault", FAULTS)


def own(fault, **attributes):
    return type("Mine", (Own,), FAULTS[fault] | attributes)()


MAKERS = {
    "rows": lambda loss, y, **options: mopn.NetworkProblem(X, y, loss=loss, norm="l1", **options),
    "blocks": lambda loss, y, **options: mopn.NetworkProblem(
        mopn.RowBlocks([X[:20], X[20:]], y), loss=loss, norm="l1", **options
    ),
}
in_rows = MAKERS["rows"]
SITUATIONS = {
    "an outlier": lambda make, loss, **options: make(loss, OUTLIER, **options),
    "an offset": lambda make, loss, **options: make(loss, PLAIN, offset=np.full(1, 1e6), **options),
    # The same object was passed with targets without outliers before.
    "a second use": lambda make, loss, **options: [make(loss, y, **options) for y in (PLAIN, OUTLIER)][-1],
}


def bounds_below(problem, right, units):
    """See that no lower bound is above the objective of any network of the right loss."""

    def objective(k, weight):
        measured = mopn.certify(right, units[:k], np.full((k, 1), weight))
        return measured.fun + measured.rounding

    of_units = {k: min(objective(k, weight) for weight in (0.0, 1.0, 1e3)) for k in (0, 1)}
    for k, weight in ((0, 0.0), (1, 1.0), (1, 1e3)):
        measured = mopn.certify(problem, units[:k], np.full((k, 1), weight))
        assert measured.lower <= min(of_units.values())
        assert measured.restricted_lower <= of_units[k]
    result = mopn.minimize(problem, ConditionalGradient(refit="none"), tol=1e-3, max_iter=3)
    assert result.lower <= min(*of_units.values(), mopn.certify(right, result.basis, result.weights).fun * (1 + 1e-12))
    return result


@every_fault
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
@pytest.mark.parametrize("ratio", [5.0, 0.5, None])
def test_bounds_are_safe_whatever_the_dual_side_says(ratio, situation, make, fault):
    """At multiples of the strength whose solution is zero, and in a ball."""
    right = situation(make, mopn.Huber(THRESHOLD), radius=2e3)
    form = {"radius": 2e3} if ratio is None else {"strength": ratio * right.strength_max()}
    try:
        problem = situation(make, own(fault), **form)
    except ValueError:
        # The check looks at some rows of every block.
        assert fault.startswith("conjugate")
        return
    result = bounds_below(problem, situation(make, mopn.Huber(THRESHOLD), **form), np.eye(3))
    if fault == "right" and ratio == 5.0:
        assert result.gap <= 1e-9 * result.fun


@every_fault
def test_bounds_are_those_of_the_loss_as_it_is_then(fault):
    """A threshold that is lowered between the gradient and the bound, and before both."""
    loss = own(fault, threshold=1e12)
    problem = in_rows(loss, OUTLIER, strength=1.0)
    at = problem.output_gradient(problem.start())
    loss.threshold = THRESHOLD
    assert problem.lower(at, 0.1) == -np.inf
    right = in_rows(mopn.Huber(THRESHOLD), OUTLIER, strength=1.0)
    strength = 5.0 * right.strength_max()
    bounds_below(problem.with_strength(strength), right.with_strength(strength), np.eye(3))


@every_fault
@pytest.mark.parametrize("solver", [FISTA(), InteriorPoint()], ids=lambda solver: type(solver).__name__)
def test_bounds_of_layers_are_safe(solver, fault):
    """Of gradients that Newton's method predicts too."""
    options = {"norm": "l1", "strength": 50.0}
    right = mopn.minimize(mopn.OutputLayerProblem(X, OUTLIER, loss=mopn.Huber(THRESHOLD), **options), tol=1e-9)
    layer = mopn.OutputLayerProblem(X, OUTLIER, loss=own(fault), **options)
    result = mopn.minimize(layer, solver, tol=1e-6, max_iter=200)
    assert result.lower <= right.fun * (1 + 1e-12)
    if fault in ("right", "conjugate too small", "scales without limit"):
        assert result.gap <= 1e-3 * result.fun


def test_bounds_of_own_norms_are_safe():
    for fault in FAULTS:
        arguments = {"X": X, "y": OUTLIER[:, 0]}
        ours = mopn.certify_network(np.eye(3)[:1], [[1e3]], loss=own(fault), **arguments)
        right = mopn.certify_network(np.eye(3)[:1], [[1e3]], loss=mopn.Huber(THRESHOLD), **arguments)
        assert ours.lower <= right.objective


def test_a_built_in_object_with_a_method_of_its_own_is_not_trusted():
    loss = mopn.Huber(THRESHOLD)
    loss.max_scale = lambda y, G: np.inf
    problem = in_rows(loss, OUTLIER, strength=1.0)
    right = in_rows(mopn.Huber(THRESHOLD), OUTLIER, strength=5.0 * problem.strength_max())
    bounds_below(problem.with_strength(right.strength), right, np.eye(3))

# ruff: noqa: E741
"""The check of losses: right ones pass, and faults are named, before anything is proven with them."""

import numpy as np
import pytest
from own_losses import OWN_LOSSES, Huber, HuberWithHessian, LogCosh, OfParent, SoftLabels, Sparsemax

import mopn
from mopn.data.loss_checks import LossCheck
from mopn.losses.hessians import Diagonal
from mopn.losses.losses import LOSSES
from mopn.testing import check_loss

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (20, 3))
Y = X[:, 0] * X[:, 1]


OTHERS = [mopn.Huber(3.0), mopn.Huber(1e-3), mopn.Quantile(0.9), mopn.Quantile(0.05, width=4.0)]


@pytest.mark.parametrize("loss", [*LOSSES.values(), *OWN_LOSSES, *OTHERS], ids=repr)
def test_right_losses_pass(loss):
    check_loss(loss)


def test_the_loss_of_counts_passes_with_counts_of_any_size():
    check_loss(mopn.Poisson(), np.array([0.0, 1.0, 1e-3, 1e6, 17.0]))


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e4, 1e10, 1e40])
@pytest.mark.parametrize("loss", [LOSSES["squared"], Huber(), LogCosh(), HuberWithHessian()], ids=lambda x: x.name)
def test_right_losses_pass_with_targets_of_any_size(loss, unit):
    check_loss(loss, unit * rng.standard_normal((30, 2)))
    check_loss(loss, unit * np.arange(2.0))
    check_loss(loss, unit * np.ones(3))


def of_huber(name, method, base=Huber):
    """Return a Huber loss with another method, or attribute."""
    kept = ("smoothness", "value_gradient", "conjugate", *(("hessian",) if base is not Huber else ()))
    body = {"targets": "numbers", "threshold": 1.0} | {key: getattr(base, key) for key in kept} | {name: method}
    return type("Broken", (mopn.Loss,), body)()


def changed(change):
    """Return the method of Huber's loss with its values and gradients changed."""
    return lambda self, y, O: change(*Huber().value_gradient(y, O))


def overwriting(self, y, O):
    O -= y
    return Huber().value_gradient(0.0, O)


WRONG_SIGN = changed(lambda values, G: (values, -G))
VALUE_GRADIENT = {
    "gradient of the wrong sign": (WRONG_SIGN, "the derivative of the values"),
    "gradient by a factor": (changed(lambda values, G: (values, 1.01 * G)), "the derivative of the values"),
    "one value": (lambda self, y, O: (0.5, O - y), r"values of floats, of shape \(24,\); found float"),
    "a mean": (lambda self, y, O: (np.mean((O - y) ** 2, axis=0), O - y), r"shape \(24,\); found shape \(3,\)"),
    "values alone": (lambda self, y, O: np.sum((O - y) ** 2, axis=1), r"a tuple \(values, gradients\); found ndarray"),
    "integers": (lambda self, y, O: (np.zeros(len(y), int), 0 * O), "of floats.*found ndarray of int64"),
    "NaN": (lambda self, y, O: (np.sum(np.sqrt(O - y), axis=1), O - y), "finite numbers; found NaN"),
    "not convex": (lambda self, y, O: (np.sum(1.0 - np.cos(O - y), axis=1), np.sin(O - y)), "a convex function"),
    "rows that depend on each other": (changed(lambda v, G: (v / len(v), G / len(v))), "whatever the others are"),
    "arguments overwritten": (overwriting, "arguments that are left as they are"),
    "values below 0": (changed(lambda values, G: (values - 1.0, G)), "values >= 0"),
}


@pytest.mark.parametrize("fault", VALUE_GRADIENT)
def test_faults_of_value_and_gradient_are_named(fault):
    method, message = VALUE_GRADIENT[fault]
    with pytest.raises((TypeError, ValueError), match=rf"^value_gradient of the loss 'Broken' must be .*{message}"):
        check_loss(of_huber("value_gradient", method))


@pytest.mark.parametrize(
    ("name", "method", "message"),
    [
        ("value", lambda self, y, O: np.zeros(len(y)), "the values of value_gradient; found 0"),
        ("value", lambda self, y, O: 0.0, r"of floats, of shape \(24,\); found float"),
        ("smoothness", lambda self, m: 0.5, "a Lipschitz constant of the gradients, at least 1; found 0.5 for 3"),
        ("smoothness", lambda self, m: np.inf, "inf for a loss with a hessian; found inf and no"),
        ("smoothness", lambda self, m: np.nan, "a number > 0; found nan"),
        ("smoothness", lambda self, m: 0.0, "a number > 0; found 0"),
        ("smoothness", lambda self, m: None, "a number; found None"),
        ("conjugate", lambda self, y, G: np.sum(G * (0.4 * G + y), axis=1), "at the gradient g of the outputs o"),
        ("conjugate", lambda self, y, G: np.zeros(len(y)), "at the gradient g of the outputs o"),
        ("conjugate", lambda self, y, G: np.full(len(y), np.inf), "finite; found a conjugate of inf"),
        ("conjugate", lambda self, y, G: np.sum(G), "of floats.*found float64"),
        ("hessian", lambda self, y, O: Diagonal(np.ones_like(O)), "the derivative of the gradient"),
        ("hessian", lambda self, y, O: np.ones_like(O), "one of mopn.losses.hessians; found ndarray"),
        ("hessian", lambda self, y, O: Diagonal(np.ones(len(y))), r"of shape \(24, 3\); found shape \(24,\)"),
        ("output_scale", -1.0, "a finite number >= 0; found -1"),
        ("output_scale", 0.0, "a positive number"),
        ("link", "softmax", "targets 'labels' for 'softmax'; found 'numbers'"),
        ("link", "logistic", "the map to the loss's own probabilities; found 'logistic'"),
    ],
)
def test_faults_are_named_with_their_method(name, method, message):
    loss = of_huber(name, method, HuberWithHessian if name == "hessian" else Huber)
    with pytest.raises((TypeError, ValueError), match=rf"^{name} of the loss 'Broken' must be .*{message}"):
        check_loss(loss)


def test_a_conjugate_that_is_right_at_gradients_alone_is_found():
    """At dual points between them the conjugate of the logistic loss is a sum over all outputs."""

    class Own(OfParent):
        parent, targets = LOSSES["binary-logistic"], "signs"

        def conjugate(self, y, G):
            return np.where(np.abs(G).sum(axis=1) == 0, -1.0, super().conjugate(y, G))

    with pytest.raises(ValueError, match=r"^conjugate of the loss 'Own' must be such that"):
        check_loss(Own())


def test_values_below_zero_are_found_wherever_they_are():
    """The Poisson loss is e^o - y o: below 0 near log y for y > e alone; linear beyond o = 3, so that it is smooth."""

    class Poisson(mopn.Loss):
        targets = "numbers"

        def smoothness(self, m):
            return float(np.exp(3.0))

        def value_gradient(self, y, O):
            means = np.exp(np.minimum(O, 3.0))
            return np.sum(means * (1.0 + O - np.minimum(O, 3.0)) - y * O, axis=1), means - y

        def conjugate(self, y, G):
            return np.sum(np.where(G + y > 0, (G + y) * (np.log(np.maximum(G + y, 1e-300)) - 1.0), 0.0), axis=1)

    check_loss(Poisson(), np.array([0.5, 1.0, 2.0]))
    with pytest.raises(ValueError, match=r"^value_gradient of the loss 'Poisson' must be values >= 0"):
        check_loss(Poisson(), np.array([0.5, 1.0, 2.0, 7.0]))


def test_links_are_the_probabilities_of_the_loss():
    class Hinge(OfParent):
        parent, targets, link = LOSSES["smoothed-hinge"], "labels", "softmax"

    with pytest.raises(ValueError, match=r"^link of the loss 'Hinge' must be"):
        check_loss(Hinge())


def test_diagonals_and_shift_invariance_of_hessians():
    class Other(Diagonal):
        diagonal = 0.0

        def __init__(self, h):
            self.h, self.diagonal = h, h + 1.0

        def product(self, Z):
            return self.h * Z

    class Shifting(Diagonal):
        shift_invariant = True

    for kind, message in ((Other, "a diagonal that fits"), (Shifting, "as it says shift_invariant")):
        loss = of_huber("hessian", lambda self, y, O, kind=kind: kind(1.0 * (np.abs(O - y) <= 1)), HuberWithHessian)
        with pytest.raises(ValueError, match=rf"^hessian of the loss 'Broken' must be .*{message}"):
            check_loss(loss)


def test_targets_that_a_loss_is_not_meant_for():
    check_loss(SoftLabels(), np.array([0.2, 0.7, 1.0]))
    with pytest.raises(ValueError, match="values >= 0"):
        check_loss(SoftLabels(), np.array([0.2, 0.7, 3.0]))
    with pytest.raises(ValueError, match="y contains NaN"):
        check_loss(SoftLabels(), np.array([0.2, np.nan]))
    with pytest.raises(TypeError, match=r"loss must be a mopn\.Loss, got 'squared'"):
        check_loss("squared")


PROBLEMS = {
    "NetworkProblem": lambda loss, y: mopn.NetworkProblem(X, y, loss=loss, strength=1.0),
    "OutputLayerProblem": lambda loss, y: mopn.OutputLayerProblem(X, y, loss=loss, strength=1.0),
    "FactorizationProblem": lambda loss, y: mopn.FactorizationProblem(X, y, loss=loss),
    "LiftedProblem": lambda loss, y: mopn.LiftedProblem(X, y, loss=loss),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problems_check_a_loss_of_ones_own(problem):
    with pytest.raises(ValueError, match=r"^value_gradient of the loss 'Broken' must be the derivative"):
        PROBLEMS[problem](of_huber("value_gradient", WRONG_SIGN), Y)


def test_problems_check_their_own_targets_and_built_in_losses_never(monkeypatch):
    checked, run = [], LossCheck.run
    monkeypatch.setattr(LossCheck, "run", lambda check: checked.append(check.loss) or run(check))
    first, second = Huber(), Huber()
    for loss in (first, "squared", first, second, LOSSES["squared"], mopn.Huber(3.0), mopn.Quantile(0.2)):
        mopn.NetworkProblem(X, Y, loss=loss, strength=1.0)
    mopn.NetworkProblem(X, np.arange(20) % 2, strength=1.0)
    # Once at fixed distances from the targets, and once in their unit.
    assert checked == [first, first, first, first, second, second]


def test_a_loss_that_failed_is_checked_again_in_the_same_way():
    broken, messages = of_huber("smoothness", lambda self, m: 0.0), set()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^smoothness of the loss 'Broken'"):
            mopn.NetworkProblem(X, Y, loss=broken, strength=1.0)
        with pytest.raises(ValueError, match="at least") as caught:
            check_loss(of_huber("smoothness", lambda self, m: 0.5))
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_own_classes_of_labels_with_many_classes():
    mopn.NetworkProblem(X, np.arange(20) % 10, loss=Sparsemax(), strength=1.0)

    class Half(OfParent):
        parent, targets, factor = LOSSES["logistic"], "labels", 0.5

    mopn.NetworkProblem(X, np.arange(20) % 10, loss=Half(), strength=1.0)

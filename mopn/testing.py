"""Checks for classes of your own."""

import math
from typing import Any

import numpy as np

from mopn.data.loss_checks import DIFFERENCE, ROUNDING, LossCheck
from mopn.data.validation import check_targets
from mopn.losses.hessians import Hessian
from mopn.losses.loss import LINKS
from mopn.losses.losses import Loss, get_loss
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.tools.checks import make_generator

__all__ = ["check_loss"]

# Length of wide steps of differences, in the unit of the outputs.
_WIDE_STEP = 1e-2
# Distance of far outputs, in the same unit.
_FAR_DISTANCE = 1e3
# Power iterations for the steepest direction of the gradient.
_POWER_STEPS = 6


def check_loss(loss: Loss, y: Any = None, rng: np.random.Generator | int | None = 0) -> None:
    """Check a loss against the contract of :class:`mopn.Loss`: shapes, gradient, convexity, conjugate and the rest.

    The check takes milliseconds. It finds mistakes, but is no proof; other seeds try other outputs. Bounds do not rest
    on it: they compare values, gradients and conjugates of all rows at their dual points.

    Parameters
    ----------
    loss : Loss
    y : array-like of shape (n,) or (n, m), optional
        For ``targets = "numbers"`` and ``"counts"``: typical targets. Default numbers between 0 and 1, or small counts.
    rng : Generator, int or None, default 0
        For the outputs.

    Raises
    ------
    TypeError
        For objects that are no loss, invalid declarations, or results of another type.
    ValueError
        Names the method, the value found and the expected one, for the first fault.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> class Absolute(mopn.Loss):
    ...     targets = "numbers"
    ...
    ...     def smoothness(self, m):
    ...         return 1.0
    ...
    ...     def value_gradient(self, y, O):
    ...         return np.abs(O - y).sum(axis=1), np.sign(O - y)
    ...
    ...     def conjugate(self, y, G):
    ...         return np.sum(G * y, axis=1)
    >>> mopn.testing.check_loss(Absolute())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: smoothness of the loss 'Absolute' must be a Lipschitz constant of the gradients, at least ...
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a mopn.Loss, got {loss!r}")
    rng = make_generator(rng)
    with np.errstate(all="ignore"):  # the checks find overflows
        loss = get_loss(loss)
        if loss.targets in ("labels", "signs"):
            y = None
        if y is not None:
            y, _, _ = check_targets(y, np.shape(y)[0], loss)
        for check in _FullCheck.of_targets(loss, y, rng):
            check.run()


class _FullCheck(LossCheck):
    """The check of everything that a loss defines."""

    def run(self) -> None:
        super().run()
        if math.isfinite(self.loss.smoothness(self.m)):
            self.lipschitz()
        self.fenchel()
        if self.loss.has_hessian:
            self.hessian()
        if self.loss.link is not None:
            self.link(self.loss.link)
        if self.loss.output_scale == 0.0:
            doubled, _ = self.value_gradient(2.0 * self.y, 2.0 * self.O)
            scales = np.allclose(doubled, 4.0 * self.values)
            self.require("output_scale", scales, "a positive number, as the loss does not scale with its targets", "0")

    def lipschitz(self) -> None:
        """Compare the constant with differences of gradients, also along their steepest direction."""
        constant = float(self.loss.smoothness(self.m))
        steps = [self.P - self.O]
        d = self.directions[0]
        for _ in range(_POWER_STEPS):
            step = self.unit * _WIDE_STEP * d
            steps.append(step)
            change = self._gradient_change(step)
            lengths = np.linalg.norm(change, axis=1, keepdims=True)
            d = np.where(lengths > 0, change / np.where(lengths > 0, lengths, 1.0), d)
        for step in steps:
            change = np.linalg.norm(self._gradient_change(step), axis=1)
            ratio = float(((change - 100.0 * EPS * self.size) / np.linalg.norm(step, axis=1)).max())
            right = ratio <= constant * (1.0 + ROUNDING) + ROUNDING
            expected = "a Lipschitz constant of the gradients, at least {:.6g}"
            self.require("smoothness", right, expected, "{1:.6g} for {2} outputs", ratio, constant, self.m)

    def _gradient_change(self, step: np.ndarray) -> np.ndarray:
        """Return the change (n, m) of the gradient by a step of the outputs."""
        _, gradient = self.value_gradient(self.y, self.O + step)
        return gradient - self.G

    def fenchel(self) -> None:
        """Check that l + l* = <o, g> for the gradient g at o, and >= at other dual points and outputs."""
        conjugates = self.conjugates(self.G)
        slopes = np.linalg.norm(self.G, axis=1)
        expected = np.einsum("ic,ic->i", self.O, self.G) - self.values
        sizes = np.abs(self.values) + np.abs(conjugates) + self.size * slopes + self.value_size
        right = np.abs(conjugates - expected) <= ROUNDING * sizes
        words = "<o, g> - l(o) = {:.6g} at the gradient g of the outputs o"
        self.require("conjugate", right, words, "{1:.6g}", expected, conjugates)
        for scale in (0.0, 0.5, 1.0):
            self._fenchels_inequality(scale * self.G)
        self.not_negative(-self.conjugates(0.0 * self.G), "{:.6g} as the least value, -l*(0)")

    def _fenchels_inequality(self, D: np.ndarray) -> None:
        """Check that Fenchel's inequality holds for dual points D and outputs near and far."""
        conjugates = self.conjugates(D)
        lengths = np.linalg.norm(D, axis=1)
        far = self.O + self.unit * _FAR_DISTANCE * D / np.where(lengths > 0, lengths, 1.0)[:, None]
        for outputs in (self.O, self.P, far):
            values = self.call("value", self.y, outputs)
            least = np.einsum("ic,ic->i", outputs, D) - values
            terms = (self.size + np.abs(outputs).sum(axis=1)) * (self.slope_unit + lengths) + self.value_size
            below = conjugates < least - ROUNDING * (np.abs(values) + np.abs(conjugates) + terms)
            words = "such that the conjugate is <o, g> - l(o) at least, {:.6g} for some outputs"
            self.require("conjugate", ~below, words, "a conjugate of {1:.6g}", least, conjugates)

    def hessian(self) -> None:
        """Compare products and diagonals with differences of gradients; no curvature is negative."""
        hessian = self.call("hessian", self.y, self.O)
        if not isinstance(hessian, Hessian):
            raise TypeError(self.message("hessian", "one of mopn.losses.hessians", f"{type(hessian).__name__}"))
        diagonal = self.array("hessian", np.asarray(hessian.diagonal), self.O.shape)
        allowed = DIFFERENCE * (min(self.loss.smoothness(self.m), float(diagonal.max())) + self.slope)
        along_outputs = [np.broadcast_to(e, self.O.shape) for e in np.eye(self.m)]
        for d in (*self.directions, *along_outputs):
            product = self.array("hessian", hessian.product(np.array(d)), self.O.shape)
            ahead = self._gradient_change(self.step * d) / self.step
            behind = self._gradient_change(-self.step * d) / -self.step
            # Second derivatives may jump on one side.
            errors = np.minimum(np.abs(product - ahead).max(axis=1), np.abs(product - behind).max(axis=1))
            words = "the derivative of the gradient, {} by differences"
            self.require("hessian", ~(errors > allowed), words, "{1}", ahead, product)
            curvature = np.einsum("ic,ic->i", product, d)
            right = ~(curvature < -ROUNDING * allowed)
            self.require("hessian", right, "positive semidefinite matrices", "a curvature of {:.6g}", curvature)

        columns = [hessian.product(d.copy())[:, c] for c, d in enumerate(along_outputs)]
        same = np.allclose(diagonal, np.stack(columns, axis=1), rtol=ROUNDING, atol=ROUNDING * allowed)
        self.require("hessian", same, "a diagonal that fits its products", "another diagonal")
        if hessian.shift_invariant:
            is_zero = np.abs(hessian.product(np.ones_like(self.O))).max() <= ROUNDING * allowed
            self.require(
                "hessian", is_zero, "products of zero with equal outputs, as it says shift_invariant", "others"
            )

    def link(self, link: str) -> None:
        """Check that the expected gradient at the probabilities of the link is zero."""
        fitting = {"softmax": ("labels",), "logistic": ("numbers", "signs"), "log": ("numbers", "counts")}[link]
        words = f"targets {' or '.join(map(repr, fitting))} for {link!r}"
        right = self.loss.targets in fitting
        self.require("link", right, words, f"{self.loss.targets!r}")
        P = LINKS[link](self.O)
        if link == "softmax":
            events = [(P[:, [c]], np.full(self.n, c)) for c in range(self.m)]
        elif link == "log":
            events = [(np.ones_like(P), P)]
        else:
            low = -1.0 if self.loss.targets == "signs" else 0.0
            events = [(1.0 - P, np.full(P.shape, low)), (P, np.ones(P.shape))]
        mean = sum(probability * self.value_gradient(y, self.O)[1] for probability, y in events)
        right = np.abs(mean).max() <= DIFFERENCE * max(self.slope, DIFFERENCE)
        words = f"None, or the map to the loss's own {'means' if link == 'log' else 'probabilities'}"
        self.require("link", right, words, f"{link!r}, whose are others")


def __dir__() -> list[str]:
    return __all__

"""The contract of a loss, checked in numbers on a few rows: what proofs and solvers take for granted about it."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from mopn.compiled.codes import CLIPPED
from mopn.data.validation import check_targets
from mopn.losses.hessians import Hessian
from mopn.losses.links import LINKS
from mopn.losses.losses import LOSSES, Clipped, Loss, get_loss, is_built_in
from mopn.solvers.tools.cached import cached_property
from mopn.solvers.tools.door import door
from mopn.solvers.tools.generators import make_generator

__all__ = ["check_loss", "check_own_loss", "check_sum_over_outputs"]

# Outputs are drawn at these distances from the targets, or from 0. Of given targets a few rows and outputs are taken,
# and they are scaled down to a size at which differences of outputs keep their digits.
_DISTANCES, _ROWS, _OUTPUTS, _LARGEST_TARGET = (0.3, 2.0, 10.0), 8, 3, 1e4
# Outputs are also drawn near these multiples of the targets: 0 is where every run begins.
_MULTIPLES = (0.0, 0.5, 2.0)
# Steps of differences of values and gradients, and of differences that need not be small; the far end of a ray: in the
# unit of the outputs.
_STEP, _WIDE_STEP, _FAR = 1e-6, 1e-2, 1e3
# Agreement of derivatives with differences, and of numbers that differ by rounding alone, relative.
_DIFFERENCE, _ROUNDING = 1e-4, 1e-8
_DIRECTIONS, _POWER_STEPS = 3, 6
_EPS = float(np.finfo(float).eps)
# The least size of values: formulas may cancel to rounding errors of numbers near 1.
_LEAST = 100.0 * _EPS / _ROUNDING

_NOT_NEGATIVE = "values >= 0, as proofs rely on it (add a constant)"


@door
def check_loss(loss: Loss, y: Any = None, rng: np.random.Generator | int | None = 0) -> None:
    """Check a loss against the contract of :class:`mopn.Loss`: shapes, gradient, convexity, conjugate, and all it has.

    Problems do so by themselves for losses that are not built in, with their own targets. The check takes
    milliseconds. It finds mistakes, but is no proof; other seeds try other outputs. Bounds do not rest on it: they
    compare values, gradients and conjugates of all rows at their own dual points.

    Parameters
    ----------
    loss : Loss
    y : array-like of shape (n,) or (n, m), optional
        For ``targets = "numbers"`` and ``"counts"``: targets that the loss is meant for. Default numbers between 0 and
        1, or small counts.
    rng : Generator, int or None, default 0
        Of the outputs that are tried; problems use the default, so that they refuse the same losses in every run.

    Raises
    ------
    TypeError
        For what is not a loss, declarations that are not valid, or results of another type.
    ValueError
        Names the method, what was found and what was expected: the first of several faults.

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
    >>> mopn.check_loss(Absolute())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: smoothness of the loss 'Absolute' must be a Lipschitz constant of the gradients, at least ...
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a mopn.Loss, got {loss!r}")
    rng = make_generator(rng)
    # What overflows is found by the numbers, without warnings.
    with np.errstate(all="ignore"):
        loss = get_loss(loss)
        y = None if y is None or loss.targets in ("labels", "signs") else check_targets(y, np.shape(y)[0], loss)[0]
        _Check(loss, y, rng).run()
        if y is not None and loss.targets == "numbers" and y.any():
            _Check(loss, y, rng, of_targets=True).run()


def check_own_loss(loss: Loss, y: np.ndarray) -> None:
    """Check a loss that is not built in, on targets like these."""
    if not is_built_in(loss):
        check_loss(loss, y)


def check_sum_over_outputs(loss: Loss, y: np.ndarray) -> None:
    """Check on a few rows of targets y (n, m) that a loss is the sum of what it is for each output alone."""
    y = y[:_ROWS]
    O = np.resize(_DISTANCES, y.shape) + (y if loss.targets == "numbers" else 0.0)  # noqa: E741
    values, G = loss.value_gradient(y, O)
    apart = [loss.value_gradient(y[:, [c]], O[:, [c]]) for c in range(y.shape[1])]
    slopes = np.hstack([slopes for _, slopes in apart])
    same = slopes.shape == G.shape and np.allclose(slopes, G)
    if not (same and np.allclose(sum(value for value, _ in apart), values)):
        raise ValueError(
            f"target_weight is for sums of losses per output; loss={loss.name!r} of several outputs is not the sum of "
            "what it is for each alone"
        )


class _Check:
    """The rows of one check: targets y (n,) or (n, m), outputs O (n, m), values (n,) and gradients G (n, m) there.

    Outputs are at some distances from the targets, or, ``of_targets``, as far from them as these are from 0 and from
    each other: a threshold of the loss, or a domain of the conjugate, may have their unit.
    """

    def __init__(self, loss: Loss, y: np.ndarray | None, rng: np.random.Generator, *, of_targets: bool = False) -> None:
        self.loss, self.of_targets = loss, of_targets
        self.y = self._targets(y, rng, math.inf if of_targets else _LARGEST_TARGET)
        self.n, self.m = len(self.y), _OUTPUTS if self.y.ndim == 1 else self.y.shape[1]
        self.unit = float(np.abs(self.y).max()) if of_targets else 1.0
        self.step = self.unit * _STEP
        distances = self._by_row((float(np.std(self.y)) or self.unit,) if of_targets else _DISTANCES)
        multiples = self._by_row(_MULTIPLES if of_targets else (1.0,))
        centre = multiples * self.y if loss.targets == "numbers" else np.zeros(1)
        self.O, self.P = (centre + distances * rng.standard_normal((self.n, self.m)) for _ in range(2))
        directions = rng.standard_normal((_DIRECTIONS, self.n, self.m))
        self.directions = directions / np.linalg.norm(directions, axis=2, keepdims=True)
        # Outputs are known to eps times this.
        self.size = self.unit + np.abs(self.O).sum(axis=1) + (0.0 if self.y.ndim == 1 else np.abs(self.y).sum(axis=1))

    def _by_row(self, values: tuple[float, ...]) -> np.ndarray:
        """Return as many rows (n, 1) of each value."""
        return np.resize(np.repeat(values, -(-self.n // len(values))), self.n)[:, None]

    def _targets(self, y: np.ndarray | None, rng: np.random.Generator, largest: float) -> np.ndarray:
        n = _ROWS * len(_DISTANCES)
        if self.loss.targets == "labels":
            return np.arange(n) % _OUTPUTS
        if self.loss.targets == "signs":
            return rng.choice([-1.0, 1.0], (n, _OUTPUTS))
        if y is None:
            shape = (n, _OUTPUTS)
            return (
                rng.poisson(2.0, shape).astype(float) if self.loss.targets == "counts" else rng.uniform(0.0, 1.0, shape)
            )
        rows = np.linspace(0, len(y) - 1, min(len(y), _ROWS)).astype(int)
        y = np.tile(y[rows, :_OUTPUTS], (len(_DISTANCES), 1))
        return y / max(1.0, float(np.abs(y).max()) / largest)

    def run(self) -> None:
        """Raise for the first fault."""
        self.values_and_gradients()
        self.rows_apart()
        self.sign()
        self.gradient()
        self.convexity()
        self.smoothness()
        self.conjugate()
        if self.loss.has_hessian:
            self.hessian()
        if self.loss.link is not None:
            self.link(self.loss.link)
        if self.loss.code is not None:
            self.code()
        self.own_unit()

    # -- value_gradient and value --------------------------------------------------------------------------------------

    def values_and_gradients(self) -> None:
        """See that all are finite numbers of the right shape, and that ``value`` agrees."""
        self.values, self.G = self._value_gradient(self.y, self.O)
        # In the unit of the targets slopes have one of their own, and values are known to eps times these.
        self.slope_unit = self._largest_slope if self.of_targets else 1.0
        self.value_size = self.size * self.slope_unit + _LEAST
        values = self._array("value", self._call("value", self.y, self.O), (self.n,))
        same = np.abs(values - self.values) <= _ROUNDING * (np.abs(self.values) + self.value_size)
        self._see("value", same, "the values of value_gradient", "{:.6g}, {:.6g}", values, self.values)

    def rows_apart(self) -> None:
        """See that rows do not depend on each other, nor on the memory order: sums are computed in parts."""
        part = slice(None, None, -2)
        found = self._value_gradient(self.y[part], np.asfortranarray(self.O[part]))
        expected = self.values[part], self.G[part]
        same = all(np.allclose(*pair, _ROUNDING, _ROUNDING) for pair in zip(found, expected, strict=True))
        self._see("value_gradient", same, "the same for a row whatever the others are", "rows that depend on others")

    def sign(self) -> None:
        """See that no value is below 0."""
        right = self.values >= -_ROUNDING * self.value_size
        self._see("value_gradient", right, _NOT_NEGATIVE, "{:.6g}", self.values)

    def gradient(self) -> None:
        """Compare the gradient with differences of the values."""
        allowed = _DIFFERENCE * self._largest_slope + 100.0 * _EPS * (self.values + self.value_size + 1.0) / self.step
        for d in self.directions:
            ahead, behind = (self._value_gradient(self.y, self.O + step * d)[0] for step in (self.step, -self.step))
            found, expected = np.einsum("ic,ic->i", self.G, d), (ahead - behind) / (2.0 * self.step)
            words = "the derivative of the values as gradient, {:.6g} along a direction by differences"
            right = np.abs(found - expected) <= allowed
            self._see("value_gradient", right, words, "{1:.6g} by the gradient", expected, found)

    def convexity(self) -> None:
        """See that values at midpoints are at most the mean."""
        ends = self._value_gradient(self.y, self.P)[0]
        middle = self._value_gradient(self.y, 0.5 * (self.O + self.P))[0]
        mean = 0.5 * (self.values + ends)
        right = middle <= mean + _ROUNDING * (np.abs(mean) + self.value_size)
        words = "a convex function of the outputs, at most {:.6g} between two points"
        self._see("value_gradient", right, words, "{1:.6g}", mean, middle)

    def smoothness(self) -> None:
        """Compare the constant with differences of gradients, over steps along their steepest direction too."""
        constant = self._number("smoothness", self.loss.smoothness(self.m))
        self._see("smoothness", constant > 0.0, "a number > 0", "{}", constant)
        if math.isinf(constant):
            self._see(
                "smoothness", self.loss.has_hessian, "finite, or inf for a loss with a hessian", "inf and no hessian"
            )
            return
        steps = [self.P - self.O]
        d = self.directions[0]
        for _ in range(_POWER_STEPS):
            steps.append(self.unit * _WIDE_STEP * d)
            change = self._value_gradient(self.y, self.O + steps[-1])[1] - self.G
            lengths = np.linalg.norm(change, axis=1, keepdims=True)
            d = np.where(lengths > 0, change / np.where(lengths > 0, lengths, 1.0), d)
        for step in steps:
            change = np.linalg.norm(self._value_gradient(self.y, self.O + step)[1] - self.G, axis=1)
            ratio = float(((change - 100.0 * _EPS * self.size) / np.linalg.norm(step, axis=1)).max())
            right, words = ratio <= constant * (1.0 + _ROUNDING) + _ROUNDING, "{1:.6g} for {2} outputs"
            expected = "a Lipschitz constant of the gradients, at least {:.6g}"
            self._see("smoothness", right, expected, words, ratio, constant, self.m)

    # -- the dual side -------------------------------------------------------------------------------------------------

    def conjugate(self) -> None:
        """L + l* = <o, g> where g is the gradient at o, and >= elsewhere."""
        conjugates = self._conjugate(self.G)
        expected = np.einsum("ic,ic->i", self.O, self.G) - self.values
        sizes = np.abs(self.values) + np.abs(conjugates) + self.size * self._slopes + self.value_size
        right = np.abs(conjugates - expected) <= _ROUNDING * sizes
        words = "<o, g> - l(o) = {:.6g} at the gradient g of the outputs o"
        self._see("conjugate", right, words, "{1:.6g}", expected, conjugates)
        for scale in (0.0, 0.5, 1.0):
            self._check_dual_points(scale * self.G)
        least = -self._conjugate(0.0 * self.G)
        right = least >= -_ROUNDING * self.value_size
        self._see("value_gradient", right, _NOT_NEGATIVE, "{:.6g} as the least value, -l*(0)", least)

    def _check_dual_points(self, D: np.ndarray) -> None:
        """See that Fenchel's inequality holds for dual points D and outputs near and far."""
        conjugates, lengths = self._conjugate(D), np.linalg.norm(D, axis=1)
        far = self.O + self.unit * _FAR * D / np.where(lengths > 0, lengths, 1.0)[:, None]
        for outputs in (self.O, self.P, far):
            # An infinite value satisfies it.
            values = self._call("value", self.y, outputs)
            least = np.einsum("ic,ic->i", outputs, D) - values
            terms = (self.size + np.abs(outputs).sum(axis=1)) * (self.slope_unit + lengths)
            below = conjugates < least - _ROUNDING * (np.abs(values) + np.abs(conjugates) + terms + _LEAST)
            words = "such that the conjugate is <o, g> - l(o) at least, {:.6g} for some outputs"
            self._see("conjugate", ~below, words, "a conjugate of {1:.6g}", least, conjugates)

    def _conjugate(self, D: np.ndarray) -> np.ndarray:
        """Return the conjugates (n,), which are finite at gradients and at multiples of them up to 1."""
        conjugates = self._array("conjugate", self._call("conjugate", self.y, D), (self.n,), finite=False)
        words = "such that the conjugate is finite"
        self._see("conjugate", np.isfinite(conjugates), words, "a conjugate of {}", conjugates)
        return conjugates

    # -- what is optional ----------------------------------------------------------------------------------------------

    def hessian(self) -> None:
        """Compare products and diagonals with differences of gradients; no curvature is negative."""
        hessian = self._call("hessian", self.y, self.O)
        if not isinstance(hessian, Hessian):
            raise TypeError(self._message("hessian", "one of mopn.losses.hessians", f"{type(hessian).__name__}"))
        diagonal = self._array("hessian", np.asarray(hessian.diagonal), self.O.shape)
        allowed = _DIFFERENCE * (min(self.loss.smoothness(self.m), float(diagonal.max())) + self._largest_slope)
        for d in (*self.directions, *(np.broadcast_to(e, self.O.shape) for e in np.eye(self.m))):
            product = self._array("hessian", hessian.product(np.array(d)), self.O.shape)
            ahead, behind = (
                (self._value_gradient(self.y, self.O + step * d)[1] - self.G) / step for step in (self.step, -self.step)
            )
            # One side is enough, as second derivatives may jump.
            errors = np.minimum(np.abs(product - ahead).max(axis=1), np.abs(product - behind).max(axis=1))
            words = "the derivative of the gradient, {} by differences"
            self._see("hessian", ~(errors > allowed), words, "{1}", ahead, product)
            along = np.einsum("ic,ic->i", product, d)
            right = ~(along < -_ROUNDING * allowed)
            self._see("hessian", right, "positive semidefinite matrices", "a curvature of {:.6g}", along)
        columns = [hessian.product(np.broadcast_to(e, self.O.shape).copy())[:, c] for c, e in enumerate(np.eye(self.m))]
        same = np.allclose(diagonal, np.stack(columns, axis=1), rtol=_ROUNDING, atol=_ROUNDING * allowed)
        self._see("hessian", same, "a diagonal that fits its products", "another diagonal")
        if hessian.shift_invariant:
            zero = np.abs(hessian.product(np.ones_like(self.O))).max() <= _ROUNDING * allowed
            self._see("hessian", zero, "products of zero with equal outputs, as it says shift_invariant", "others")

    def link(self, link: str) -> None:
        """See that the expected gradient at the probabilities is zero: then these are the loss's own."""
        fitting = {"softmax": ("labels",), "logistic": ("numbers", "signs"), "log": ("numbers", "counts")}[link]
        words, right = f"targets {' or '.join(map(repr, fitting))} for {link!r}", self.loss.targets in fitting
        self._see("link", right, words, f"{self.loss.targets!r}")
        P = LINKS[link](self.O)
        if link == "softmax":
            events = [(P[:, [c]], np.full(self.n, c)) for c in range(self.m)]
        elif link == "log":
            events = [(np.ones_like(P), P)]
        else:
            low = -1.0 if self.loss.targets == "signs" else 0.0
            events = [(1.0 - P, np.full(P.shape, low)), (P, np.ones(P.shape))]
        mean = sum(chance * self._value_gradient(y, self.O)[1] for chance, y in events)
        right = np.abs(mean).max() <= _DIFFERENCE * max(self._largest_slope, _DIFFERENCE)
        words = f"None, or the map to the loss's own {'means' if link == 'log' else 'probabilities'}"
        self._see("link", right, words, f"{link!r}, whose are others")

    def code(self) -> None:
        """Compare the gradient with that of the built-in loss of the same code, which compiled loops compute."""
        compiled = next(loss for loss in LOSSES.values() if loss.code == self.loss.code)
        if self.loss.code == CLIPPED:
            compiled = Clipped(*self.loss.code_parameters)
        same = np.allclose(self.G, compiled.value_gradient(self.y, self.O)[1], rtol=_ROUNDING, atol=_ROUNDING)
        self._see("code", same, f"None, or the gradient of the loss {compiled.name!r}", f"{self.loss.code}")

    def own_unit(self) -> None:
        """See that a loss without a unit is homogeneous of degree 2 in targets and outputs together."""
        unit = self._number("own_unit", self.loss.own_unit)
        self._see("own_unit", 0.0 <= unit < math.inf, "a finite number >= 0", "{}", unit)
        scales = unit > 0 or np.allclose(self._value_gradient(2.0 * self.y, 2.0 * self.O)[0], 4.0 * self.values)
        self._see("own_unit", scales, "a positive number, as the loss does not scale with its targets", "0")

    # -- calls and messages --------------------------------------------------------------------------------------------

    @cached_property
    def _slopes(self) -> np.ndarray:
        """Lengths of the gradients (n,)."""
        return np.linalg.norm(self.G, axis=1)

    @property
    def _largest_slope(self) -> float:
        return float(self._slopes.max())

    def _value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        result = self._call("value_gradient", y, O)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(self._message("value_gradient", "a tuple (values, gradients)", f"{type(result).__name__}"))
        values = self._array("value_gradient", result[0], (len(O),), "values")
        return values, self._array("value_gradient", result[1], O.shape, "gradients")

    def _call(self, method: str, *arrays: np.ndarray) -> Any:
        """Call a method with copies, and see that it leaves them alone."""
        copies = [array.copy(order="K") for array in arrays]
        result = getattr(self.loss, method)(*copies)
        same = all(map(np.array_equal, arrays, copies))
        self._see(method, same, "arguments that are left as they are", "changes in them")
        return result

    def _array(
        self, method: str, array: Any, shape: tuple[int, ...], words: str = "an array", *, finite: bool = True
    ) -> np.ndarray:
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            kind = f"{type(array).__name__}" + (f" of {array.dtype}" if isinstance(array, np.ndarray) else "")
            raise TypeError(self._message(method, f"{words} of floats, of shape {shape}", kind))
        self._see(method, array.shape == shape, f"{words} of shape {shape}", f"shape {array.shape}")
        self._see(method, not finite or np.isfinite(array).all(), f"{words} of finite numbers", "NaN or infinity")
        return array

    def _number(self, method: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(self._message(method, "a number", f"{value!r}"))
        return float(value)

    def _message(self, method: str, expected: str, found: str) -> str:
        return f"{method} of the loss {self.loss.name!r} must be {expected}; found {found}"

    def _see(self, method: str, right: Any, expected: str, found: str, *numbers: Any) -> None:
        """Refuse the loss if a condition does not hold; the words take the numbers of the first such row."""
        if not np.all(right):
            i = int(np.argmin(right))
            at = [number[i] if np.ndim(number) else number for number in numbers]
            raise ValueError(self._message(method, expected.format(*at), found.format(*at)))

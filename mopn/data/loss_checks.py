"""Checks of a loss on a few rows: of values, gradients and constants, which sums, bounds and solvers trust."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from mopn.losses.losses import Loss
from mopn.solvers.numerics.precision import EPS

# Distances of outputs from the targets, or from 0.
_DISTANCES = (0.3, 2.0, 10.0)
# Multiples of targets near which outputs lie: runs begin at 0.
_MULTIPLES = (0.0, 0.5, 2.0)
# Rows of given targets that are checked.
_ROWS = 8
# Outputs that are checked.
_OUTPUTS = 3
# Largest target; larger ones are scaled down, as differences of outputs need digits.
_LARGEST_TARGET = 1e4
# Step of differences, in the unit of the outputs.
_STEP = 1e-6
# Random directions of differences.
_DIRECTIONS = 3
# Relative agreement of derivatives with differences.
DIFFERENCE = 1e-4
# Relative agreement of numbers that differ by rounding errors alone.
ROUNDING = 1e-8
# Least size of values: formulas may cancel to rounding errors of numbers near 1.
_LEAST_VALUE_SIZE = 100.0 * EPS / ROUNDING


def check_user_loss(loss: Loss, y: np.ndarray) -> None:
    """Check a user's loss on a few of these targets."""
    with np.errstate(all="ignore"):
        for check in LossCheck.of_targets(loss, y):
            check.run()


class LossCheck:
    """Rows of one check: targets y, outputs O and P (n, m), and values (n,) and gradients G (n, m) at O."""

    def __init__(self, loss: Loss, y: np.ndarray | None, rng: np.random.Generator, *, scaled: bool = False) -> None:
        self.loss = loss
        self.scaled = scaled
        self.y = self._targets(y, rng, math.inf if scaled else _LARGEST_TARGET)
        self.n = len(self.y)
        self.m = _OUTPUTS if self.y.ndim == 1 else self.y.shape[1]
        self.unit = float(np.abs(self.y).max()) if scaled else 1.0
        self.step = self.unit * _STEP
        if scaled:
            distances = self._by_row((float(np.std(self.y)) or self.unit,))
            multiples = self._by_row(_MULTIPLES)
        else:
            distances = self._by_row(_DISTANCES)
            multiples = self._by_row((1.0,))
        centre = multiples * self.y if loss.targets == "numbers" else np.zeros(1)
        self.O = centre + distances * rng.standard_normal((self.n, self.m))
        self.P = centre + distances * rng.standard_normal((self.n, self.m))
        directions = rng.standard_normal((_DIRECTIONS, self.n, self.m))
        self.directions = directions / np.linalg.norm(directions, axis=2, keepdims=True)
        # Rounding errors of outputs are eps times this.
        size_of_targets = 0.0 if self.y.ndim == 1 else np.abs(self.y).sum(axis=1)
        self.size = self.unit + np.abs(self.O).sum(axis=1) + size_of_targets

    @classmethod
    def of_targets(cls, loss: Loss, y: np.ndarray | None, seed: Any = 0) -> list[LossCheck]:
        """Return the checks of a loss, with a second one in the unit of targets that are numbers."""
        rng = np.random.default_rng(seed)
        checks = [cls(loss, y, rng)]
        if y is not None and loss.targets == "numbers" and y.any():
            checks.append(cls(loss, y, rng, scaled=True))
        return checks

    def _by_row(self, values: tuple[float, ...]) -> np.ndarray:
        """Return a column (n, 1) with equal numbers of rows for each value."""
        rows_per_value = -(-self.n // len(values))
        return np.resize(np.repeat(values, rows_per_value), self.n)[:, None]

    def _targets(self, y: np.ndarray | None, rng: np.random.Generator, largest: float) -> np.ndarray:
        """Return targets to check: given ones, scaled down to ``largest``, or random ones."""
        n = _ROWS * len(_DISTANCES)
        if self.loss.targets == "labels":
            return np.arange(n) % _OUTPUTS
        if self.loss.targets == "signs":
            return rng.choice([-1.0, 1.0], (n, _OUTPUTS))
        if y is None and self.loss.targets == "counts":
            return rng.poisson(2.0, (n, _OUTPUTS)).astype(float)
        if y is None:
            return rng.uniform(0.0, 1.0, (n, _OUTPUTS))
        rows = np.linspace(0, len(y) - 1, min(len(y), _ROWS)).astype(int)
        y = np.tile(y[rows, :_OUTPUTS], (len(_DISTANCES), 1))
        return y / max(1.0, float(np.abs(y).max()) / largest)

    def run(self) -> None:
        """Run all checks; ``ValueError`` or ``TypeError`` at the first fault."""
        self.values_and_gradients()
        self.rows_apart()
        self.subgradients()
        self.numbers()

    def values_and_gradients(self) -> None:
        """Check that values and gradients are finite, of the right shapes, and agree with ``value``."""
        self.values, self.G = self.value_gradient(self.y, self.O)
        self.slope = float(np.linalg.norm(self.G, axis=1).max())
        self.slope_unit = self.slope if self.scaled else 1.0
        self.value_size = self.size * self.slope_unit + _LEAST_VALUE_SIZE
        values = self.array("value", self.call("value", self.y, self.O), (self.n,))
        same = np.abs(values - self.values) <= ROUNDING * (np.abs(self.values) + self.value_size)
        self.require("value", same, "the values of value_gradient", "{:.6g}, {:.6g}", values, self.values)
        self.not_negative(self.values, "{:.6g}")

    def not_negative(self, least: np.ndarray, found: str) -> None:
        """Check that values (n,), or lower bounds of them, are at least 0."""
        words = "values >= 0, as proofs rely on it (add a constant)"
        self.require("value_gradient", least >= -ROUNDING * self.value_size, words, found, least)

    def rows_apart(self) -> None:
        """Check that rows depend neither on each other nor on the order in memory, as sums are computed in parts."""
        part = slice(None, None, -2)
        found = self.value_gradient(self.y[part], np.asfortranarray(self.O[part]))
        values, gradients = found
        same_values = np.allclose(values, self.values[part], ROUNDING, ROUNDING)
        same = same_values and np.allclose(gradients, self.G[part], ROUNDING, ROUNDING)
        self.require("value_gradient", same, "the same for a row whatever the others are", "rows that depend on others")

    def subgradients(self) -> None:
        """Check that values are at least l(o) + <g, step>, near o, where g must be the derivative, and far from it."""
        derivative = "the derivative of the values as gradient, {:.6g} along a direction by differences"
        allowed = DIFFERENCE * self.slope + 100.0 * EPS * (self.values + self.value_size + 1.0) / self.step
        for d in self.directions:
            for sign in (1.0, -1.0):
                change, along = self._changes(sign * self.step * d)
                difference = sign * change / self.step
                slope = sign * along / self.step
                right = change >= along - self.step * allowed
                self.require("value_gradient", right, derivative, "{1:.6g} by the gradient", difference, slope)
        change, along = self._changes(self.P - self.O)
        allowed = ROUNDING * (np.abs(change) + np.abs(along) + self.values + self.value_size)
        words = "a convex function of the outputs, which changes by {:.6g} at least between two points"
        self.require("value_gradient", change >= along - allowed, words, "{1:.6g}", along, change)

    def _changes(self, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of the values by a step of the outputs, and the changes that the gradient predicts."""
        values = self.value_gradient(self.y, self.O + step)[0]
        return values - self.values, np.einsum("ic,ic->i", self.G, step)

    def numbers(self) -> None:
        """Check that constants and conjugates of gradients are finite numbers."""
        constant = self.number("smoothness", self.loss.smoothness(self.m))
        self.require("smoothness", constant > 0.0, "a number > 0", "{}", constant)
        right = math.isfinite(constant) or self.loss.has_hessian
        self.require("smoothness", right, "finite, or inf for a loss with a hessian", "inf and no hessian")
        scale = self.number("output_scale", self.loss.output_scale)
        self.require("output_scale", 0.0 <= scale < math.inf, "a finite number >= 0", "{}", scale)
        self.conjugates(self.G)

    def conjugates(self, D: np.ndarray) -> np.ndarray:
        """Return the conjugates (n,), which are finite at gradients and at multiples of them up to 1."""
        conjugates = self.array("conjugate", self.call("conjugate", self.y, D), (self.n,), finite=False)
        words = "such that the conjugate is finite"
        self.require("conjugate", np.isfinite(conjugates), words, "a conjugate of {}", conjugates)
        return conjugates

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        """Return the values (n,) and gradients (n, m) of the loss as finite floats."""
        result = self.call("value_gradient", y, O)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(self.message("value_gradient", "a tuple (values, gradients)", f"{type(result).__name__}"))
        values = self.array("value_gradient", result[0], (len(O),), "values")
        return values, self.array("value_gradient", result[1], O.shape, "gradients")

    def call(self, method: str, *arrays: np.ndarray) -> Any:
        """Call a method with copies, and check that it does not change them."""
        copies = [array.copy(order="K") for array in arrays]
        result = getattr(self.loss, method)(*copies)
        same = all(map(np.array_equal, arrays, copies))
        self.require(method, same, "arguments that are left as they are", "changes in them")
        return result

    def array(
        self, method: str, array: Any, shape: tuple[int, ...], words: str = "an array", *, finite: bool = True
    ) -> np.ndarray:
        """Return an array of floats of a shape, or raise."""
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            kind = type(array).__name__
            if isinstance(array, np.ndarray):
                kind += f" of {array.dtype}"
            raise TypeError(self.message(method, f"{words} of floats, of shape {shape}", kind))
        self.require(method, array.shape == shape, f"{words} of shape {shape}", f"shape {array.shape}")
        self.require(method, not finite or np.isfinite(array).all(), f"{words} of finite numbers", "NaN or infinity")
        return array

    def number(self, method: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(self.message(method, "a number", f"{value!r}"))
        return float(value)

    def message(self, method: str, expected: str, found: str) -> str:
        return f"{method} of the loss {self.loss.name!r} must be {expected}; found {found}"

    def require(self, method: str, right: Any, expected: str, found: str, *numbers: Any) -> None:
        """Raise ``ValueError`` if a condition does not hold; the words take the numbers of the first such row."""
        if not np.all(right):
            i = int(np.argmin(right))
            at = [number[i] if np.ndim(number) else number for number in numbers]
            raise ValueError(self.message(method, expected.format(*at), found.format(*at)))

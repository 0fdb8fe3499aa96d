"""Models of degree 2 in integers: parameters of 8 or 16 bits, sums of 32, and a bound of the resulting errors.

A unit is computed as ``Z = start + <U, y>``, ``f = min((min(|Z| >> r, 65535) ** 2) >> q, top)``, and an output as the
sum of ``V f >> p``, of a constant and of ``Z >> r`` for a linear form, in which a negative r is a shift to the left. y
are the features as integers and, if the formula has squares of features, ``t * t >> g``. Levels of outputs stay out of
the integers. :mod:`mopn.export.quantization` finds shifts and parameters from data, docs/mathematics.md the bound.
An input i of C stands for ``x = (i + zero) 2^-bits``; small whole numbers among
large ones are shifted to the left, ``t = i 2^shift``, so that the parameters of both have digits in a common scale.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mopn.data.designs import DenseDesign
from mopn.export.agreement import Agreement, agreement
from mopn.models.formula import Formula, dense_rows
from mopn.models.quadratic import Quadratic
from mopn.solvers.numerics.precision import proven_upper
from mopn.solvers.tools.decorators import quiet
from mopn.solvers.tools.display import Displayed

# Bits of features: at most int16's without the sign; fewer than 5 lose too much.
_MOST_BITS = np.iinfo(np.int16).bits - 1
_FEWEST_BITS = 5
# Features are shifted if that gains so many steps of parameters.
_WORTH = 4.0
# Of |Z| >> r, whose square has 32 bits without a sign.
LARGEST_SIZE = int(np.iinfo(np.uint16).max)
_TYPES = ("uint8", "int8", "int16")


@dataclass(frozen=True)
class InputIntegers:
    """The features as integers that C takes: nearest to ``x * 2 ** bits``, minus ``zero`` (d,).

    Both are 0 where X had whole numbers. Inputs are shifted to the left by ``shifts`` (d,) and clamped; squares of
    features are features, too, ``with_squares``, shifted to the right by ``square_shift``.
    """

    dtype: str
    bits: np.ndarray
    zero: np.ndarray
    shifts: np.ndarray
    lowest: int
    highest: int
    with_squares: bool
    square_shift: int

    def clamped(self, X: np.ndarray) -> np.ndarray:
        """Return which rows (n,) of features X (n, d) have numbers beyond the ranges, which are clamped."""
        unclipped = np.ldexp(np.rint(np.ldexp(X, self.bits)) - self.zero, self.shifts)
        return ((unclipped < self.lowest) | (unclipped > self.highest)).any(axis=1)

    def integers(self, X: np.ndarray) -> np.ndarray:
        """Return the inputs (n, d) of features (n, d) as int64; numbers beyond the type become its ends."""
        ends = np.iinfo(self.dtype)
        return np.clip(np.rint(np.ldexp(X, self.bits)) - self.zero, ends.min, ends.max).astype(np.int64)

    def features(self, integers: np.ndarray) -> np.ndarray:
        """Return y (n, D) of inputs: shifted and clamped, and their squares."""
        t = np.clip(integers << self.shifts, self.lowest, self.highest)
        return np.hstack([t, t * t >> self.square_shift]) if self.with_squares else t

    def exact_features(self, X: np.ndarray) -> np.ndarray:
        """Return the real numbers (n, D) that y stands for."""
        tau = np.ldexp(np.ldexp(X, self.bits) - self.zero, self.shifts)
        return np.hstack([tau, np.ldexp(tau * tau, -self.square_shift)]) if self.with_squares else tau

    @property
    def ends(self) -> np.ndarray:
        """The smallest and the largest y, (2, D)."""
        ends = np.repeat([[self.lowest], [self.highest]], len(self.bits), axis=1)
        squares = [[0], [max(self.highest, -self.lowest) ** 2 >> self.square_shift]]
        return np.hstack([ends, np.broadcast_to(squares, ends.shape)]) if self.with_squares else ends

    def rewritten(self, outputs: Quadratic) -> Quadratic:
        """Return the outputs as functions of the features t, where x = scale t + origin."""
        scale, origin = np.ldexp(1.0, -self.bits - self.shifts), np.ldexp(self.zero.astype(float), -self.bits)
        linear, squares = outputs.linear, outputs.squares
        return Quadratic(
            outputs.constant + linear @ origin + (squares * origin) @ origin,
            (linear + 2.0 * squares * origin) * scale,
            squares * scale * scale,
            outputs.factors * scale,
            outputs.biases + outputs.factors @ origin,
            outputs.weights,
        )


def choose_inputs(outputs: Quadratic, X: np.ndarray, room: int) -> InputIntegers:
    """Return the inputs for rows X (n, d); ``ValueError`` if a sum of features needs more than ``room`` bits."""
    d, with_squares = X.shape[1], bool(outputs.squares.any())
    most = min(_MOST_BITS, room - int(np.ceil(np.log2(d * (1 + with_squares)))))
    if most < _FEWEST_BITS:
        raise ValueError(
            f"32 bits cannot hold the sums of {d} features of {_FEWEST_BITS} bits; use arithmetic='float', or "
            "dtype='int8', or fewer features"
        )
    top = (1 << most) - 1
    lowest, highest = X.min(axis=0), X.max(axis=0)
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    whole = (np.rint(X) == X).all(axis=0) & (largest <= top)
    center = lowest + 0.5 * (highest - lowest)
    # A feature that hardly varies has steps that are no finer than 2^-15 of it, so that ``zero`` has 32 bits.
    half = np.where(whole, 1.0, np.maximum(0.5 * highest - 0.5 * lowest, np.abs(center) * 2.0**-_MOST_BITS))
    bits = np.where(whole, 0, np.floor(np.log2((top - 1) / half))).astype(int)
    zero = np.where(whole, 0.0, np.rint(np.ldexp(center, bits))).astype(np.int64)
    size = np.where(whole, largest, top)
    inputs = InputIntegers("int16", bits, zero, _shifts(outputs, bits, size), 0, 0, with_squares, 0)
    integers = inputs.integers(X)
    t = integers << inputs.shifts
    held = [np.iinfo(name).min <= integers.min() and integers.max() <= np.iinfo(name).max for name in _TYPES]
    square_bits = 2 * int(np.abs(t).max()).bit_length()
    return replace(
        inputs,
        dtype=_TYPES[held.index(True)],
        lowest=int(t.min()),
        highest=int(t.max()),
        square_shift=max(square_bits - most, 0) if with_squares else 0,
    )


def _shifts(outputs: Quadratic, bits: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return shifts (d,) to the left that make the parameters of features more alike, for inputs up to ``size``."""
    rows = np.vstack([outputs.linear, outputs.factors[0]]) * np.ldexp(1.0, -bits)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    columns = (np.abs(rows) / np.where(largest > 0.0, largest, 1.0)).mean(axis=0)
    free = np.floor(np.log2(size.max() / np.maximum(size, 1.0))) if size.max() >= 1.0 else np.zeros(len(size))
    best = (columns * 2.0**-free).max()
    if best <= 0.0 or best * _WORTH >= columns.max():
        return np.zeros(len(size), int)
    needed = np.ceil(np.log2(np.maximum(columns, best) / best))
    return np.minimum(needed, free).astype(int)


@dataclass(frozen=True)
class Forms:
    """Linear forms ``Z = start + <U, y>`` of integers, for ``U`` (F, D) and ``start`` (F,), both int64.

    ``exact`` and ``exact_start`` are the real numbers before rounding. ``center`` and ``center_error`` (D,) are means
    over the data of y, and of its difference from the exact features.
    """

    U: np.ndarray
    start: np.ndarray
    exact: np.ndarray
    exact_start: np.ndarray
    center: np.ndarray
    center_error: np.ndarray

    def values(self, y: np.ndarray) -> np.ndarray:
        return y @ self.U.T + self.start

    def exact_values(self, eta: np.ndarray) -> np.ndarray:
        """Return the real numbers (n, F) of features eta (n, D)."""
        return eta @ self.exact.T + self.exact_start

    def errors(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Return bounds (n, F) of |Z - z|."""
        D = self.U - self.exact
        rest = np.abs(self.start - self.exact_start + D @ self.center + self.exact @ self.center_error)
        inputs = np.abs(y - eta - self.center_error) @ np.abs(self.exact).T
        return np.abs(y - self.center) @ np.abs(D).T + inputs + rest

    def largest(self, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
        """Return the largest |Z| (F,) for y in a box."""
        ends = self.U * lowest, self.U * highest
        low, high = (function(*ends).sum(axis=1) + self.start for function in (np.minimum, np.maximum))
        return np.maximum(np.abs(low), np.abs(high))


@dataclass(frozen=True, eq=False, repr=False)
class IntegerModel(Displayed):
    """A model of degree 2 in integers, bit for bit as in its C header, by :func:`mopn.export.to_c`.

    Attributes
    ----------
    dtype : {"int8", "int16"}
        The type of the parameters.
    exponents, levels : ndarray of shape (m,)
        Output c is its integer times ``2 ** -exponents[c]``, plus ``levels[c]``. Classes take one of each.
    agreement : Agreement
        With the outputs and classes of the model, for the rows from which the ranges were taken.
    inputs : InputIntegers
        The features as integers; :meth:`c_inputs` returns those of rows.
    forms : Forms
        The F linear forms: of k units, then of m outputs if they have linear terms.
    shifts, square_shifts, product_shifts : ndarray of shape (F,), (k,) and (k,)
        To the right: of the values of forms, of the squares of units, and of units times their weights. Of linear forms
        negative ones are to the left.
    top : int
        The largest value of a unit.
    V, constant : ndarray of shape (k, m), and (m,)
        Weights of the units, and constants of the outputs, as integers; ``exact_V`` is V before rounding.
    model : Model or FactorizationModel
        The model in floats; ``formula`` is its formula for features as integers, without the levels and in steps of
        the outputs' common exponent, ``2 ** -exponent``.
    center, center_error : ndarray of shape (k,)
        Means over the data of the values of units, and of the exact values minus these.
    """

    model: Any
    dtype: str
    inputs: InputIntegers
    formula: Formula
    forms: Forms
    shifts: np.ndarray
    square_shifts: np.ndarray
    top: int
    V: np.ndarray
    exact_V: np.ndarray
    constant: np.ndarray
    exponent: int
    exponents: np.ndarray
    levels: np.ndarray
    product_shifts: np.ndarray
    center: np.ndarray
    center_error: np.ndarray
    agreement: Agreement

    def _entries(self) -> dict[str, str]:
        return {"dtype": self.dtype, "agreement": str(self.agreement)}

    def c_inputs(self, X: Any) -> np.ndarray:
        """Return rows X (n, d) as the functions in C take them: integers of the type ``model_input``, (n, d)."""
        return self.inputs.integers(self._rows(X)).astype(self.inputs.dtype)

    def integer_outputs(self, X: Any) -> np.ndarray:
        """Return the outputs (n, m) as integers, as the function ``outputs`` in C, with numbers clamped."""
        return self._integer_outputs(self.inputs.integers(self._rows(X)))

    @quiet()
    def outputs(self, X: Any) -> np.ndarray:
        return np.ldexp(self.integer_outputs(X).astype(np.float64), -self.exponents) + self.levels

    def predict(self, X: Any) -> np.ndarray:
        """Return the model's predictions from these outputs: labels, indicators or numbers."""
        return self.model._predictions(self.outputs(X))

    @quiet()
    def agree(self, X: Any) -> Agreement:
        """Return how outputs and classes of any rows X (n, d) agree with the model."""
        X = self._rows(X)
        return agreement(self.model, self.model.outputs(X), self.outputs(X), self.bounds(X), self.inputs.clamped(X))

    @quiet()
    def bounds(self, X: Any) -> np.ndarray:
        """Return bounds (n, m) of the errors of the outputs, rounding included; inf far out of the ranges."""
        return proven_upper(self._bounds(self._rows(X)))

    def _bounds(self, X: np.ndarray) -> np.ndarray:
        y, eta = self.inputs.features(self.inputs.integers(X)), self.inputs.exact_features(X)
        Z, z, e = self.forms.values(y), self.forms.exact_values(eta), self.forms.errors(y, eta)
        k = len(self.V)
        f, phi = self._units(Z), squares(z[:, :k], self.shifts[:k], self.square_shifts)
        # |Z| >> r is between |z| 2^-r - e - 1 and |z| 2^-r + e; its square is cut off in the same way.
        size, error = (np.ldexp(a[:, :k], -self.shifts[:k]) for a in (np.abs(z), e))
        least = np.clip(size - error - 1.0, 0.0, LARGEST_SIZE)
        low = np.minimum(np.ldexp(least**2, -self.square_shifts) - 1.0, self.top)
        high = np.ldexp((size + error) ** 2, -self.square_shifts)
        unit_errors = np.maximum(np.abs(low - phi + self.center_error), np.abs(high - phi + self.center_error))
        step = np.ldexp(1.0, -self.product_shifts)[:, None]
        D, weights = (self.V - self.exact_V) * step, self.exact_V * step
        bound = np.abs(f - self.center) @ np.abs(D) + unit_errors @ np.abs(weights)
        exact_constant = np.ldexp(self.formula.constant, self.exponent)
        bound += np.abs(self.constant - exact_constant + self.center @ D - self.center_error @ weights)
        # Each shifted product is off by less than a step.
        bound += np.count_nonzero(self.product_shifts)
        if len(self.shifts) > k:
            bound += np.ldexp(e[:, k:], -self.shifts[k:]) + (self.shifts[k:] > 0)
        return np.ldexp(bound, -self.exponents) * (1.0 + 1e-9) + self._rounding(X, eta)

    def _rows(self, X: Any) -> np.ndarray:
        return dense_rows(self.model._design(X))

    def _integer_outputs(self, integers: np.ndarray) -> np.ndarray:
        Z, k = self.forms.values(self.inputs.features(integers)), len(self.V)
        out = weighted(self._units(Z), self.V, self.product_shifts) + self.constant
        return out + shifted(Z[:, k:], self.shifts[k:]) if len(self.shifts) > k else out

    def _units(self, Z: np.ndarray) -> np.ndarray:
        k = len(self.V)
        sizes = np.minimum(np.abs(Z[:, :k]) >> self.shifts[:k], LARGEST_SIZE)
        return np.minimum(sizes**2 >> self.square_shifts, self.top)

    def _rounding(self, X: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Return bounds (n, m) of the rounding errors of floats: in the model, and in the numbers compared with it."""
        steps = 4.0 * (X.shape[1] + len(self.V) + 16) * np.finfo(float).eps
        size = Quadratic.of(self.model._formula()).formula().mapped(np.abs).outputs(DenseDesign(np.abs(X)))
        scaled = self.formula.mapped(np.abs).outputs(DenseDesign(np.abs(eta[:, : X.shape[1]])))
        size += np.ldexp(scaled, self.exponent - self.exponents) + np.abs(self.levels)
        return steps * size


def squares(z: np.ndarray, shifts: np.ndarray, square_shifts: np.ndarray) -> np.ndarray:
    """Return the real numbers that integers f stand for."""
    return np.ldexp(z * z, -2 * shifts - square_shifts)


def shifted(Z: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return Z / 2^shifts, rounded towards 0; negative shifts are to the left."""
    right, left = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    return (np.sign(Z) * (np.abs(Z) >> right)) << left


def weighted(units: np.ndarray, V: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return the sums (n, m) of units (n, k) times weights (k, m), each product shifted to the right."""
    if not shifts.any():
        return units @ V
    return np.stack([shifted(units * v, shifts).sum(axis=1) for v in V.T], axis=1)

"""Models of degree 2 in integers: parameters of 8 or 16 bits, sums of 32, and a bound of the resulting errors.

A unit is computed as ``Z = start + <U, y>``, ``f = min((min(|Z| >> r, 65535) ** 2) >> q, top)``, and an output as the
sum of ``V f >> p``, of a constant and of ``Z >> r`` for a linear form, in which a negative r is a shift to the left. y
are the features as integers and, if the formula has squares of features, ``t * t >> g``. Levels of outputs stay out of
the integers. :mod:`mopn.export.quantization` finds shifts and parameters from data; docs/mathematics.md derives the
bound. An input i of C stands for ``x = (i + zero) 2^-bits``. Small whole numbers among large ones are shifted to the
left, ``t = i 2^shift``, so that the parameters of both keep digits in a common scale.
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

# Bits of a feature without its sign, at most: C reads features as int16.
_MAX_FEATURE_BITS = np.iinfo(np.int16).bits - 1
# Bits of a feature, at least: fewer lose too much.
_MIN_FEATURE_BITS = 5
# Features are shifted only if the parameters gain this factor: each shift costs cycles in C.
_MIN_GAIN_OF_SHIFTS = 4.0
# The largest |Z| >> r: its square fills 32 bits without a sign.
LARGEST_SIZE = int(np.iinfo(np.uint16).max)
# Types of inputs in C, the preferred one first.
_INPUT_TYPES = ("uint8", "int8", "int16")


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
        if not self.with_squares:
            return t
        return np.hstack([t, t * t >> self.square_shift])

    def exact_features(self, X: np.ndarray) -> np.ndarray:
        """Return the real numbers (n, D) that y stands for."""
        tau = np.ldexp(np.ldexp(X, self.bits) - self.zero, self.shifts)
        if not self.with_squares:
            return tau
        return np.hstack([tau, np.ldexp(tau * tau, -self.square_shift)])

    @property
    def ends(self) -> np.ndarray:
        """The smallest and the largest y, (2, D)."""
        ends = np.repeat([[self.lowest], [self.highest]], len(self.bits), axis=1)
        if not self.with_squares:
            return ends
        largest_square = max(self.highest, -self.lowest) ** 2 >> self.square_shift
        return np.hstack([ends, np.broadcast_to([[0], [largest_square]], ends.shape)])

    def rewritten(self, outputs: Quadratic) -> Quadratic:
        """Return the outputs as functions of the features t, where x = scale t + origin."""
        scale = np.ldexp(1.0, -self.bits - self.shifts)
        origin = np.ldexp(self.zero.astype(float), -self.bits)
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
    d = X.shape[1]
    with_squares = bool(outputs.squares.any())
    summands = d * (1 + with_squares)
    feature_bits = min(_MAX_FEATURE_BITS, room - int(np.ceil(np.log2(summands))))
    if feature_bits < _MIN_FEATURE_BITS:
        raise ValueError(
            f"32 bits cannot hold the sums of {d} features of {_MIN_FEATURE_BITS} bits; use arithmetic='float', or "
            "dtype='int8', or fewer features"
        )
    top = (1 << feature_bits) - 1
    lowest = X.min(axis=0)
    highest = X.max(axis=0)
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    whole = (np.rint(X) == X).all(axis=0) & (largest <= top)
    center = lowest + 0.5 * (highest - lowest)
    # The steps of a feature that hardly varies are no finer than 2^-15 of it, so that ``zero`` fits in 32 bits.
    finest = np.abs(center) * 2.0**-_MAX_FEATURE_BITS
    half_range = np.where(whole, 1.0, np.maximum(0.5 * highest - 0.5 * lowest, finest))
    bits = np.where(whole, 0, np.floor(np.log2((top - 1) / half_range))).astype(int)
    zero = np.where(whole, 0.0, np.rint(np.ldexp(center, bits))).astype(np.int64)
    size = np.where(whole, largest, top)
    inputs = InputIntegers("int16", bits, zero, _shifts(outputs, bits, size), 0, 0, with_squares, 0)
    integers = inputs.integers(X)
    t = integers << inputs.shifts
    square_bits = 2 * int(np.abs(t).max()).bit_length()
    return replace(
        inputs,
        dtype=_smallest_type(integers),
        lowest=int(t.min()),
        highest=int(t.max()),
        square_shift=max(square_bits - feature_bits, 0) if with_squares else 0,
    )


def _smallest_type(integers: np.ndarray) -> str:
    lowest = integers.min()
    highest = integers.max()
    return next(name for name in _INPUT_TYPES if np.iinfo(name).min <= lowest and highest <= np.iinfo(name).max)


def _shifts(outputs: Quadratic, bits: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return shifts (d,) to the left that make the parameters of features more alike, for inputs up to ``size``."""
    parameters = np.abs(np.vstack([outputs.linear, outputs.factors[0]]) * np.ldexp(1.0, -bits))
    largest = parameters.max(axis=1, keepdims=True)
    # The mean share of each feature in the largest parameter of a form.
    shares = (parameters / np.where(largest > 0.0, largest, 1.0)).mean(axis=0)
    free = np.zeros(len(size))
    if size.max() >= 1.0:
        free = np.floor(np.log2(size.max() / np.maximum(size, 1.0)))
    least = (shares * 2.0**-free).max()
    if least <= 0.0 or least * _MIN_GAIN_OF_SHIFTS >= shares.max():
        return np.zeros(len(size), int)
    needed = np.ceil(np.log2(np.maximum(shares, least) / least))
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
        at_lowest = self.U * lowest
        at_highest = self.U * highest
        low = np.minimum(at_lowest, at_highest).sum(axis=1) + self.start
        high = np.maximum(at_lowest, at_highest).sum(axis=1) + self.start
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
        The features as integers; :meth:`c_inputs` returns them for given rows.
    forms : Forms
        The F linear forms: one for each of k units, then one for each of m outputs if they have linear terms.
    shifts, square_shifts, product_shifts : ndarray of shape (F,), (k,) and (k,)
        Shifts to the right: of the values of forms, of the squares of units, and of units times their weights.
        Negative shifts of linear forms are to the left.
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
        return self.outputs_of_inputs(self.inputs.integers(self._rows(X)))

    @quiet()
    def outputs(self, X: Any) -> np.ndarray:
        return np.ldexp(self.integer_outputs(X).astype(np.float64), -self.exponents) + self.levels

    def predict(self, X: Any) -> np.ndarray:
        """Return the model's predictions from these outputs: labels, indicators or numbers."""
        return self.model.predictions_of(self.outputs(X))

    @quiet()
    def agree(self, X: Any) -> Agreement:
        """Return how outputs and classes of any rows X (n, d) agree with the model."""
        X = self._rows(X)
        exact = self.model.outputs(X)
        return agreement(self.model, exact, self.outputs(X), self.bounds(X), self.inputs.clamped(X))

    @quiet()
    def bounds(self, X: Any) -> np.ndarray:
        """Return bounds (n, m) of the errors of the outputs, rounding included; inf far out of the ranges."""
        return proven_upper(self._bounds(self._rows(X)))

    def _bounds(self, X: np.ndarray) -> np.ndarray:
        """Return bounds (n, m) of the errors of the outputs; docs/mathematics.md derives them, with these letters."""
        k = len(self.V)
        y = self.inputs.features(self.inputs.integers(X))
        eta = self.inputs.exact_features(X)
        e = self.forms.errors(y, eta)
        f = self._units(self.forms.values(y))
        unit_errors = self._unit_errors(self.forms.exact_values(eta)[:, :k], e[:, :k])
        step = np.ldexp(1.0, -self.product_shifts)[:, None]
        D = (self.V - self.exact_V) * step
        weights = self.exact_V * step
        bound = np.abs(f - self.center) @ np.abs(D) + unit_errors @ np.abs(weights)
        exact_constant = np.ldexp(self.formula.constant, self.exponent)
        bound += np.abs(self.constant - exact_constant + self.center @ D - self.center_error @ weights)
        # Each shifted product is off by less than a step.
        bound += np.count_nonzero(self.product_shifts)
        if len(self.shifts) > k:
            bound += np.ldexp(e[:, k:], -self.shifts[k:]) + (self.shifts[k:] > 0)
        return np.ldexp(bound, -self.exponents) * (1.0 + 1e-9) + self._rounding(X, eta)

    def _unit_errors(self, z: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Return bounds (n, k) of the errors of units, less their means, by exact forms (n, k) and their errors."""
        k = len(self.V)
        phi = squares(z, self.shifts[:k], self.square_shifts)
        # |Z| >> r is between |z| 2^-r - e - 1 and |z| 2^-r + e; its square is cut off in the same way.
        size = np.ldexp(np.abs(z), -self.shifts[:k])
        error = np.ldexp(errors, -self.shifts[:k])
        least = np.clip(size - error - 1.0, 0.0, LARGEST_SIZE)
        low = np.minimum(np.ldexp(least**2, -self.square_shifts) - 1.0, self.top)
        high = np.ldexp((size + error) ** 2, -self.square_shifts)
        return np.maximum(np.abs(low - phi + self.center_error), np.abs(high - phi + self.center_error))

    def _rows(self, X: Any) -> np.ndarray:
        return dense_rows(self.model.design(X))

    def outputs_of_inputs(self, integers: np.ndarray) -> np.ndarray:
        """Return the outputs (n, m) as integers, for inputs (n, d) as C takes them but in int64."""
        k = len(self.V)
        Z = self.forms.values(self.inputs.features(integers))
        out = weighted(self._units(Z), self.V, self.product_shifts) + self.constant
        if len(self.shifts) > k:
            out = out + shifted(Z[:, k:], self.shifts[k:])
        return out

    def _units(self, Z: np.ndarray) -> np.ndarray:
        """Return the values (n, k) of the units, from the forms Z (n, F)."""
        k = len(self.V)
        sizes = np.minimum(np.abs(Z[:, :k]) >> self.shifts[:k], LARGEST_SIZE)
        return np.minimum(sizes**2 >> self.square_shifts, self.top)

    def _rounding(self, X: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Return bounds (n, m) of the rounding errors of floats: in the model, and in the numbers compared with it."""
        steps = 4.0 * (X.shape[1] + len(self.V) + 16) * np.finfo(float).eps
        quadratic = Quadratic.of(self.model.formula()).formula()
        size = quadratic.mapped(np.abs).outputs(DenseDesign(np.abs(X)))
        scaled = self.formula.mapped(np.abs).outputs(DenseDesign(np.abs(eta[:, : X.shape[1]])))
        size += np.ldexp(scaled, self.exponent - self.exponents) + np.abs(self.levels)
        return steps * size


def squares(z: np.ndarray, shifts: np.ndarray, square_shifts: np.ndarray) -> np.ndarray:
    """Return the real numbers that integers f stand for."""
    return np.ldexp(z * z, -2 * shifts - square_shifts)


def shifted(Z: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return Z / 2^shifts, rounded towards 0; negative shifts are to the left."""
    right = np.maximum(shifts, 0)
    left = np.maximum(-shifts, 0)
    return (np.sign(Z) * (np.abs(Z) >> right)) << left


def weighted(units: np.ndarray, V: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return the sums (n, m) of units (n, k) times weights (k, m), each product shifted to the right."""
    if not shifts.any():
        return units @ V
    return np.stack([shifted(units * v, shifts).sum(axis=1) for v in V.T], axis=1)

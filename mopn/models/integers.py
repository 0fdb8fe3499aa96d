"""Models of degree 2 in integers: parameters of 8 or 16 bits, sums of 32, and a bound of what that changes.

A unit is computed as ``Z = start + <U, y>``, ``f = min(((|Z| >> r) ** 2) >> q, top)``, and an output as the sum of
``V f``, of a constant and of ``Z >> r`` for a linear form. y are the features as integers and, if the formula has
squares of features, ``t * t >> g``. Shifts are chosen per unit from the ranges of data; no sum of integers can leave 32
bits, whatever the row. Roundings of parameters are centred: the mean error of every sum over the data is taken off its
start, so that what remains depends on how far a row is from the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mopn.data.designs import DenseDesign
from mopn.models.formula import Formula
from mopn.models.games import dense_rows
from mopn.models.input_integers import InputIntegers, choose_inputs
from mopn.models.quadratic import quadratic_formula
from mopn.solvers.tools.checks import choice
from mopn.solvers.tools.display import Displayed

__all__ = ["Agreement", "IntegerModel", "quantize"]

# The largest parameters of forms, the largest weights of units, and bits of them that sums always have room for. More
# bits of weights would leave fewer for the units that they multiply.
_PARAMETERS, _WEIGHTS, _ROOM = {"int8": 127, "int16": 32767}, {"int8": 127, "int16": 4095}, {"int8": 7, "int16": 12}
_LARGEST = np.iinfo(np.int32).max
# Bits of |Z| >> r, whose square has 32 bits without a sign, and the longest shift.
_SIZE_BITS, _LONGEST = 16, 31
# Rows may have squares that are so many times those of the data before they are cut off.
_MARGIN = 4
# Of exponents of 2 of the outputs: those that float64 has, with room for sums.
_EXPONENTS = 960


@dataclass(frozen=True)
class Agreement:
    """How integers agree with floats on some rows.

    Attributes
    ----------
    rows : int
    bound : float
        A proven bound of the error of every output of these rows.
    error : float
        The largest error that was found.
    may_change : int or None
        Rows whose class the bound does not exclude to change; None if the model predicts no classes.
    changed : int or None
        Rows whose class was found to change.
    """

    rows: int
    bound: float
    error: float
    may_change: int | None
    changed: int | None

    def __str__(self) -> str:
        text = f"outputs of {self.rows:,} rows are off by at most {self.bound:.2g} (proven), {self.error:.2g} (found)"
        if self.may_change is None:
            return text
        return f"{text}; at most {self.may_change:,} of them change their class (proven), {self.changed:,} do (found)"


@dataclass(frozen=True)
class _Forms:
    """Linear forms ``Z = start + <U, y>`` of integers, and the real numbers that they stand for.

    Attributes
    ----------
    U : ndarray of shape (F, D), and start (F,)
        Integers, as int64.
    exact : ndarray of shape (F, D), and exact_start (F,)
        What they were rounded from.
    center, center_error : ndarray of shape (D,)
        Means over the data of y, and of its difference from the features that it stands for.
    """

    U: np.ndarray
    start: np.ndarray
    exact: np.ndarray
    exact_start: np.ndarray
    center: np.ndarray
    center_error: np.ndarray

    def values(self, y: np.ndarray) -> np.ndarray:
        """Return the integers Z (n, F)."""
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
    """A model of degree 2 in integers, computed here bit for bit as its header of C computes it.

    It is made by ``model.to_c(path, arithmetic="integer", X=rows)``.

    Attributes
    ----------
    dtype : {"int8", "int16"}
        The type of the parameters.
    exponent : int
        Outputs are integers times ``2 ** -exponent``.
    agreement : Agreement
        Of these outputs and classes with those of the model, for the rows that the ranges were taken from.
    inputs : InputIntegers
        How features become integers.
    """

    model: Any
    dtype: str
    inputs: InputIntegers
    formula: Formula
    forms: _Forms
    shifts: np.ndarray
    square_shifts: np.ndarray
    top: int
    V: np.ndarray
    exact_V: np.ndarray
    constant: np.ndarray
    exponent: int
    center: np.ndarray
    center_error: np.ndarray
    agreement: Agreement

    def _entries(self) -> dict[str, str]:
        return {"dtype": self.dtype, "agreement": str(self.agreement)}

    def integer_outputs(self, X: Any) -> np.ndarray:
        """Return the outputs (n, m) as integers, those of the function ``outputs`` in C.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Features as the model takes them; numbers out of the ranges are clamped to them, as in C.
        """
        return self._integer_outputs(self.inputs.integers(self._rows(X)))

    def outputs(self, X: Any) -> np.ndarray:
        """Return the outputs (n, m) as floats, the integers times ``2 ** -exponent``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        return np.ldexp(self.integer_outputs(X).astype(np.float64), -self.exponent)

    def predict(self, X: Any) -> np.ndarray:
        """Return what the model predicts from these outputs: labels, indicators or numbers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        return self.model._predictions(self.outputs(X))

    def agree(self, X: Any) -> Agreement:
        """Return how outputs and classes of rows agree with those of the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Any rows, also such as the ranges were not taken from.
        """
        X = self._rows(X)
        exact, found, bound = self.model.outputs(X), self.outputs(X), self.bounds(X)
        may_change = changed = None
        if self.model.target in ("labels", "indicator"):
            alone = self.model.target == "indicator" or exact.shape[1] == 1
            may_change = int(np.sum((_signs_may_change if alone else _argmax_may_change)(exact, bound)))
            classes = [self.model._predictions(outputs).reshape(len(X), -1) for outputs in (exact, found)]
            changed = int(np.sum((classes[0] != classes[1]).any(axis=1)))
        return Agreement(len(X), float(bound.max()), float(np.abs(found - exact).max()), may_change, changed)

    def bounds(self, X: Any) -> np.ndarray:
        """Return bounds (n, m) of the errors of the outputs of rows, rounding of floats included.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        X = self._rows(X)
        y, eta = self.inputs.features(self.inputs.integers(X)), self.inputs.exact_features(X)
        Z, z, e = self.forms.values(y), self.forms.exact_values(eta), self.forms.errors(y, eta)
        k = len(self.V)
        f, phi = self._units(Z), _squares(z[:, :k], self.shifts[:k], self.square_shifts)
        # |Z| >> r is between |z| 2^-r - e - 1 and |z| 2^-r + e; its square is cut off in the same way.
        size, error = (np.ldexp(a[:, :k], -self.shifts[:k]) for a in (np.abs(z), e))
        low = np.minimum(np.ldexp(np.maximum(size - error - 1.0, 0.0) ** 2, -self.square_shifts) - 1.0, self.top)
        high = np.ldexp((size + error) ** 2, -self.square_shifts)
        unit_errors = np.maximum(np.abs(low - phi + self.center_error), np.abs(high - phi + self.center_error))
        D = self.V - self.exact_V
        bound = np.abs(f - self.center) @ np.abs(D) + unit_errors @ np.abs(self.exact_V)
        exact_constant = np.ldexp(self.formula.constant, self.exponent)
        bound += np.abs(self.constant - exact_constant + self.center @ D - self.center_error @ self.exact_V)
        if len(self.shifts) > k:
            bound += np.ldexp(e[:, k:], -self.shifts[k:]) + (self.shifts[k:] > 0)
        return np.ldexp(bound, -self.exponent) * (1.0 + 1e-9) + self._rounding(X, eta)

    def _rows(self, X: Any) -> np.ndarray:
        return dense_rows(self.model._design(X))

    def _integer_outputs(self, integers: np.ndarray) -> np.ndarray:
        """Return the outputs of integers (n, d) as C takes them."""
        Z, k = self.forms.values(self.inputs.features(integers)), len(self.V)
        out = self._units(Z) @ self.V + self.constant
        return out + _shifted(Z[:, k:], self.shifts[k:]) if len(self.shifts) > k else out

    def _units(self, Z: np.ndarray) -> np.ndarray:
        """Return the integers f (n, k) of the units."""
        k = len(self.V)
        return np.minimum((np.abs(Z[:, :k]) >> self.shifts[:k]) ** 2 >> self.square_shifts, self.top)

    def _rounding(self, X: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Return bounds (n, m) of the rounding errors of floats: in the model, and in the numbers compared with it."""
        steps = 4.0 * (X.shape[1] + len(self.V) + 16) * np.finfo(float).eps
        size = quadratic_formula(self.model._formula(), "").mapped(np.abs).outputs(DenseDesign(np.abs(X)))
        size += self.formula.mapped(np.abs).outputs(DenseDesign(np.abs(eta[:, : X.shape[1]])))
        return steps * size


def quantize(model: Any, X: Any, dtype: str) -> IntegerModel:
    """Return a model in integers.

    Parameters
    ----------
    model : Predictor
        Of degree 1 or 2.
    X : array-like or sparse matrix of shape (n, d)
        Rows from which ranges are taken, such as the training data.
    dtype : {"int8", "int16"}

    Raises
    ------
    TypeError
        For models of tables or of higher degrees, and for predictions that need exponentials.
    ValueError
        If 32 bits cannot hold the sums.
    """
    choice(_PARAMETERS)(dtype, "dtype")
    if model.encoding is not None:
        raise TypeError(
            "arithmetic='integer' takes features, and a model of a table has columns that its encoding computes with "
            "in floats; use arithmetic='float', or export model.model of encoded rows"
        )
    if model.target == "ordinal" or model.predicts_means:
        raise TypeError("predictions of this model are exponentials, which integers have not; use arithmetic='float'")
    formula = quadratic_formula(model._formula(), "arithmetic='integer' is")
    rows = dense_rows(model._design(X))
    outputs = model.outputs(rows)
    inputs = choose_inputs(formula, rows, 31 - _ROOM[dtype])
    formula = inputs.rewritten(formula)
    y, eta = inputs.features(inputs.integers(rows)), inputs.exact_features(rows)
    exact, starts = _exact_forms(formula, inputs)
    steps = _steps(exact, starts, inputs.size, _PARAMETERS[dtype])
    for exponent in _exponents(outputs):
        integers = _attempt(model, dtype, inputs, formula, (exact, starts, steps), (y, eta, outputs), exponent)
        if integers is not None:
            return replace(integers, agreement=integers.agree(X))
    raise ValueError("32 bits cannot hold the outputs, as some parts of them are far larger than their sums; scale X")


def _exact_forms(formula: Formula, inputs: InputIntegers) -> tuple[np.ndarray, np.ndarray]:
    """Return the forms (F, D) of units and, if there are some, of linear terms and squares; and their constants."""
    U, b = (formula.terms[0].factors[0], formula.terms[0].biases[0]) if formula.terms else (formula.linear[:0], [])
    if inputs.with_squares:
        U = np.hstack([U, np.zeros_like(U)])
        rest = np.hstack([formula.linear, np.ldexp(formula.squares, inputs.square_shift)])
    else:
        rest = formula.linear
    if len(U) and not rest.any():
        return U, np.asarray(b)
    return np.vstack([U, rest]), np.append(b, np.zeros(len(rest)))


def _steps(exact: np.ndarray, starts: np.ndarray, size: np.ndarray, largest: int) -> np.ndarray:
    """Return the smallest step (F,) of the parameters of each form, so that they and all sums can be held."""
    # What rounding the parameters and centring may add to a sum.
    room = _LARGEST - 2.0 - size.sum() - largest * len(size)
    steps = np.maximum(np.abs(exact).max(axis=1) / largest, (np.abs(exact) @ size + np.abs(starts)) / room)
    return np.maximum(steps, np.finfo(float).tiny)


def _exponents(outputs: np.ndarray) -> range:
    """Return exponents of 2 to try for the outputs, from as many bits as may do to none."""
    largest = np.abs(outputs).max()
    first = 31 - int(np.frexp(largest)[1]) if largest > 0.0 else 0
    first = min(max(first, -_EXPONENTS), _EXPONENTS)
    return range(first, first - 64, -1)


def _attempt(
    model: Any,
    dtype: str,
    inputs: InputIntegers,
    formula: Formula,
    forms: tuple[np.ndarray, np.ndarray, np.ndarray],
    data: tuple[np.ndarray, np.ndarray, np.ndarray],
    exponent: int,
) -> IntegerModel | None:
    """Return the model with outputs in steps of ``2 ** -exponent``, or None if 32 bits cannot hold them."""
    (exact, starts, steps), (y, eta, outputs) = forms, data
    weights = formula.terms[0].weights if formula.terms else np.zeros((0, outputs.shape[1]))
    k = len(weights)
    # The step of a linear form is a shift from that of the outputs.
    linear_shifts = np.minimum(-exponent - np.ceil(np.log2(steps[k:])), _LONGEST).astype(int)
    if (linear_shifts < 0).any():
        return None
    steps = np.append(steps[:k], np.ldexp(1.0, -exponent - linear_shifts))
    rounded = _round_forms(exact / steps[:, None], starts / steps, y, eta)
    largest = rounded.largest(inputs.lowest_features, inputs.highest_features)
    shifts = np.append(np.maximum(_bits(largest[:k]) - _SIZE_BITS, 0), linear_shifts)
    # The weights of squares of |Z| >> r, and shifts of these with which the weights use all their bits.
    scaled = np.ldexp(weights * (steps[:k] ** 2)[:, None], (exponent + 2 * shifts[:k])[:, None])
    size = np.maximum(np.abs(scaled).max(axis=1), np.finfo(float).tiny)
    square_shifts = np.minimum(np.floor(np.log2(_WEIGHTS[dtype] / size)), _LONGEST).astype(int)
    if (square_shifts < 0).any():
        return None
    exact_V = np.ldexp(scaled, square_shifts[:, None])
    V = np.rint(exact_V).astype(np.int64)
    Z, z = rounded.values(y), rounded.exact_values(eta)
    units = (np.abs(Z[:, :k]) >> shifts[:k]) ** 2 >> square_shifts
    top = min(_MARGIN * int(units.max(initial=1)), _LARGEST)
    center, center_error = units.mean(axis=0), (_squares(z[:, :k], shifts[:k], square_shifts) - units).mean(axis=0)
    sums = units @ V + (_shifted(Z[:, k:], linear_shifts) if len(linear_shifts) else 0)
    constant = np.rint((np.ldexp(outputs, exponent) - sums).mean(axis=0))
    highest = np.minimum((largest[:k] >> shifts[:k]) ** 2 >> square_shifts, top)
    bounds = np.abs(constant) + highest @ np.abs(V).astype(float)
    if (bounds + (np.ldexp(largest[k:].astype(float), -linear_shifts) if len(linear_shifts) else 0) > _LARGEST).any():
        return None
    none = Agreement(0, 0.0, 0.0, None, None)
    return IntegerModel(
        model, dtype, inputs, formula, rounded, shifts, square_shifts, top, V, exact_V, constant.astype(np.int64),
        exponent, center, center_error, none,
    )  # fmt: skip


def _round_forms(exact: np.ndarray, starts: np.ndarray, y: np.ndarray, eta: np.ndarray) -> _Forms:
    """Return forms of integers whose errors have mean 0 over the data, up to half a step."""
    U = np.rint(exact).astype(np.int64)
    center, error = y.mean(axis=0), (y - eta).mean(axis=0)
    start = np.rint(starts - (U - exact) @ center - exact @ error).astype(np.int64)
    return _Forms(U, start, exact, starts, center, error)


def _squares(z: np.ndarray, shifts: np.ndarray, square_shifts: np.ndarray) -> np.ndarray:
    """Return the real numbers that integers f stand for."""
    return np.ldexp(z * z, -2 * shifts - square_shifts)


def _shifted(Z: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return Z / 2^shifts, rounded towards 0."""
    return np.sign(Z) * (np.abs(Z) >> shifts)


def _bits(values: np.ndarray) -> np.ndarray:
    """Return the numbers of bits of positive integers."""
    return np.frexp(values.astype(np.float64))[1]


def _argmax_may_change(outputs: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Return whether another output may become the largest, by rows."""
    best = outputs.argmax(axis=1)[:, None]
    least = np.take_along_axis(outputs - bound, best, axis=1)
    others = outputs + bound
    np.put_along_axis(others, best, -np.inf, axis=1)
    return (others >= least).any(axis=1)


def _signs_may_change(outputs: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Return whether the sign of an output may change, by rows."""
    return (np.abs(outputs) <= bound).any(axis=1)

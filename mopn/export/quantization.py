"""The integers of a model: steps, shifts and parameters of 8 or 16 bits, from the ranges of data.

No sum of integers can leave 32 bits, whatever the row. Roundings are centred: the mean error of every sum over the
data is taken off its start, so that what remains of it depends on how far a row is from the mean.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from mopn.export.agreement import NO_ROWS
from mopn.export.comparison import NOISE
from mopn.export.integers import (
    LARGEST_SIZE,
    Forms,
    InputIntegers,
    IntegerModel,
    choose_inputs,
    shifted,
    squares,
    weighted,
)
from mopn.models.formula import dense_rows
from mopn.models.quadratic import Quadratic, is_quadratic
from mopn.solvers.tools.checks import choice

# The largest parameters of forms, and bits of them that sums always have room for: the others are of features.
_PARAMETERS, _ROOM = {"int8": 127, "int16": 32767}, {"int8": 7, "int16": 12}
# The largest weights of units. Those of int8 are so rough that their products share the steps of the outputs. Those
# of int16 leave units 18 of 31 bits, as units have a margin, and each product is shifted, so that all have digits.
_WEIGHTS, _UNIT_BITS = {"int8": 127, "int16": 8191}, 18
_LARGEST = np.iinfo(np.int32).max
# The longest shift.
_LONGEST = np.iinfo(np.int32).bits - 1
# Rows are cut off where their squares exceed the squares of the data by this factor.
_MARGIN = 4
# Exponents of 2 of the outputs that are tried, and the largest, so that float64 has room for all of them.
_TRIED = 64
_LARGEST_EXPONENT = np.finfo(float).maxexp - _TRIED
_TINY = np.finfo(float).tiny


@np.errstate(over="ignore", invalid="ignore")
def quantize(model: Any, X: Any, dtype: str) -> IntegerModel:
    """Return a model of degree 1 or 2 in integers, with the ranges of X; ``ValueError`` if 32 bits are too few."""
    choice(_PARAMETERS)(dtype, "dtype")
    if model.encoding is not None:
        raise TypeError(
            "arithmetic='integer' takes features, and a model of a table has columns that its encoding computes with "
            "in floats; use arithmetic='float', or export model.model of encoded rows"
        )
    if model.target == "ordinal" or model.predicts_means:
        raise TypeError("predictions of this model are exponentials, which integers have not; use arithmetic='float'")
    formula = model._formula()
    if not is_quadratic(formula):
        raise TypeError("arithmetic='integer' is for models of degree 1 and 2 alone; use arithmetic='float'")
    quadratic = Quadratic.of(formula).squared()
    if not np.isfinite(quadratic.squares).all():
        raise ValueError("squares of the model's parameters are beyond float64; scale X in training")
    rows = dense_rows(model._design(X))
    outputs = model.outputs(rows)
    levels, bits = output_scales(model, outputs)
    quantizer = _Quantizer(model, scaled(quadratic, levels, bits), np.ldexp(outputs - levels, bits), rows, dtype)
    largest = np.abs(quantizer.outputs).max() or np.abs(np.ldexp(levels, bits)).max()
    first = 31 - int(np.frexp(largest)[1]) if largest > 0.0 else 0
    first = min(max(first, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
    for exponent in range(first, first - _TRIED, -1):
        integers = quantizer.integers(exponent)
        if integers is not None:
            integers = replace(integers, levels=levels, exponents=exponent + bits)
            return replace(integers, agreement=integers.agree(X))
    raise ValueError(
        "32 bits cannot hold the outputs, as parts of them are far larger than their sums; use arithmetic='float'"
    )


def output_scales(model: Any, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels (m,) of outputs (n, m), and exponents of 2 (m,) that make them alike in size without these.

    A level is a multiple of a power of 2 above the outputs' range, so it is 0 for outputs near 0. Signs of outputs are
    classes, which allow no levels; of several classes the largest output counts, so all have one level and one size.
    """
    m = outputs.shape[1]
    if model.target == "labels" and m > 1:
        return np.full(m, _level(outputs.min(), outputs.max())), np.zeros(m, int)
    levels, bits = np.zeros(m), np.zeros(m, int)
    for c, values in enumerate(outputs.T):
        if model.target not in ("labels", "indicator"):
            levels[c] = _level(values.min(), values.max())
        size = np.abs(values - levels[c]).max()
        # The size of an output that is constant is unknown.
        bits[c] = -np.frexp(size if size > NOISE * abs(levels[c]) else abs(levels[c]))[1]
    return levels, bits


def _level(lowest: float, highest: float) -> float:
    """Return the multiple of a power of 2 above the range that is nearest to its center."""
    center, half = lowest + 0.5 * (highest - lowest), 0.5 * highest - 0.5 * lowest
    if half <= NOISE * abs(center):
        return center
    step = np.ldexp(1.0, np.frexp(half)[1] + 1)
    return float(np.rint(center / step) * step) + 0.0  # 0 has no sign


def scaled(outputs: Quadratic, levels: np.ndarray, bits: np.ndarray) -> Quadratic:
    """Return outputs without levels, times powers of 2."""
    sizes = np.ldexp(1.0, bits)
    return replace(
        outputs,
        constant=(outputs.constant - levels) * sizes,
        linear=outputs.linear * sizes[:, None],
        squares=outputs.squares * sizes[:, None],
        weights=outputs.weights * sizes,
    )


class _Quantizer:
    """Inputs, linear forms (F, D) and their smallest steps, which do not depend on the steps of the outputs."""

    def __init__(self, model: Any, quadratic: Quadratic, outputs: np.ndarray, X: np.ndarray, dtype: str) -> None:
        self.model, self.dtype, self.outputs = model, dtype, outputs
        self.inputs = choose_inputs(quadratic, X, 31 - _ROOM[dtype])
        self.quadratic = self.inputs.rewritten(quadratic)
        self.y, self.eta = self.inputs.features(self.inputs.integers(X)), self.inputs.exact_features(X)
        self.k = len(quadratic.weights)
        self.exact, self.starts = _exact_forms(self.quadratic, self.inputs)
        self.steps = _steps(self.exact, self.starts, np.abs(self.inputs.ends).max(axis=0), _PARAMETERS[dtype])

    def integers(self, exponent: int) -> IntegerModel | None:
        """Return the model with outputs in steps of ``2 ** -exponent``, or None if 32 bits cannot hold them."""
        # The step of a linear form is a shift of the outputs' step, to the left where parameters are rougher.
        linear_shifts = np.minimum(-exponent - np.ceil(np.log2(self.steps[self.k :])), _LONGEST).astype(int)
        if (linear_shifts <= -_LONGEST).any():
            return None
        forms = self._forms(np.append(self.steps[: self.k], np.ldexp(1.0, -exponent - linear_shifts)))
        largest = forms.largest(*self.inputs.ends)
        found = np.abs(forms.values(self.y)[:, : self.k]).max(axis=0)
        sizes = self._size_shifts(largest[: self.k], found)
        exact_V, all_shifts = self._weights(exponent, sizes)
        if (all_shifts < 0).any():
            return None
        square_shifts = np.minimum(all_shifts, self._longest_square_shifts(found >> sizes))
        shifts = sizes, square_shifts, all_shifts - square_shifts, linear_shifts
        integers = self._centred(exponent, forms, shifts, exact_V)
        sizes = np.minimum(largest[: self.k] >> sizes, LARGEST_SIZE)
        highest = np.minimum(sizes**2 >> square_shifts, integers.top)
        products = np.abs(integers.V) * highest[:, None]
        bounds = np.abs(integers.constant) + (products >> integers.product_shifts[:, None]).sum(axis=0)
        if len(linear_shifts):
            bounds = bounds + np.ldexp(largest[self.k :].astype(float), -linear_shifts)
        return integers if (bounds <= _LARGEST).all() and (products <= _LARGEST).all() else None

    def _size_shifts(self, largest: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Return the shifts (k,) after which |Z| has 16 bits: with int8 any, with int16 those of data and a margin.

        Larger ones of int16 are cut off, as far rows are in any case.
        """
        bits = np.frexp(largest.astype(float))[1]
        if self.dtype == "int16":
            bits = np.minimum(bits, np.frexp(np.sqrt(_MARGIN) * found)[1])
        return np.maximum(bits - LARGEST_SIZE.bit_length(), 0)

    def _longest_square_shifts(self, sizes: np.ndarray) -> np.ndarray:
        """Return the shifts (k,) of squares before weights of int16, which leave units of such sizes their bits."""
        if self.dtype == "int8":
            return np.full(self.k, _LONGEST)
        return np.maximum(np.frexp(_MARGIN * sizes.astype(float) ** 2)[1] - _UNIT_BITS, 0)

    def _forms(self, steps: np.ndarray) -> Forms:
        """Return forms of integers whose errors have mean 0 over the data, up to half a step."""
        exact, starts = self.exact / steps[:, None], self.starts / steps
        U = np.rint(exact).astype(np.int64)
        center, error = self.y.mean(axis=0), (self.y - self.eta).mean(axis=0)
        start = np.rint(starts - (U - exact) @ center - exact @ error).astype(np.int64)
        return Forms(U, start, exact, starts, center, error)

    def _weights(self, exponent: int, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights (k, m) of the squares of |Z| >> r, and the shifts with which they use all bits."""
        scaled = np.ldexp(
            self.quadratic.weights * (self.steps[: self.k] ** 2)[:, None], (exponent + 2 * sizes)[:, None]
        )
        largest = np.maximum(np.abs(scaled).max(axis=1), _TINY)
        shifts = np.minimum(np.floor(np.log2(_WEIGHTS[self.dtype] / largest)), _LONGEST).astype(int)
        return np.ldexp(scaled, shifts[:, None]), shifts

    def _centred(
        self, exponent: int, forms: Forms, shifts: tuple[np.ndarray, ...], exact_V: np.ndarray
    ) -> IntegerModel:
        """Return the model with constants for which the mean error of outputs is 0, up to half a step."""
        sizes, square_shifts, product_shifts, linear_shifts = shifts
        Z, z, k = forms.values(self.y), forms.exact_values(self.eta)[:, : self.k], self.k
        units = np.minimum(np.abs(Z[:, :k]) >> sizes, LARGEST_SIZE) ** 2 >> square_shifts
        V, errors = np.rint(exact_V).astype(np.int64), squares(z, sizes, square_shifts) - units
        sums = weighted(units, V, product_shifts) + (shifted(Z[:, k:], linear_shifts) if len(linear_shifts) else 0)
        m = len(self.quadratic.constant)
        return IntegerModel(
            model=self.model,
            dtype=self.dtype,
            exponent=exponent,
            exponents=np.full(m, exponent),
            levels=np.zeros(m),
            agreement=NO_ROWS,
            inputs=self.inputs,
            forms=forms,
            shifts=np.append(sizes, linear_shifts),
            square_shifts=square_shifts,
            product_shifts=product_shifts,
            top=min(_MARGIN * int(units.max(initial=1)), _LARGEST),
            V=V,
            constant=np.rint((np.ldexp(self.outputs, exponent) - sums).mean(axis=0)).astype(np.int64),
            formula=self.quadratic.formula(),
            exact_V=exact_V,
            center=units.mean(axis=0),
            center_error=errors.mean(axis=0),
        )


def _exact_forms(quadratic: Quadratic, inputs: InputIntegers) -> tuple[np.ndarray, np.ndarray]:
    """Return the forms (F, D) of units and, if there are some, of linear terms and squares; and their constants."""
    U, b, rest = quadratic.factors[0], quadratic.biases[0], quadratic.linear
    if inputs.with_squares:
        U = np.hstack([U, np.zeros_like(U)])
        rest = np.hstack([rest, np.ldexp(quadratic.squares, inputs.square_shift)])
    if len(U) and not rest.any():
        return U, b
    return np.vstack([U, rest]), np.append(b, np.zeros(len(rest)))


def _steps(exact: np.ndarray, starts: np.ndarray, size: np.ndarray, largest: int) -> np.ndarray:
    """Return the smallest step (F,) of the parameters of each form, so that they and all sums can be held."""
    # Rounding adds half a step to each parameter, and its mean to the start; rounding of features and of their squares
    # adds up to 3 steps of the largest parameter.
    room = _LARGEST - 2.0 - size.sum() - 3.0 * largest * len(size)
    steps = np.maximum(np.abs(exact).max(axis=1) / largest, (np.abs(exact) @ size + np.abs(starts)) / room)
    return np.maximum(steps, _TINY)

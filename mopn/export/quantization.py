"""The integers of a model: steps, shifts and parameters of 8 or 16 bits, from the ranges of data.

No sum of integers can leave 32 bits, whatever the row. Roundings are centred: the mean error of every sum over the
data is subtracted from its start, so that the remaining error grows with a row's distance from the mean.
"""

from dataclasses import replace
from typing import Any, NamedTuple

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

# The largest parameters of forms, by their type.
_MAX_PARAMETER = {"int8": 127, "int16": 32767}
# Bits of parameters for which sums always have room; the other bits of a sum are for features.
_PARAMETER_BITS = {"int8": 7, "int16": 12}
# The largest weights of units. In int8 weights are so rough that their products share the steps of the outputs; in
# int16 each product has a shift of its own, which keeps its digits.
_MAX_WEIGHT = {"int8": 127, "int16": 8191}
# Bits of units before weights of int16: 18 of 31, as the weights take 13.
_UNIT_BITS = 18
# The largest sum.
_MAX_INT32 = np.iinfo(np.int32).max
# The longest shift in bits: longer ones are undefined in C.
_MAX_SHIFT = np.iinfo(np.int32).bits - 1
# Units of far rows are cut off where they exceed the largest unit of the data by this factor.
_UNIT_MARGIN = 4
# Exponents of 2 of the outputs that are tried before 32 bits are called too few.
_MAX_TRIALS = 64
# The largest exponent, so that float64 has room for all trials.
_MAX_EXPONENT = np.finfo(float).maxexp - _MAX_TRIALS
# Steps of parameters that are all 0.
_SMALLEST_STEP = np.finfo(float).tiny


@np.errstate(over="ignore", invalid="ignore")
def quantize(model: Any, X: Any, dtype: str) -> IntegerModel:
    """Return a model of degree 1 or 2 in integers, with the ranges of X; ``ValueError`` if 32 bits are too few."""
    choice(_MAX_PARAMETER)(dtype, "dtype")
    if model.encoding is not None:
        raise TypeError(
            "arithmetic='integer' takes features, and a model of a table has columns that its encoding computes with "
            "in floats; use arithmetic='float', or export model.model of encoded rows"
        )
    if model.target == "ordinal" or model.predicts_means:
        raise TypeError("predictions of this model are exponentials, which integers have not; use arithmetic='float'")
    formula = model.formula()
    if not is_quadratic(formula):
        raise TypeError("arithmetic='integer' is for models of degree 1 and 2 alone; use arithmetic='float'")
    quadratic = Quadratic.of(formula).squared()
    if not np.isfinite(quadratic.squares).all():
        raise ValueError("squares of the model's parameters are beyond float64; scale X in training")
    rows = dense_rows(model.design(X))
    outputs = model.outputs(rows)
    levels, bits = output_scales(model, outputs)
    quantizer = _Quantizer(model, scaled(quadratic, levels, bits), np.ldexp(outputs - levels, bits), rows, dtype)
    largest = np.abs(quantizer.outputs).max() or np.abs(np.ldexp(levels, bits)).max()
    first = 31 - int(np.frexp(largest)[1]) if largest > 0.0 else 0
    first = min(max(first, -_MAX_EXPONENT), _MAX_EXPONENT)
    for exponent in range(first, first - _MAX_TRIALS, -1):
        integers = quantizer.integers(exponent)
        if integers is not None:
            integers = replace(integers, levels=levels, exponents=exponent + bits)
            return replace(integers, agreement=integers.agree(X))
    raise ValueError(
        "32 bits cannot hold the outputs, as parts of them are far larger than their sums; use arithmetic='float'"
    )


def output_scales(model: Any, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return levels (m,) of outputs (n, m), and exponents of 2 (m,) that make outputs without levels alike in size.

    A level is a multiple of a power of 2 above the outputs' range, so it is 0 for outputs near 0. Where the sign of an
    output is the class, there is no level. Among several classes the largest output wins, so all share level and size.
    """
    m = outputs.shape[1]
    levels = np.zeros(m)
    bits = np.zeros(m, int)
    if model.target == "labels" and m > 1:
        levels[:] = _level(outputs.min(), outputs.max())
        return levels, bits
    for c, values in enumerate(outputs.T):
        if model.target not in ("labels", "indicator"):
            levels[c] = _level(values.min(), values.max())
        size = np.abs(values - levels[c]).max()
        # An output that is constant has no size: its level stands in.
        if size <= NOISE * abs(levels[c]):
            size = abs(levels[c])
        bits[c] = -np.frexp(size)[1]
    return levels, bits


def _level(lowest: float, highest: float) -> float:
    """Return the multiple of a power of 2 above the range that is nearest to its center."""
    center = lowest + 0.5 * (highest - lowest)
    half_range = 0.5 * highest - 0.5 * lowest
    if half_range <= NOISE * abs(center):
        return center
    step = np.ldexp(1.0, np.frexp(half_range)[1] + 1)
    return float(np.rint(center / step) * step) + 0.0  # makes -0.0 to 0.0


def scaled(outputs: Quadratic, levels: np.ndarray, bits: np.ndarray) -> Quadratic:
    """Return outputs without levels, times powers of 2 with exponents ``bits`` (m,)."""
    sizes = np.ldexp(1.0, bits)
    return replace(
        outputs,
        constant=(outputs.constant - levels) * sizes,
        linear=outputs.linear * sizes[:, None],
        squares=outputs.squares * sizes[:, None],
        weights=outputs.weights * sizes,
    )


class _Shifts(NamedTuple):
    """Shifts to the right: of |Z| (k,), of its squares (k,), of products (k,), and of linear forms (m,) or (0,)."""

    sizes: np.ndarray
    squares: np.ndarray
    products: np.ndarray
    linear: np.ndarray


class _Quantizer:
    """Inputs, linear forms (F, D) and their smallest steps, which are the same for all steps of the outputs."""

    def __init__(self, model: Any, quadratic: Quadratic, outputs: np.ndarray, X: np.ndarray, dtype: str) -> None:
        self.model = model
        self.dtype = dtype
        self.outputs = outputs
        self.inputs = choose_inputs(quadratic, X, 31 - _PARAMETER_BITS[dtype])
        self.quadratic = self.inputs.rewritten(quadratic)
        self.y = self.inputs.features(self.inputs.integers(X))
        self.eta = self.inputs.exact_features(X)
        self.k = len(quadratic.weights)
        self.exact, self.starts = _exact_forms(self.quadratic, self.inputs)
        sizes = np.abs(self.inputs.ends).max(axis=0)
        self.steps = _smallest_steps(self.exact, self.starts, sizes, _MAX_PARAMETER[dtype])

    def integers(self, exponent: int) -> IntegerModel | None:
        """Return the model with outputs in steps of ``2 ** -exponent``, or None if 32 bits cannot hold them."""
        k = self.k
        # The step of a linear form is a shift of the outputs' step, to the left where parameters are rougher.
        linear_shifts = np.minimum(-exponent - np.ceil(np.log2(self.steps[k:])), _MAX_SHIFT).astype(int)
        if (linear_shifts <= -_MAX_SHIFT).any():
            return None
        forms = self._forms(np.append(self.steps[:k], np.ldexp(1.0, -exponent - linear_shifts)))
        largest = forms.largest(*self.inputs.ends)
        found = np.abs(forms.values(self.y)[:, :k]).max(axis=0)
        size_shifts = self._size_shifts(largest[:k], found)
        exact_V, shifts = self._weights(exponent, size_shifts)
        if (shifts < 0).any():
            return None
        square_shifts = np.minimum(shifts, self._max_square_shifts(found >> size_shifts))
        split = _Shifts(size_shifts, square_shifts, shifts - square_shifts, linear_shifts)
        integers = self._centred(exponent, forms, split, exact_V)
        return integers if _fits_in_32_bits(integers, largest) else None

    def _size_shifts(self, largest: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Return the shifts (k,) after which |Z| has 16 bits, from the ``largest`` |Z| and the largest one ``found``.

        With int8 this holds for any row; with int16 for the data and a margin, as units of far rows are cut off anyway.
        """
        bits = np.frexp(largest.astype(float))[1]
        if self.dtype == "int16":
            bits = np.minimum(bits, np.frexp(np.sqrt(_UNIT_MARGIN) * found)[1])
        return np.maximum(bits - LARGEST_SIZE.bit_length(), 0)

    def _max_square_shifts(self, sizes: np.ndarray) -> np.ndarray:
        """Return the longest shifts (k,) of the squares of ``sizes`` (k,) that leave units their bits."""
        if self.dtype == "int8":
            return np.full(self.k, _MAX_SHIFT)
        return np.maximum(np.frexp(_UNIT_MARGIN * sizes.astype(float) ** 2)[1] - _UNIT_BITS, 0)

    def _forms(self, steps: np.ndarray) -> Forms:
        """Return forms of integers whose errors have mean 0 over the data, up to half a step."""
        exact = self.exact / steps[:, None]
        starts = self.starts / steps
        U = np.rint(exact).astype(np.int64)
        center = self.y.mean(axis=0)
        error = (self.y - self.eta).mean(axis=0)
        start = np.rint(starts - (U - exact) @ center - exact @ error).astype(np.int64)
        return Forms(U, start, exact, starts, center, error)

    def _weights(self, exponent: int, size_shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights (k, m) of the squares of |Z| >> r, and the shifts with which they use all bits."""
        of_steps = self.quadratic.weights * (self.steps[: self.k] ** 2)[:, None]
        of_outputs = np.ldexp(of_steps, (exponent + 2 * size_shifts)[:, None])
        largest = np.maximum(np.abs(of_outputs).max(axis=1), _SMALLEST_STEP)
        shifts = np.minimum(np.floor(np.log2(_MAX_WEIGHT[self.dtype] / largest)), _MAX_SHIFT).astype(int)
        return np.ldexp(of_outputs, shifts[:, None]), shifts

    def _centred(self, exponent: int, forms: Forms, shifts: _Shifts, exact_V: np.ndarray) -> IntegerModel:
        """Return the model with constants for which the mean error of outputs is 0, up to half a step."""
        k = self.k
        m = len(self.quadratic.constant)
        Z = forms.values(self.y)
        units = np.minimum(np.abs(Z[:, :k]) >> shifts.sizes, LARGEST_SIZE) ** 2 >> shifts.squares
        errors = squares(forms.exact_values(self.eta)[:, :k], shifts.sizes, shifts.squares) - units
        V = np.rint(exact_V).astype(np.int64)
        sums = weighted(units, V, shifts.products)
        if len(shifts.linear):
            sums = sums + shifted(Z[:, k:], shifts.linear)
        return IntegerModel(
            model=self.model,
            dtype=self.dtype,
            exponent=exponent,
            exponents=np.full(m, exponent),
            levels=np.zeros(m),
            agreement=NO_ROWS,
            inputs=self.inputs,
            forms=forms,
            shifts=np.append(shifts.sizes, shifts.linear),
            square_shifts=shifts.squares,
            product_shifts=shifts.products,
            top=min(_UNIT_MARGIN * int(units.max(initial=1)), _MAX_INT32),
            V=V,
            constant=np.rint((np.ldexp(self.outputs, exponent) - sums).mean(axis=0)).astype(np.int64),
            formula=self.quadratic.formula(),
            exact_V=exact_V,
            center=units.mean(axis=0),
            center_error=errors.mean(axis=0),
        )


def _fits_in_32_bits(integers: IntegerModel, largest: np.ndarray) -> bool:
    """Whether all sums and products stay in 32 bits for forms up to ``largest`` (F,)."""
    k = len(integers.V)
    sizes = np.minimum(largest[:k] >> integers.shifts[:k], LARGEST_SIZE)
    units = np.minimum(sizes**2 >> integers.square_shifts, integers.top)
    products = np.abs(integers.V) * units[:, None]
    sums = np.abs(integers.constant) + (products >> integers.product_shifts[:, None]).sum(axis=0)
    if len(largest) > k:
        sums = sums + np.ldexp(largest[k:].astype(float), -integers.shifts[k:])
    return bool((sums <= _MAX_INT32).all() and (products <= _MAX_INT32).all())


def _exact_forms(quadratic: Quadratic, inputs: InputIntegers) -> tuple[np.ndarray, np.ndarray]:
    """Return the forms (F, D) of units and, if there are some, of linear terms and squares; and their constants."""
    U = quadratic.factors[0]
    b = quadratic.biases[0]
    rest = quadratic.linear
    if inputs.with_squares:
        U = np.hstack([U, np.zeros_like(U)])
        rest = np.hstack([rest, np.ldexp(quadratic.squares, inputs.square_shift)])
    if len(U) and not rest.any():
        return U, b
    return np.vstack([U, rest]), np.append(b, np.zeros(len(rest)))


def _smallest_steps(exact: np.ndarray, starts: np.ndarray, size: np.ndarray, largest: int) -> np.ndarray:
    """Return the smallest steps (F,) of forms at which parameters are at most ``largest`` and sums fit in 32 bits."""
    # Rounding adds half a step to each parameter, and its mean to the start; rounding of features and of their squares
    # adds up to 3 steps of the largest parameter.
    room = _MAX_INT32 - 2.0 - size.sum() - 3.0 * largest * len(size)
    for_parameters = np.abs(exact).max(axis=1) / largest
    for_sums = (np.abs(exact) @ size + np.abs(starts)) / room
    return np.maximum(np.maximum(for_parameters, for_sums), _SMALLEST_STEP)

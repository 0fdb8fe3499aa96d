"""The integers of a model: steps, shifts and parameters of 8 or 16 bits, from the ranges of data.

No sum of integers can leave 32 bits, whatever the row. Roundings are centred: the mean error of every sum over the
data is taken off its start, so that what remains of it depends on how far a row is from the mean.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from mopn.export.integers import Agreement, Forms, InputIntegers, IntegerModel, choose_inputs, shifted, squares
from mopn.models.formula import dense_rows
from mopn.models.quadratic import Quadratic, is_quadratic
from mopn.solvers.tools.checks import choice

# The largest parameters of forms, the largest weights of units, and bits of them that sums always have room for. More
# bits of weights would leave fewer for the units that they multiply.
_PARAMETERS, _WEIGHTS, _ROOM = {"int8": 127, "int16": 32767}, {"int8": 127, "int16": 4095}, {"int8": 7, "int16": 12}
_LARGEST = np.iinfo(np.int32).max
# The longest shift, and bits of |Z| >> r, whose square has 32 bits without a sign.
_LONGEST = np.iinfo(np.int32).bits - 1
_SIZE_BITS = np.iinfo(np.int32).bits // 2
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
    quantizer = _Quantizer(model, quadratic, dense_rows(model._design(X)), dtype)
    largest = np.abs(quantizer.outputs).max()
    first = 31 - int(np.frexp(largest)[1]) if largest > 0.0 else 0
    first = min(max(first, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
    for exponent in range(first, first - _TRIED, -1):
        integers = quantizer.integers(exponent)
        if integers is not None:
            return replace(integers, agreement=integers.agree(X))
    raise ValueError(
        "32 bits cannot hold the outputs, as parts of them are far larger than their sums; use arithmetic='float'"
    )


class _Quantizer:
    """Inputs, linear forms (F, D) and their smallest steps, which do not depend on the steps of the outputs."""

    def __init__(self, model: Any, quadratic: Quadratic, X: np.ndarray, dtype: str) -> None:
        self.model, self.dtype, self.outputs = model, dtype, model.outputs(X)
        self.inputs = choose_inputs(quadratic, X, 31 - _ROOM[dtype])
        self.quadratic = self.inputs.rewritten(quadratic)
        self.y, self.eta = self.inputs.features(self.inputs.integers(X)), self.inputs.exact_features(X)
        self.k = len(quadratic.weights)
        self.exact, self.starts = _exact_forms(self.quadratic, self.inputs)
        self.steps = _steps(self.exact, self.starts, np.abs(self.inputs.ends).max(axis=0), _PARAMETERS[dtype])

    def integers(self, exponent: int) -> IntegerModel | None:
        """Return the model with outputs in steps of ``2 ** -exponent``, or None if 32 bits cannot hold them."""
        # The step of a linear form is a shift of the outputs' step.
        linear_shifts = np.minimum(-exponent - np.ceil(np.log2(self.steps[self.k :])), _LONGEST).astype(int)
        forms = self._forms(np.append(self.steps[: self.k], np.ldexp(1.0, -exponent - linear_shifts)))
        largest = forms.largest(*self.inputs.ends)
        sizes = np.maximum(np.frexp(largest[: self.k].astype(float))[1] - _SIZE_BITS, 0)
        exact_V, square_shifts = self._weights(exponent, sizes)
        if (linear_shifts < 0).any() or (square_shifts < 0).any():
            return None
        integers = self._centred(exponent, forms, np.append(sizes, linear_shifts), exact_V, square_shifts)
        highest = np.minimum((largest[: self.k] >> sizes) ** 2 >> square_shifts, integers.top)
        bounds = np.abs(integers.constant) + highest @ np.abs(integers.V).astype(float)
        if len(linear_shifts):
            bounds += np.ldexp(largest[self.k :].astype(float), -linear_shifts)
        return integers if (bounds <= _LARGEST).all() else None

    def _forms(self, steps: np.ndarray) -> Forms:
        """Return forms of integers whose errors have mean 0 over the data, up to half a step."""
        exact, starts = self.exact / steps[:, None], self.starts / steps
        U = np.rint(exact).astype(np.int64)
        center, error = self.y.mean(axis=0), (self.y - self.eta).mean(axis=0)
        start = np.rint(starts - (U - exact) @ center - exact @ error).astype(np.int64)
        return Forms(U, start, exact, starts, center, error)

    def _weights(self, exponent: int, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights (k, m) of the shifted squares of |Z| >> r, and the shifts with which they use all bits."""
        scaled = np.ldexp(
            self.quadratic.weights * (self.steps[: self.k] ** 2)[:, None], (exponent + 2 * sizes)[:, None]
        )
        largest = np.maximum(np.abs(scaled).max(axis=1), _TINY)
        shifts = np.minimum(np.floor(np.log2(_WEIGHTS[self.dtype] / largest)), _LONGEST).astype(int)
        return np.ldexp(scaled, shifts[:, None]), shifts

    def _centred(
        self, exponent: int, forms: Forms, shifts: np.ndarray, exact_V: np.ndarray, square_shifts: np.ndarray
    ) -> IntegerModel:
        """Return the model with constants for which the mean error of outputs is 0, up to half a step."""
        Z, z, k = forms.values(self.y), forms.exact_values(self.eta)[:, : self.k], self.k
        units = (np.abs(Z[:, :k]) >> shifts[:k]) ** 2 >> square_shifts
        V, errors = np.rint(exact_V).astype(np.int64), squares(z, shifts[:k], square_shifts) - units
        sums = units @ V + (shifted(Z[:, k:], shifts[k:]) if len(shifts) > k else 0)
        return IntegerModel(
            model=self.model,
            dtype=self.dtype,
            exponent=exponent,
            agreement=Agreement(0, 0.0, 0.0, None, None),
            inputs=self.inputs,
            forms=forms,
            shifts=shifts,
            square_shifts=square_shifts,
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

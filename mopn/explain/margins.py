"""Margins of one output over another around rows, as quadratic functions, with bounds of all rounding errors.

Also the importances of features by the slopes of the outputs.
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from mopn.data.designs import Design, rows_at_once
from mopn.data.feature_scaling import Coordinates
from mopn.models.base import Predictor
from mopn.models.formula import dense_rows
from mopn.models.quadratic import Quadratic, is_quadratic
from mopn.models.table import TableModel
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere import power_of_two
from mopn.solvers.sphere.stack import far_from_orthonormal
from mopn.solvers.tools.decorators import quiet

# Bound of the error of sums of products that underflow; the smallest normal number is 2e-308.
_UNDERFLOW_ERROR = 1e-290


def with_zero(by_output: np.ndarray) -> np.ndarray:
    """Return an array (n, m, ...) with one more output, which is 0."""
    return np.concatenate([by_output, np.zeros_like(by_output[:, :1])], axis=1)


class OutputMargins:
    """Differences of outputs around rows x as quadratics: f(x + scale * B u) = f(x) + <slope, u> + u'Au.

    After the m outputs there is one more, which is 0. ``unit`` is the power of two by which the given scale is
    multiplied, so that the longest units are about 1. ``basis`` is B (d, r), orthonormal up to rounding: a basis of the
    space on which the outputs depend; None is the identity. ``outputs`` are functions of x, ``local`` of u.
    """

    def __init__(self, model: Any, scale: np.ndarray, *, reduced: bool) -> None:
        parameters = _real_fields(model)
        self.outputs = Quadratic.of(model.formula())
        # Classes and targets play no part in outputs; without them moduli of numeric classes may coincide.
        moduli = {name: np.abs(value) for name, value in parameters.items()}
        moduli |= {"classes": None, "target": None}
        self.moduli = Quadratic.of(replace(model, **moduli).formula())

        largest = max(np.abs(scale * part).max(initial=0.0) for part in (self.outputs.factors, self.outputs.linear))
        self.unit = 1.0 / power_of_two(float(largest))
        self.scale = scale * self.unit

        # No number is the result of more operations in a row. The count is doubled, as predictions at other points err,
        # too.
        shapes = [self.outputs.factors.shape, *map(np.shape, parameters.values())]
        operations = 2 * max(map(sum, shapes)) + 64
        self.rounding = 2 * operations * EPS

        self.basis: np.ndarray | None = None
        self.local = replace(
            self.outputs,
            factors=self.scale * self.outputs.factors,
            linear=self.scale * self.outputs.linear,
            squares=self.scale**2 * self.outputs.squares,
        )
        if reduced and not self.outputs.squares.any():
            self._reduce()

    def _reduce(self) -> None:
        """Change to coordinates of the span, if it is smaller than the space; the error counts as rounding."""
        first, second = self.local.factors
        with_linear = np.flatnonzero(self.local.linear.any(axis=1))
        parts = [first]
        if not np.array_equal(first, second):
            parts.append(second)
        vectors = np.vstack([*parts, self.local.linear[with_linear]])
        if not 0 < len(vectors) < self.scale.size:
            return

        self.basis = np.linalg.qr(vectors.T)[0]
        coordinates = vectors @ self.basis
        lost = _lengths(vectors - coordinates @ self.basis.T)
        lengths = _lengths(vectors)
        relative = np.divide(lost, lengths, out=np.zeros_like(lost), where=lengths > 0.0).max()
        self.rounding += 4.0 * (relative + far_from_orthonormal(self.basis) + len(vectors) ** 1.5 * EPS)

        units = coordinates[: len(vectors) - len(with_linear)]
        # The same units if the factors are equal.
        factors = np.stack([units[: len(first)], units[len(units) - len(first) :]])
        linear = np.zeros((len(self.local.linear), len(vectors)))
        linear[with_linear] = coordinates[len(units) :]
        self.local = replace(self.local, factors=factors, linear=linear, squares=np.zeros_like(linear))

    def matrix(self, p: int, e: int) -> np.ndarray:
        """Return A (r, r) of the output p minus the output e."""
        return self.local.matrix(self._difference(p, e))

    def slopes(self, design: Design, p: int, e: int) -> np.ndarray:
        """Return the slopes (n, r) at the rows of a design."""
        t = self._difference(p, e)
        slopes = self.local.slopes(self.outputs.forms(design), t)
        squares = t @ self.outputs.squares
        if not squares.any():
            return slopes
        return slopes + 2.0 * dense_rows(design) * (squares * self.scale)

    def errors(self, design: Design) -> np.ndarray:
        """Return e (n, m + 1, 3): rounding changes outputs by e_0 + e_1 ||u|| + e_2 ||u||^2 at most."""
        terms = self.moduli
        # Kernels subtract squares, also the squares of dummies from constants, where they may cancel. Squares are at
        # most the products, so each product counts three times.
        weights = 3.0 * np.abs(terms.weights)
        constant = np.abs(terms.constant)
        linear = np.abs(terms.linear)
        long1, long2 = lengths = _lengths(self.scale * terms.factors)
        errors = np.empty((design.shape[0], len(constant), 3))
        for rows, block in design.absolute.blocks(rows_at_once(lengths.size + constant.size)):
            first, second = terms.forms(block)
            errors[rows, :, 0] = (first * second) @ weights + block.project(linear) + constant
            errors[rows, :, 1] = (first * long2 + second * long1) @ weights
        errors[:, :, 1] += _lengths(self.scale * linear)
        errors[:, :, 2] = (long1 * long2) @ weights
        varies = weights.any(axis=0) | linear.any(axis=1)
        return with_zero(self.rounding * errors + np.where(varies, _UNDERFLOW_ERROR, 0.0)[:, None])

    def _difference(self, p: int, e: int) -> np.ndarray:
        """Return the coefficients (m,) of the output p minus the output e."""
        m = len(self.outputs.constant)
        return np.eye(m + 1, m)[p] - np.eye(m + 1, m)[e]


def _lengths(vectors: np.ndarray) -> np.ndarray:
    return np.hypot.reduce(vectors, axis=-1)


def _real_fields(model: Any) -> dict[str, Any]:
    """Return the fields of a model that hold real numbers."""
    found = {}
    for field in fields(model):
        value = getattr(model, field.name)
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            found[field.name] = value
    return found


@quiet()
def importances_without_rows(model: Predictor, coordinates: Coordinates | None) -> np.ndarray:
    """Return deviations of features or columns times root mean square slopes of the outputs, up to degree 2.

    The mean is over independent normal features with the means and deviations of the fit, without coordinates 0 and 1.
    Squares are added up over outputs; with a softmax, over outputs minus their mean (Sobol and Kucherenko, 2009).
    """
    formula = model.formula()
    if not is_quadratic(formula):
        raise AttributeError(
            "feature_importances_ is for outputs of degree 2 at most; for others take means of absolute values of "
            "mopn.explain.shap_values(model, X)"
        )
    outputs = Quadratic.of(formula).squared()
    d = outputs.linear.shape[1]
    center = np.zeros(d)
    deviations = np.ones(d)
    if coordinates is not None:
        center = center if coordinates.center is None else coordinates.center
        deviations = deviations if coordinates.deviations is None else coordinates.deviations

    # The outputs as functions of z = (x - center) / deviations: slopes at z = 0, and the weights V of squares of units
    # H and ``squares`` of features.
    H = deviations * outputs.factors[0]
    V = outputs.weights
    at_center = outputs.biases[0] + outputs.factors[0] @ center
    slopes = deviations * (outputs.linear + 2.0 * outputs.squares * center) + 2.0 * (V.T * at_center) @ H
    squares = deviations**2 * outputs.squares
    if model.link == "softmax":
        V = V - V.mean(axis=1, keepdims=True)
        slopes = slopes - slopes.mean(axis=0)
        squares = squares - squares.mean(0)

    # The slope at z is s + 2 A z, with the mean square s_j^2 + 4 sum_k A_jk^2.
    gram = H @ H.T
    rows_of_units = np.array([((gram * np.outer(v, v)) @ H * H).sum(axis=0) for v in V.T])
    rows = rows_of_units + squares * (2.0 * V.T @ H**2 + squares)
    total = (slopes**2 + 4.0 * np.maximum(rows, 0.0)).sum(axis=0)
    if isinstance(model, TableModel):
        total = np.bincount(model.encoding.owners, total, minlength=model.n_features)
    return np.sqrt(total)

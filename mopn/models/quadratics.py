"""Outputs of degree 2 around rows: differences of two of them as quadratics, with bounds of all rounding errors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mopn.data.designs import Design
from mopn.models.formula import Formula, Products, blocks
from mopn.models.games import dense_rows
from mopn.solvers.sphere import power_of_two
from mopn.solvers.sphere.principal_directions import far_from_orthonormal

__all__ = ["Quadratics", "with_zero"]

_EPS = float(np.finfo(float).eps)
# What products may lose where they underflow.
_UNDERFLOW = 1e-290


def with_zero(outputs: np.ndarray) -> np.ndarray:
    """Return outputs (n, m) and one more, which is 0."""
    return np.hstack([outputs, np.zeros((len(outputs), 1))])


@dataclass(frozen=True)
class Terms:
    """Outputs c + W x + Q (x * x) + sum_r v_r (b_1r + <h_1r, x>) (b_2r + <h_2r, x>), and one more, which is 0.

    ``factors`` are (2, k, d), ``biases`` (2, k), and ``weights`` (k, m + 1).
    """

    constant: np.ndarray
    linear: np.ndarray
    squares: np.ndarray
    factors: np.ndarray
    biases: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, formula: Formula) -> Terms:
        """Return the terms of a formula; raise ``TypeError`` if there are products of more than two features."""
        d = formula.linear.shape[1]
        factors, biases = [np.zeros((2, 0, d))], [np.zeros((2, 0))]
        for term in formula.terms:
            if not isinstance(term, Products) or len(term.factors) * term.power > 2:
                raise TypeError("certified_radius needs outputs of degree 2 at most, got a model of higher degree")
            U, b = (np.repeat(part, term.power, axis=0) for part in (term.factors, term.biases))
            if len(U) == 1:
                U, b = np.concatenate([U, np.zeros_like(U)]), np.concatenate([b, np.ones_like(b)])
            factors.append(U)
            biases.append(b)
        weights = np.concatenate([np.zeros((0, len(formula.constant))), *(term.weights for term in formula.terms)])
        parts = formula.constant, formula.linear, formula.squares
        constant, linear, squares = (np.concatenate([part, np.zeros_like(part[:1])]) for part in parts)
        return cls(constant, linear, squares, np.concatenate(factors, 1), np.concatenate(biases, 1), with_zero(weights))

    def forms(self, design: Design) -> np.ndarray:
        """Return b + <h, x> for both factors, shape (2, n, k)."""
        return np.stack([design.project(U) + b for U, b in zip(self.factors, self.biases, strict=True)])


class Quadratics:
    """Differences of outputs around rows x as quadratics: f(x + scale * B u) = f(x) + <slope, u> + u'Au.

    Attributes
    ----------
    unit : float
        The power of two, times the given scale, that ``scale`` is: with it the longest units are about 1.
    scale : ndarray of shape (d,)
    basis : ndarray of shape (d, r) or None
        B, orthonormal up to rounding, which spans all that the outputs depend on; None is the identity.
    """

    def __init__(self, model: Any, scale: np.ndarray, *, reduced: bool) -> None:
        model = model._plain()  # what groups take away has moduli, too
        parameters = _parameters(model)
        absolute = {name: np.abs(value) for name, value in parameters.items()}
        self.terms = Terms.of(model._formula())
        # Classes and targets play no part in outputs, and the moduli of classes are none.
        self.moduli = Terms.of(replace(model, **(absolute | {"classes": None, "target": None}))._formula())
        largest = max(np.abs(scale * part).max(initial=0.0) for part in (self.terms.factors, self.terms.linear))
        self.unit = 1.0 / power_of_two(float(largest))
        self.scale = scale * self.unit
        # No number is the result of more operations than this, one after the other; twice, for predictions elsewhere.
        self.rounding = 2 * (2 * max(sum(np.shape(value)) for value in parameters.values()) + 64) * _EPS
        self.basis: np.ndarray | None = None
        self.factors, self.linear = self.scale * self.terms.factors, self.scale * self.terms.linear
        if reduced and not self.terms.squares.any():
            self._reduce()

    def _reduce(self) -> None:
        """Change to coordinates of the span, if it is smaller than the space; what that loses is rounding."""
        first, second = self.factors
        bends = self.linear.any(axis=1)
        vectors = np.vstack([first, *([] if np.array_equal(first, second) else [second]), self.linear[bends]])
        if not 0 < len(vectors) < self.scale.size:
            return
        self.basis = np.linalg.qr(vectors.T)[0]
        coordinates = vectors @ self.basis
        lost, lengths = _lengths(vectors - coordinates @ self.basis.T), _lengths(vectors)
        relative = np.divide(lost, lengths, out=np.zeros_like(lost), where=lengths > 0.0).max()
        self.rounding += 4.0 * (relative + far_from_orthonormal(self.basis) + len(vectors) ** 1.5 * _EPS)
        units = coordinates[: len(vectors) - bends.sum()]
        self.factors = np.stack([units[: len(first)], units[-len(first) :]]) if len(first) else units[None].repeat(2, 0)
        self.linear = np.zeros((len(bends), len(vectors)))
        self.linear[bends] = coordinates[len(units) :]

    def matrix(self, p: int, e: int) -> np.ndarray:
        """Return A (r, r) of the output p minus the output e."""
        half = (self.factors[0].T * (self.terms.weights[:, p] - self.terms.weights[:, e])) @ self.factors[1]
        A = 0.5 * (half + half.T)
        if self.basis is None:
            A += np.diag(self.scale**2 * (self.terms.squares[p] - self.terms.squares[e]))
        return A

    def slopes(self, design: Design, p: int, e: int) -> np.ndarray:
        """Return the slopes (n, r) at the rows of a design."""
        weights = self.terms.weights[:, p] - self.terms.weights[:, e]
        first, second = self.terms.forms(design) * weights
        slopes = first @ self.factors[1] + second @ self.factors[0] + (self.linear[p] - self.linear[e])
        squares = self.terms.squares[p] - self.terms.squares[e]
        return slopes + 2.0 * dense_rows(design) * (squares * self.scale) if squares.any() else slopes

    def errors(self, design: Design) -> np.ndarray:
        """Return e (n, m + 1, 3): rounding changes outputs by e_0 + e_1 ||u|| + e_2 ||u||^2 at most.

        Polynomials, their coefficients and derivatives err, relative to moduli of terms, by the number of operations.
        """
        terms = self.moduli
        # What pairs of dummies take away is part of constants, where it may have cancelled: twice their products.
        constant = np.abs(terms.constant) + 2.0 * terms.biases.prod(axis=0) @ terms.weights
        linear, squares = np.abs(terms.linear), np.abs(terms.squares)
        long1, long2 = lengths = _lengths(self.scale * terms.factors)
        slopes, curvatures = _lengths(self.scale * linear), (self.scale**2 * squares).max(axis=1)
        errors = np.empty((design.shape[0], len(constant), 3))
        for rows, block in blocks(design.absolute, lengths.size + constant.size):
            first, second = terms.forms(block)
            errors[rows, :, 0] = (first * second) @ terms.weights + block.project(linear)
            errors[rows, :, 0] += block.project_squares(squares) + constant
            errors[rows, :, 1] = (first * long2 + second * long1) @ terms.weights + slopes
            errors[rows, :, 1] += 2.0 * block.project(self.scale * squares)
        errors[:, :, 2] = (long1 * long2) @ terms.weights + curvatures
        varies = terms.weights.any(axis=0) | linear.any(axis=1) | squares.any(axis=1)
        return self.rounding * errors + np.where(varies, _UNDERFLOW, 0.0)[:, None]


def _lengths(vectors: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors (..., d), whatever the size of their entries."""
    return np.hypot.reduce(vectors, axis=-1)


def _parameters(model: Any) -> dict[str, Any]:
    """Return the fields of a model that hold real numbers."""
    values = {field.name: getattr(model, field.name) for field in fields(model)}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    }

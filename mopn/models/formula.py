"""The outputs of a model as a few terms, for NumPy and SciPy here and for exports to other languages.

All outputs are ``c + W x + Q (x * x)`` and a sum over units. Dummies have become constants: in products the sum of
their parameters gamma, in the ANOVA kernel their elementary symmetric polynomials, the start of Algorithm 1 of Blondel
et al. (Higher-Order Factorization Machines, NIPS 2016). A^2 is half the difference of ``<p, x>^2`` and of
``<p * p, x * x>``, and the latter needs no units, only Q.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from mopn.data.designs import Design, rows_at_once

_Record = TypeVar("_Record", "UnitTerm", "Formula")
Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class UnitTerm(ABC):
    """A sum over units s, with ``factors`` (..., k, d) and with ``weights`` V (k, m) in the outputs."""

    weights: np.ndarray
    factors: np.ndarray

    @abstractmethod
    def features(self, design: Design) -> np.ndarray:
        """Return the values (n, k) of the units."""


@dataclass(frozen=True)
class Products(UnitTerm):
    """prod_t (b_ts + <u_ts, x>)^power, with ``factors`` U (t, k, d) and ``biases`` b (t, k)."""

    biases: np.ndarray
    power: int

    def features(self, design: Design) -> np.ndarray:
        # In place, and without adding zeros: on one-hot rows each pass costs as much as the product with X.
        forms = [design.project(U) for U in self.factors]
        for form, b in zip(forms, self.biases, strict=True):
            if b.any():
                form += b
        product, *others = forms
        for form in others:
            product *= form
        if self.power != 1:
            product **= self.power
        return product


@dataclass(frozen=True)
class AnovaTerm(UnitTerm):
    """sum_t theta_t A^t(p_s, x); ``start`` (degree + 1, k) are A^0 to A^degree of the dummies alone."""

    start: np.ndarray
    theta: np.ndarray

    def features(self, design: Design) -> np.ndarray:
        """Return the values (n, k) of the units, by Algorithm 1."""
        if design.shape[0] == 1:
            return self._values_of_row(_entries_of_row(design.matrix(), self.factors))
        out = np.empty((design.shape[0], len(self.factors)))
        for rows, block in design.blocks(rows_at_once(self.start.size)):
            degrees = np.repeat(self.start[:, None], block.shape[0], axis=1)
            order, entries = _entries(block.matrix(), self.factors)
            for count, z in entries:
                degrees[1:, :count] += degrees[:-1, :count] * z
            out[rows][order] = np.tensordot(self.theta, degrees, 1)
        return out

    def _values_of_row(self, z: np.ndarray) -> np.ndarray:
        """Return the values (1, k) for the entries z (number, k) of a row, in a step per degree, not per entry."""
        values = np.zeros(z.shape[1])
        last = len(self.theta) - 1
        # z_j times A^{t-1} of the entries before j.
        products = z
        for t in range(1, last + 1):
            if self.theta[t]:
                values += self.theta[t] * (self.start[t] + products.sum(axis=0))
            if t < last:
                before = np.cumsum(np.vstack([self.start[t], products[:-1]]), axis=0)
                products = z * before[: len(z)]
        return values[None]


@dataclass(frozen=True)
class Subsets(UnitTerm):
    """prod_j (1 + p_js x_j), with ``factors`` P (k, d)."""

    def features(self, design: Design) -> np.ndarray:
        if design.shape[0] == 1:
            return np.prod(1.0 + _entries_of_row(design.matrix(), self.factors), axis=0, keepdims=True)
        out = np.empty((design.shape[0], len(self.factors)))
        for rows, block in design.blocks(rows_at_once(len(self.factors))):
            product = np.ones((block.shape[0], len(self.factors)))
            order, entries = _entries(block.matrix(), self.factors)
            for count, z in entries:
                product[:count] *= 1.0 + z
            out[rows][order] = product
        return out


@dataclass(frozen=True)
class Formula:
    """The outputs of a model: ``constant`` c (m,), ``linear`` W (m, d), ``squares`` Q (m, d) and terms of units."""

    constant: np.ndarray
    linear: np.ndarray
    squares: np.ndarray
    terms: tuple[UnitTerm, ...] = ()

    def __add__(self, other: Formula) -> Formula:
        return Formula(
            self.constant + other.constant,
            self.linear + other.linear,
            self.squares + other.squares,
            self.terms + other.terms,
        )

    @property
    def entries(self) -> int:
        """Entries of the largest temporary arrays for a row."""
        return max(sum(term.weights.shape) for term in self.terms) if self.terms else len(self.constant)

    def outputs(self, design: Design) -> np.ndarray:
        out = np.repeat(self.constant[None], design.shape[0], axis=0)
        for term in self.terms:
            out += term.features(design) @ term.weights
        if self.linear.any():
            out += design.project(self.linear)
        if self.squares.any():
            out += design.project_squares(self.squares)
        return out

    def of_columns(self, features: np.ndarray) -> Formula:
        """Return the formula for some features alone, by index, for rows in which all others are 0."""
        terms = tuple(replace(term, factors=term.factors[..., features]) for term in self.terms)
        return Formula(self.constant, self.linear[:, features], self.squares[:, features], terms)

    def mapped(self, function: Map) -> Formula:
        """Return the formula with another array in place of each."""
        terms = tuple(_with_mapped_arrays(term, function) for term in self.terms)
        return replace(_with_mapped_arrays(self, function), terms=terms)


def dense_rows(design: Design) -> np.ndarray:
    X = design.matrix()
    if not isinstance(X, np.ndarray):
        X = X.toarray()
    return X.astype(np.float64, copy=False)


def products(factors: np.ndarray, dummies: int, weights: np.ndarray, power: int = 1) -> Formula:
    """Return sum_s v_s prod_t <u_ts, [1, x]>^power for ``factors`` (t, k, dummies + d) and ``weights`` (k, m)."""
    biases = factors[..., :dummies].sum(axis=-1)
    return _formula_of_units(Products(weights, factors[..., dummies:], biases, power))


def pairs(P: np.ndarray, R: np.ndarray, dummies: int, weights: np.ndarray) -> Formula:
    """Return sum_s v_s (<p_s, z> <r_s, z> - <p_s * r_s, z * z>) / 2 for z = [1, x], which is A^2 if R = P."""
    half = 0.5 * weights
    diagonal = half.T @ (P * R)
    both = products(P[None], dummies, half, 2) if P is R else products(np.stack([P, R]), dummies, half)
    return replace(both, constant=-diagonal[:, :dummies].sum(axis=1), squares=-diagonal[:, dummies:])


def kernel_formula(kernel: str, theta: np.ndarray, P: np.ndarray, dummies: int, weights: np.ndarray) -> Formula:
    """Return sum_s v_s K(p_s, [1, x]) for P (k, dummies + d), A^1, ..., A^degree weighted by ``theta``."""
    gamma = P[:, :dummies]
    rest = P[:, dummies:]
    degree = len(theta)
    if kernel == "homogeneous":
        return products(P[None], dummies, weights, degree)
    if kernel == "all-subsets":
        of_dummies = np.prod(1.0 + gamma, axis=1, keepdims=True)
        return _formula_of_units(Subsets(weights * of_dummies, rest))
    if degree > 2:
        # No product has more features than there are.
        degree = min(degree, P.shape[1])
        start = np.zeros((degree + 1, len(P)))
        start[0] = 1.0
        for column in gamma.T:
            start[1:] += start[:-1] * column
        return _formula_of_units(AnovaTerm(weights, rest, start, np.append(0.0, theta[:degree])))
    first = products(P[None], dummies, theta[0] * weights)
    if degree == 1:
        return first
    second = pairs(P, P, dummies, theta[1] * weights)
    return first + second if theta[0] else second


def as_real(values: np.ndarray, dtype: type) -> np.ndarray:
    """Return numbers of a model in float32 or float64; ``ValueError`` if one is too large."""
    with np.errstate(over="ignore"):
        numbers: np.ndarray = values.astype(dtype)
    if np.isinf(numbers).any():
        raise ValueError("the model has numbers beyond float32; use dtype='float64', or scale X in training")
    return numbers


def _formula_of_units(term: UnitTerm) -> Formula:
    """Return a formula of a sum over units."""
    none = np.zeros((term.weights.shape[1], term.factors.shape[-1]))
    return Formula(none[:, 0], none, none, (term,) if len(term.weights) else ())


def _with_mapped_arrays(record: _Record, function: Map) -> _Record:
    arrays: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = function(value)
    return replace(record, **arrays)


def _entries(X: Any, P: np.ndarray) -> tuple[Any, Iterator[tuple[int, np.ndarray]]]:
    """Return an order of the rows, and for j = 1, 2, ... the j-th entries z_s = p_js x_j (count, k) of rows.

    Rows come in the order of their numbers of entries, so that the first ``count`` rows have a j-th one.
    """
    PT = np.ascontiguousarray(P.T)
    if not sparse.issparse(X):
        return slice(None), ((len(X), X[:, j, None] * PT[j]) for j in range(X.shape[1]))
    X = X.tocsr()
    lengths = np.diff(X.indptr)
    order = np.argsort(-lengths, kind="stable")
    starts = X.indptr[order]
    # The number of rows that are longer than j.
    counts = len(lengths) - np.cumsum(np.bincount(lengths))[:-1]
    entries = (starts[:count] + j for j, count in enumerate(counts))
    return order, ((len(at), X.data[at, None] * PT[X.indices[at]]) for at in entries)


def _entries_of_row(X: Any, P: np.ndarray) -> np.ndarray:
    """Return p_js x_j (number, k) for the entries of a single row; for sparse data only the stored ones."""
    if not sparse.issparse(X):
        return X[0, :, None] * P.T
    X = X.tocsr()
    return X.data[:, None] * P.T[X.indices]

"""Designs: products with the data X (n, d) and with its elementwise square, whatever the storage and augmentation.

Augmentation puts dummies in front of X: columns of ones, which are never stored. ``make_design`` validates and wraps
the user's data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.data.validation import as_numbers, compressed
from mopn.data.values import to_host
from mopn.solvers.numerics.precision import TINY
from mopn.solvers.sphere import power_of_two
from mopn.solvers.tools.blas_threads import threads_for
from mopn.solvers.tools.decorators import cached_property

# Entries of a block of rows (2 MiB of float64): two such arrays stay in the cache.
CACHE_ENTRIES = 1 << 18
# The cost of an operation on a stored entry, in operations of a matrix product.
COST_OF_ENTRY = 30.0
# Pairs of entries of one row, in all rows together, from which a compiled loop takes less time, its import included.
PAIRS_TO_COMPILE = 1e7


if TYPE_CHECKING:
    from mopn.compiled.storage import Lines


class Entries(NamedTuple):
    """The parts of sparse data that are not stored: dummies in front, and a center (d,) to subtract, if any."""

    dummies: int = 0
    center: np.ndarray | None = None


class Design(ABC):
    """Data of ``shape`` (n, d), read-only."""

    shape: tuple[int, int]

    @abstractmethod
    def project(self, H: np.ndarray) -> np.ndarray:
        """Return X H' (n, k) for H (k, d)."""

    @abstractmethod
    def adjoint(self, R: np.ndarray) -> np.ndarray:
        """Return R' X (k, d) for R (n, k)."""

    @property
    @abstractmethod
    def squares(self) -> Design:
        """The design X * X, for products."""

    def project_squares(self, H: np.ndarray) -> np.ndarray:
        """Return (X * X) H' (n, k)."""
        return self.squares.project(H)

    def adjoint_squares(self, R: np.ndarray) -> np.ndarray:
        """Return R' (X * X) (k, d)."""
        return self.squares.adjoint(R)

    @abstractmethod
    def gram(self, g: np.ndarray) -> np.ndarray:
        """Return X' diag(g) X (d, d) for g (n,)."""

    @abstractmethod
    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        """Return the total weight (d,), for each feature, of the rows in which it is not zero."""

    @abstractmethod
    def inner_products(self, unit: float) -> np.ndarray:
        """Return the inner products (n, n) of the rows of X / unit."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest modulus of an entry."""

    @property
    @abstractmethod
    def absolute(self) -> Design:
        """The design of the absolute values, or of bounds of them."""

    @abstractmethod
    def rows(self, rows: slice | np.ndarray) -> Design:
        """Return the design of some rows; a slice of rows is not copied."""

    @abstractmethod
    def matrix(self) -> Any:
        """Return X (n, d) itself, dense or sparse, dummies included; it must not be written to."""

    @abstractmethod
    def single(self) -> Design:
        """Return the design in float32, whose products with float32 arrays are computed in float32."""

    def blocks(self, size: int) -> Iterator[tuple[slice, Design]]:
        """Yield the design in blocks of ``size`` rows, or of ``least_rows`` if that is more."""
        n = self.shape[0]
        size = max(size, self.least_rows)
        for first in range(0, n, size):
            rows = slice(first, min(first + size, n))
            yield rows, self if size >= n else self.rows(rows)

    @cached_property
    def unit(self) -> float:
        """A power of two near the largest length of a row: products of X / unit neither under- nor overflow."""
        return power_of_two(math.sqrt(float(self.squared_norms.max())))

    @cached_property
    def row_products(self) -> np.ndarray:
        """<x_i, x_j> / unit^2 (n, n), cached: for few samples only."""
        return self.inner_products(self.unit)

    @cached_property
    def squared_row_products(self) -> np.ndarray:
        """<x_i * x_i, x_j * x_j> / unit^4 (n, n), cached: for few samples only."""
        return self.squares.inner_products(self.unit**2)

    @cached_property
    def row_lines(self) -> Lines:
        from mopn.compiled.storage import row_lines

        return row_lines(self.matrix())

    @property
    def without_dummies(self) -> Design:
        return self

    @property
    def full_part(self) -> tuple[Design, np.ndarray | slice]:
        """The full columns where the others are sparse, and their places; else all columns."""
        return self, slice(None)

    @property
    def entries(self) -> Entries | None:
        """The parts of sparse data that are not stored; None for dense data."""
        return None

    @property
    def least_rows(self) -> int:
        """Rows of a block for which products are worth their overhead."""
        return 1

    @property
    def stored_lines(self) -> Lines:
        """The lines of the data that products read."""
        return self.row_lines

    @property
    @abstractmethod
    def work(self) -> tuple[float, float]:
        """The cost of a product with a vector and of a Gram matrix, in multiplications of matrix products."""

    @cached_property
    def column_lines(self) -> Lines:
        from mopn.compiled.storage import column_lines

        return column_lines(self.matrix())

    @cached_property
    def squared_norms(self) -> np.ndarray:
        return self.squares.project(np.ones((1, self.shape[1])))[:, 0]

    @property
    def squared_sizes(self) -> np.ndarray:
        """Squared lengths (n,) of the terms that products with a row add up: rounding errors are relative to them."""
        return self.squared_norms

    @property
    def squared_column_sizes(self) -> np.ndarray:
        """Squared lengths (d,) of the terms that products with a column add up."""
        return self.adjoint_squares(np.ones((self.shape[0], 1)))[0]


class DenseDesign(Design):
    """Row-major dense data. Products are computed in ``dtype``, into which float32 data is converted block by block."""

    def __init__(self, X: np.ndarray, dtype: type = np.float64) -> None:
        self.X = X
        self.dtype = dtype
        self.shape = X.shape

    def _blocks(self, size: int | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks of ``size`` rows in the dtype of products; by default all rows at once if that takes no copy."""
        n, d = self.shape
        if size is None and self.X.dtype == self.dtype:
            yield slice(n), self.X
            return
        size = size or rows_at_once(d)
        for first in range(0, n, size):
            rows = slice(first, min(first + size, n))
            yield rows, self.X[rows].astype(self.dtype, copy=False)

    def project(self, H: np.ndarray) -> np.ndarray:
        with threads_for(2.0 * self.X.size * len(H)):
            blocks = [X @ H.T for _, X in self._blocks()]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        with threads_for(2.0 * self.X.size * R.shape[1]):
            return reduce(add, map(partial(_product_of_block, R), self._blocks()))

    @property
    def squares(self) -> DenseDesign:
        return _DenseSquares(self)

    def gram(self, g: np.ndarray) -> np.ndarray:
        with threads_for(2.0 * self.X.size * self.shape[1]):
            return reduce(add, map(partial(_weighted_gram, g), self._blocks(rows_at_once(self.shape[1]))))

    @property
    def work(self) -> tuple[float, float]:
        n, d = self.shape
        return float(n * d), float(n * d * d)

    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        return reduce(add, (weights[rows] @ (X != 0) for rows, X in self._blocks(rows_at_once(self.shape[1]))))

    def inner_products(self, unit: float) -> np.ndarray:
        X = self.matrix().astype(np.float64) / unit
        return X @ X.T

    @cached_property
    def largest(self) -> float:
        return float(max(self.X.max(), -self.X.min()))

    @cached_property
    def absolute(self) -> DenseDesign:
        return DenseDesign(np.abs(self.X))

    def matrix(self) -> np.ndarray:
        return self.X

    def rows(self, rows: slice | np.ndarray) -> DenseDesign:
        return DenseDesign(self.X[rows], self.dtype)

    def single(self) -> DenseDesign:
        return DenseDesign(self.X.astype(np.float32, copy=False), np.float32)


class _DenseSquares(DenseDesign):
    """X * X for dense data X, computed block by block."""

    def __init__(self, base: DenseDesign) -> None:
        super().__init__(base.X, base.dtype)
        self.base = base

    def _blocks(self, size: int | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        for rows, X in self.base._blocks(size or rows_at_once(self.shape[1])):
            yield rows, X * X

    def matrix(self) -> np.ndarray:
        X = self.base.matrix().astype(np.float64, copy=False)
        return X * X


class SparseDesign(Design):
    """CSR or CSC data without duplicate entries; only stored entries are read."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = X.shape

    @property
    def stored_columns(self) -> np.ndarray:
        """The column of every stored entry."""
        if self.X.format == "csr":
            return self.X.indices
        return np.repeat(np.arange(self.shape[1]), np.diff(self.X.indptr))

    def with_data(self, data: np.ndarray) -> SparseDesign:
        """Return the design of other numbers in the stored entries."""
        return SparseDesign(type(self.X)((data, self.X.indices, self.X.indptr), shape=self.shape))

    @cached_property
    def squares(self) -> SparseDesign:
        # In float64: rounded squares would not cancel in the anova kernel.
        data = self.X.data.astype(np.float64, copy=False)
        return self.with_data(data * data)

    def project(self, H: np.ndarray) -> np.ndarray:
        return self.X @ np.ascontiguousarray(H.T)

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        return (self.X.T @ R).T

    def gram(self, g: np.ndarray) -> np.ndarray:
        X = self._by_rows
        if 0.5 * X.nnz**2 < PAIRS_TO_COMPILE * self.shape[0]:
            return (self.X.T @ (sparse.diags_array(g) @ self.X)).toarray()
        from mopn.compiled.grams import add_gram

        half = np.zeros((self.shape[1], self.shape[1]))
        add_gram(X.data, X.indices, X.indptr, np.asarray(g, np.float64), half)
        # Every pair of entries was counted once.
        return half + half.T - np.diag(np.diag(half))

    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        nonzero = self.with_data((self.X.data != 0).astype(float))
        return nonzero.X.T @ weights

    def inner_products(self, unit: float) -> np.ndarray:
        X = self.X.astype(np.float64) / unit
        return (X @ X.T).toarray()

    @cached_property
    def largest(self) -> float:
        return float(np.abs(self.X.data).max(initial=0.0))

    @cached_property
    def absolute(self) -> SparseDesign:
        return SparseDesign(abs(self.X))

    def matrix(self) -> Any:
        return self.X

    def scaled(self, scale: np.ndarray) -> SparseDesign:
        return self.with_data(self.X.data / scale[self.stored_columns])

    @cached_property
    def _by_rows(self) -> Any:
        return self.X.tocsr()

    @property
    def entries(self) -> Entries:
        return Entries()

    @cached_property
    def work(self) -> tuple[float, float]:
        entries = np.diff(self._by_rows.indptr).astype(np.float64)
        return COST_OF_ENTRY * float(entries.sum()), COST_OF_ENTRY * float(entries @ entries)

    def rows(self, rows: slice | np.ndarray) -> SparseDesign:
        X = self._by_rows
        if not isinstance(rows, slice):
            return SparseDesign(X[rows])
        # Slices of the arrays are views.
        first, stop, _ = rows.indices(self.shape[0])
        starts = X.indptr[first : stop + 1]
        entries = slice(starts[0], starts[-1])
        arrays = (X.data[entries], X.indices[entries], starts - starts[0])
        return SparseDesign(type(X)(arrays, shape=(stop - first, self.shape[1])))

    def columns(self, columns: np.ndarray) -> SparseDesign:
        return SparseDesign(self.X[:, columns])

    def single(self) -> SparseDesign:
        return SparseDesign(self.X.astype(np.float32, copy=False))


class AugmentedDesign(Design):
    """[1, ..., 1, X] with ``dummies`` leading columns of ones."""

    def __init__(self, base: Design, dummies: int) -> None:
        self.base = base
        self.dummies = dummies
        self.shape = base.shape[0], base.shape[1] + dummies

    def project(self, H: np.ndarray) -> np.ndarray:
        P = self.base.project(H[:, self.dummies :])
        P += H[:, : self.dummies].sum(axis=1)
        return P

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        of_dummies = np.repeat(R.sum(axis=0)[:, None], self.dummies, axis=1)
        return np.hstack([of_dummies, self.base.adjoint(R)])

    @property
    def squares(self) -> AugmentedDesign:
        return AugmentedDesign(self.base.squares, self.dummies)

    def gram(self, g: np.ndarray) -> np.ndarray:
        q = self.dummies
        matrix = np.empty((self.shape[1], self.shape[1]))
        matrix[:q, :q] = g.sum()
        matrix[:q, q:] = self.base.adjoint(g[:, None])
        matrix[q:, :q] = matrix[:q, q:].T
        matrix[q:, q:] = self.base.gram(g)
        return matrix

    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        return np.concatenate([np.full(self.dummies, weights.sum()), self.base.occurrences(weights)])

    def inner_products(self, unit: float) -> np.ndarray:
        return self.base.inner_products(unit) + self.dummies / unit**2

    @property
    def largest(self) -> float:
        return max(1.0, self.base.largest) if self.dummies else self.base.largest

    @cached_property
    def absolute(self) -> AugmentedDesign:
        return AugmentedDesign(self.base.absolute, self.dummies)

    def matrix(self) -> Any:
        ones = np.ones((self.shape[0], self.dummies))
        X = self.base.matrix()
        if sparse.issparse(X):
            return sparse.hstack([ones, X], format="csr")
        return np.hstack([ones, X])

    @property
    def without_dummies(self) -> Design:
        return self.base.without_dummies

    @property
    def squared_norms(self) -> np.ndarray:
        return self.base.squared_norms + self.dummies

    @property
    def squared_sizes(self) -> np.ndarray:
        return self.base.squared_sizes + self.dummies

    @property
    def squared_column_sizes(self) -> np.ndarray:
        return np.concatenate([np.full(self.dummies, float(self.shape[0])), self.base.squared_column_sizes])

    @property
    def full_part(self) -> tuple[Design, np.ndarray | slice]:
        part, places = self.base.full_part
        if isinstance(places, slice):
            return self, places
        return AugmentedDesign(part, self.dummies), np.append(np.arange(self.dummies), self.dummies + places)

    @property
    def entries(self) -> Entries | None:
        entries = self.base.entries
        return None if entries is None else entries._replace(dummies=entries.dummies + self.dummies)

    @property
    def work(self) -> tuple[float, float]:
        return self.base.work

    @property
    def least_rows(self) -> int:
        return self.base.least_rows

    @property
    def stored_lines(self) -> Lines:
        return self.base.stored_lines

    def rows(self, rows: slice | np.ndarray) -> AugmentedDesign:
        return AugmentedDesign(self.base.rows(rows), self.dummies)

    def single(self) -> AugmentedDesign:
        return AugmentedDesign(self.base.single(), self.dummies)


def ridge_scales(squares: np.ndarray, largest: float, curvature: Any = 1.0, ridge: Any = 0.0) -> np.ndarray:
    """Return steps (d,) of coefficients that change the objective alike, for sums of squares (d,) and a ridge.

    The losses have ``curvature`` times the squares; columns (k, 1) of curvatures and ridges give scales (k, d) in the
    unit 1 / ``largest``. On one-hot rows some items occur a thousand times as often as others; without these scales
    L-BFGS then takes several times as many iterations.
    """
    unit = max(largest, TINY) if largest else 1.0
    mean = max(float(squares.mean()), TINY)
    share = ridge / (ridge + np.maximum(curvature * mean, TINY))
    return np.sqrt((2.0 - share) / (1.0 + (1.0 - share) * squares / mean)) / unit


def make_design(X: Any, dummies: int = 0) -> Design:
    """Validate X (n, d), wrap it, and put dummies in front of it; floats and canonical CSR and CSC stay."""
    design = stored_design(X)
    return AugmentedDesign(design, dummies) if dummies else design


def stored_design(X: Any, name: str = "X") -> DenseDesign | SparseDesign:
    """Validate and wrap X as :func:`make_design` does, without dummies."""
    X = to_host(X)
    if sparse.issparse(X):
        _check_shape(X.shape, name)
        X = compressed(X, name)
        if X.dtype not in (np.float32, np.float64):
            if X.dtype.kind not in "fiub":
                raise TypeError(f"{name} must hold real numbers, got dtype {X.dtype}")
            X = X.astype(np.float64)
        if not X.has_canonical_format:
            # The parts of a repeated entry cannot be squared one by one. This also sorts the indices.
            X = X.copy()
            X.sum_duplicates()
        _check_finite(np.isfinite(X.data).all(), name)
        return SparseDesign(X)
    X = as_numbers(X, name)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    _check_shape(X.shape, name)
    _check_finite(np.isfinite(X).all(), name)
    return DenseDesign(X)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        words = "must be two-dimensional (n, d), got shape"
        raise ValueError(f"{name} {words} {shape}; reshape a single feature to (n, 1)")
    if shape[0] < 1:
        raise ValueError(f"{name} is empty: it has shape {shape}")
    if shape[1] < 1:
        raise ValueError(f"{name} has 0 features (shape {shape}); give at least 1 column")


def _check_finite(finite: Any, name: str) -> None:
    if not finite:
        raise ValueError(f"{name} contains NaN or infinity; impute or drop those entries first")


def crossed(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A' B. Unlike matmul, dot lets other threads run where the result has at most 500 entries."""
    return np.dot(A.T, B)


def _product_of_block(R: np.ndarray, block: tuple[slice, np.ndarray]) -> np.ndarray:
    rows, X = block
    return np.dot(R[rows].T, X)  # as ``crossed``


def _weighted_gram(weights: np.ndarray, block: tuple[slice, np.ndarray]) -> np.ndarray:
    """Return X' diag(g) X of a block, split by the sign of g, as Y' Y takes half of the operations of X' Y."""
    # Products are by dot, as in ``crossed``.
    rows, X = block
    g = weights[rows]
    Y = X * np.sqrt(np.abs(g))[:, None]
    positive = g > 0.0
    if positive.all():
        return np.dot(Y.T, Y)
    if not positive.any():
        return -np.dot(Y.T, Y)
    above = Y[positive]
    below = Y[~positive]
    return np.dot(above.T, above) - np.dot(below.T, below)


def rows_at_once(entries: int) -> int:
    """Return the number of rows, at least 1, that stay in the cache for a number of entries per row."""
    return max(1, CACHE_ENTRIES // entries)

"""Units on the rows of the data: F(K(X, H) V + [1, X] W'), its gradients, and forms, as sums over blocks.

No array of n rows by k units is formed. Features are computed block by block or row by row and discarded: this saves
memory, and time, as they stay in the cache. In ``single`` precision they are float32; losses and sums over the blocks
are float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mopn.core.kernels import Kernel
from mopn.data.designs import Entries, crossed, rows_at_once
from mopn.data.feature_scaling import uncentered
from mopn.data.losses_of_rows import Losses
from mopn.data.relation_design import RelationDesign
from mopn.data.rows import Block, Rows

# Arrays like the outputs that a loss and its gradient take.
_ARRAYS = 4


def layer_outputs(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the product (n, m), with each output contiguous, which makes sums over the outputs fast."""
    return (weights.T @ features.T).T


class TwoLayers(ABC):
    """The sums over the rows that networks need, for units H (k, d) of any length."""

    @abstractmethod
    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        """F for weights V (k, m), and coefficients W of the linear term."""

    @abstractmethod
    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        """F, and its gradients with respect to H, V and W."""

    @abstractmethod
    def forms(self, G: Any, H: np.ndarray) -> np.ndarray:
        """Return the sums of G_ic K(h_r, x_i), shape (k, m), for G (n, m)."""

    @abstractmethod
    def products(self, G: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return half of the gradient of sum_ric W_rc G_ic K(h_r, x_i) with respect to H; W is (k, m)."""


class DenseLayers(TwoLayers):
    """By matrix products."""

    def __init__(self, rows: Rows, kernel: Kernel, *, single: bool = False) -> None:
        self.rows = rows.single() if single else rows
        self.kernel = kernel
        self.dtype = np.float32 if single else np.float64

    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        return self.rows.sum(_value, self.kernel, *self._cast(H, V, W))

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        return self.rows.sum(_value_gradient, self.kernel, *self._cast(H, V, W))

    def forms(self, G: Any, H: np.ndarray) -> np.ndarray:
        return self.rows.sum(block_forms, self.kernel, H, along=(G,))

    def products(self, G: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        return self.rows.sum(_products, self.kernel, W, H, along=(G,))

    def _cast(self, *parts: np.ndarray) -> list[np.ndarray]:
        return [part.astype(self.dtype, copy=False) for part in parts]


def _value(block: Block, kernel: Kernel, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
    return block.losses.value(_outputs(block, kernel.features(block.design, H), V, W))


def _value_gradient(
    block: Block, kernel: Kernel, H: np.ndarray, V: np.ndarray, W: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    P = block.design.project(H)
    features = kernel.features_of(block.design, H, P * P)
    value, G = block.losses.value_gradient(_outputs(block, features, V, W))
    G = G.astype(H.dtype, copy=False)
    of_weights = crossed(features, G)
    of_linear = block.linear.adjoint(G) if W.shape[1] else W
    # Of one output G is enough, in place of G V' (n, k).
    slopes, factor = (G, 2.0 * V) if V.shape[1] == 1 else (G @ V.T, 2.0)
    of_units = factor * kernel.products_of(block.design, slopes, H, P)
    return value, *(part.astype(np.float64, copy=False) for part in (of_units, of_weights, of_linear))


def _outputs(block: Block, features: np.ndarray, V: np.ndarray, W: np.ndarray) -> np.ndarray:
    outputs = layer_outputs(features, V)
    if W.shape[1]:
        outputs += block.linear.project(W)
    return outputs.astype(np.float64, copy=False)


def block_forms(block: Block, G: np.ndarray, kernel: Kernel, H: np.ndarray) -> np.ndarray:
    return crossed(kernel.features(block.design, H), G)


def _products(block: Block, G: np.ndarray, kernel: Kernel, W: np.ndarray, H: np.ndarray) -> np.ndarray:
    return kernel.products(block.design, G @ W.T, H)


class SparseLayers(TwoLayers):
    """By compiled loops over the stored entries, row by row."""

    def __init__(self, rows: Rows, kernel: Kernel, *, single: bool = False) -> None:
        assert rows.entries is not None
        self.rows = rows
        self.layout = SparseLayout(rows.entries, distinct=kernel.distinct)
        self.distinct = kernel.distinct
        self.dtype = np.float32 if single else np.float64

    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        return self.rows.sum(_sparse_value, self._layers(H, V, W))

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        layers = self._layers(H, V, W)
        value, of_constants, of_units, of_weights, of_linear = self.rows.sum(_sparse_value_gradient, layers)
        gradient = self.layout.gradient(layers.at, of_constants, of_units, len(H))
        return value, gradient, of_weights.T[: len(H)], self.layout.linear_gradient(of_linear)

    def forms(self, G: Any, H: np.ndarray) -> np.ndarray:
        layers = self._layers(H, np.zeros((len(H), 0)), np.zeros((0, 0)))
        return self.rows.sum(_sparse_forms, layers, along=(G,)).T[: len(H)]

    def products(self, G: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        layers = self._layers(H, W, np.zeros((0, 0)))
        of_constants, of_units = self.rows.sum(_sparse_products, layers, along=(G,))
        return 0.5 * self.layout.gradient(layers.at, of_constants, of_units, len(H))

    def _layers(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        at = self.layout.units(H, self.dtype)
        weights = padded(V.T, self.dtype)
        linear = self.layout.linear(W, self.dtype)
        return _Layers(self.distinct, at, at.constants(), weights, linear)


class _Layers(NamedTuple):
    """The kind of kernel, units, their constants, weights (m, k') and W' (1 + d, m) as compiled loops take them."""

    distinct: bool
    at: PaddedUnits
    constants: np.ndarray
    weights: np.ndarray
    linear: np.ndarray


def _parts(block: Block, layers: _Layers) -> Iterator[tuple[slice, Losses]]:
    """Yield rows whose outputs and slopes stay in the cache, no fewer than the units' tables have, and losses."""
    n = block.design.shape[0]
    size = max(rows_at_once(_ARRAYS * len(layers.weights)), len(layers.at.units))
    for begin in range(0, n, size):
        rows = slice(begin, min(begin + size, n))
        yield rows, block.losses.rows(rows)


def _sparse_value(block: Block, layers: _Layers) -> float:
    return sum((losses.value(_sparse_outputs(block, rows, layers)) for rows, losses in _parts(block, layers)), 0.0)


def _sparse_value_gradient(block: Block, layers: _Layers) -> tuple[float, Any, Any, Any, Any]:
    """Return the losses, and their gradients with respect to constants, units, weights and W'."""
    from mopn.compiled.degree_two import add_gradients

    distinct, at, constants, weights, linear = layers
    # Sums to which every row contributes are in float64.
    sums = np.zeros(constants.shape), np.zeros_like(at.units), np.zeros(weights.shape), np.zeros(linear.shape)
    value = 0.0
    for rows, losses in _parts(block, layers):
        of_rows, G = losses.value_gradient(_sparse_outputs(block, rows, layers))
        slopes = np.ascontiguousarray(G.T, dtype=at.units.dtype)
        add_gradients(distinct, block.lines, rows.start, rows.stop, constants, at.units, weights, slopes, *sums)
        value += of_rows
    of_constants, of_units, of_weights, of_linear = sums
    return value, of_constants, of_units.astype(np.float64, copy=False), of_weights, of_linear


def _sparse_outputs(block: Block, rows: slice, layers: _Layers) -> np.ndarray:
    from mopn.compiled.degree_two import set_outputs

    distinct, at, constants, weights, linear = layers
    outputs = np.empty((len(weights), rows.stop - rows.start), at.units.dtype)
    set_outputs(distinct, block.lines, rows.start, rows.stop, constants, at.units, weights, linear, outputs)
    return outputs.T.astype(np.float64, copy=False)


def _sparse_forms(block: Block, G: np.ndarray, layers: _Layers) -> np.ndarray:
    from mopn.compiled.degree_two import add_gradients

    slopes = np.ascontiguousarray(G.T)
    total = np.zeros((len(slopes), layers.at.units.shape[1]))
    rows = layers.distinct, block.lines, 0, len(G), layers.constants, layers.at.units
    add_gradients(*rows, None, slopes, None, None, total, None)
    return total


def _sparse_products(block: Block, G: np.ndarray, layers: _Layers) -> tuple[np.ndarray, np.ndarray]:
    from mopn.compiled.degree_two import add_gradients

    sums = (np.zeros_like(layers.constants), np.zeros_like(layers.at.units))
    slopes = np.ascontiguousarray(G.T)
    parts = layers.constants, layers.at.units, layers.weights
    add_gradients(layers.distinct, block.lines, 0, len(G), *parts, slopes, *sums, None, None)
    return sums


class RelationLayers(SparseLayers):
    """By the same loops over S and over the tables B of the design S B.

    With a = B h, a number for every row of the tables, A^2(h, x_i) is A^2(a, s_i) plus the sum of A^2(h, b) over the
    rows b that make up the sample: a linear term of S. <h, x_i>^2 is <a, s_i>^2.
    """

    def __init__(self, rows: Rows, kernel: Kernel, *, single: bool = False) -> None:
        super().__init__(rows, kernel, single=single)
        design = rows.template.without_dummies
        assert isinstance(design, RelationDesign)
        self.tables = design.tables

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        from mopn.compiled.degree_two import add_gradients

        layers = self._layers(H, V, W)
        tables = self._of_tables(H, V, W)
        value, of_constants, of_rows, of_weights, of_rest = self.rows.sum(_sparse_value_gradient, layers)
        of_units = self.tables.X.T @ of_rows
        of_linear = np.zeros(tables.linear.shape)
        slopes = np.ascontiguousarray(of_rest[1:].T, dtype=self.dtype)
        of_inside = of_weights if self.distinct else np.zeros_like(of_weights)
        sums = np.zeros(of_constants.shape), of_units, of_inside, of_linear
        add_gradients(*self._over_tables(tables), tables.weights, slopes, *sums)
        of_linear[:1] = of_rest[:1]
        gradient = self.layout.gradient(layers.at, of_constants, of_units, len(H))
        return value, gradient, of_weights.T[: len(H)], self.layout.linear_gradient(of_linear)

    def forms(self, G: Any, H: np.ndarray) -> np.ndarray:
        from mopn.compiled.degree_two import add_gradients

        nothing = np.zeros((len(H), 0)), np.zeros((0, 0))
        tables = self._of_tables(H, *nothing)
        total = self.rows.sum(_sparse_forms, self._between_tables(H, *nothing), along=(G,))
        if self.distinct:
            add_gradients(*self._over_tables(tables), None, self._slopes(G), None, None, total, None)
        return total.T[: len(H)]

    def products(self, G: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        from mopn.compiled.degree_two import add_gradients

        tables, layers = (of(H, W, np.zeros((0, 0))) for of in (self._of_tables, self._between_tables))
        of_constants, of_rows = self.rows.sum(_sparse_products, layers, along=(G,))
        of_units = self.tables.X.T @ of_rows
        if self.distinct:
            sums = np.zeros(of_constants.shape), of_units
            add_gradients(*self._over_tables(tables), tables.weights, self._slopes(G), *sums, None, None)
        return 0.5 * self.layout.gradient(layers.at, of_constants, of_units, len(H))

    def _layers(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        """Lay out a point for loops over S: the outputs within the rows of tables are its linear term."""
        from mopn.compiled.degree_two import set_outputs

        layers = self._between_tables(H, V, W)
        tables = self._of_tables(H, V, W)
        rest = np.zeros((1 + self.tables.shape[0], V.shape[1]), self.dtype)
        inside = np.empty((V.shape[1], self.tables.shape[0]), self.dtype)
        set_outputs(*self._over_tables(tables), tables.weights, tables.linear, inside)
        rest[1:] = inside.T
        if W.shape[1]:
            rest[0] = layers.linear[0]
        return layers._replace(linear=rest)

    def _between_tables(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        """Lay out a point for loops over S, without the outputs within the rows of tables."""
        layers = super()._layers(H, V, W)
        values = np.ascontiguousarray(self.tables.X @ layers.at.units, dtype=self.dtype)
        return layers._replace(at=PaddedUnits(layers.at.dummies, values))

    def _of_tables(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        """Lay out a point for loops over the tables, which have the products of distinct features; no constants."""
        layers = super()._layers(H, V if self.distinct else np.zeros_like(V), W)
        # A copy, as with one output the transpose is W itself.
        linear = layers.linear.copy()
        linear[:1] = 0.0
        return layers._replace(constants=np.zeros_like(layers.constants), linear=linear)

    def _over_tables(self, tables: _Layers) -> tuple[Any, ...]:
        """Return the first arguments of loops over the tables."""
        return self.distinct, self.tables.row_lines, 0, self.tables.shape[0], tables.constants, tables.at.units

    def _slopes(self, G: Any) -> np.ndarray:
        return np.ascontiguousarray(self.rows.sum(_by_table_row, along=(G,)).T)


def _by_table_row(block: Block, G: np.ndarray) -> np.ndarray:
    design = block.design.without_dummies
    assert isinstance(design, RelationDesign)
    return design.by_table_row(G)


def two_layers(rows: Rows, kernel: Kernel, *, single: bool = False) -> TwoLayers:
    """Return the sums for rows: dense, sparse, or of relation blocks."""
    if rows.entries is None:
        return DenseLayers(rows, kernel, single=single)
    related = isinstance(rows.template.without_dummies, RelationDesign)
    return (RelationLayers if related else SparseLayers)(rows, kernel, single=single)


class PaddedUnits(NamedTuple):
    """Units by features, padded with zeros: entries of the dummies (q, k') and of the other features (d, k')."""

    dummies: np.ndarray
    units: np.ndarray

    def constants(self) -> np.ndarray:
        """A^1 and A^2 of the dummies, (2, k')."""
        first = self.dummies.sum(axis=0)
        return np.stack([first, 0.5 * (first**2 - (self.dummies**2).sum(axis=0))])


class SparseLayout:
    """Parameters as compiled loops take them, and gradients as they return them."""

    def __init__(self, entries: Entries, *, distinct: bool) -> None:
        self.n_dummies, self.center = entries
        assert self.center is None or not distinct
        self.distinct = distinct

    def units(self, H: np.ndarray, dtype: type = np.float64) -> PaddedUnits:
        """Lay out units H (k, q + d) for compiled loops, which read x: h_0 + <h, x - c> = (h_0 - <h, c>) + <h, x>."""
        table = padded(uncentered(H, self.center, self.n_dummies).T, dtype)
        return PaddedUnits(table[: self.n_dummies], table[self.n_dummies :])

    def linear(self, W: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        """Return the coefficients W' (1 + d, m) of a linear term for compiled loops; (0, m) for an inactive one."""
        return np.ascontiguousarray((uncentered(W, self.center, 1) if W.shape[1] else W).T, dtype)

    def linear_gradient(self, of_linear: np.ndarray) -> np.ndarray:
        """Return the gradient (m, 1 + d) with respect to W from the sums (1 + d, m) of the compiled loops."""
        return self._pulled_back(of_linear.T, 1) if len(of_linear) else of_linear.T

    def gradient(self, at: PaddedUnits, of_constants: np.ndarray, of_units: np.ndarray, k: int) -> np.ndarray:
        """Return the gradient (k, q + d) from the sums of the compiled loops."""
        # The derivative of A^2 in a dummy's entry is <h, x> without its own term, and of <h, x>^2 it is 2 <h, x>.
        projections, slopes = of_constants
        if self.distinct:
            of_dummies = projections - at.dummies * slopes
        else:
            of_dummies = np.broadcast_to(2.0 * projections, at.dummies.shape)
        return self._pulled_back(np.vstack([of_dummies, of_units]).T[:k], self.n_dummies)

    def _pulled_back(self, gradient: np.ndarray, dummies: int) -> np.ndarray:
        """Return the gradient in coefficients of [1, x - c], from the gradient in coefficients of [1, x]."""
        if self.center is None:
            return gradient
        gradient = gradient.copy()
        gradient[:, dummies:] -= np.outer(gradient[:, 0], self.center)
        return gradient


def padded(table: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """Return a contiguous table with rows padded by zeros to a multiple of the width of compiled loops."""
    from mopn.compiled.jit import WIDTH

    rows, k = table.shape
    filled = np.zeros((rows, -(-k // WIDTH) * WIDTH), dtype)
    filled[:, :k] = table
    return filled

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

# Arrays of the shape of the outputs that a loss and its gradient take.
_ARRAYS_OF_LOSS = 4


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
    """The sums by matrix products."""

    def __init__(self, rows: Rows, kernel: Kernel, *, single: bool = False) -> None:
        self.rows = rows.single() if single else rows
        self.kernel = kernel
        self.dtype = np.float32 if single else np.float64

    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        layers = [part.astype(self.dtype, copy=False) for part in (H, V, W)]
        return self.rows.sum(_value, self.kernel, *layers)

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        layers = [part.astype(self.dtype, copy=False) for part in (H, V, W)]
        return self.rows.sum(_value_gradient, self.kernel, *layers)

    def forms(self, G: Any, H: np.ndarray) -> np.ndarray:
        return self.rows.sum(block_forms, self.kernel, H, along=(G,))

    def products(self, G: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        return self.rows.sum(_products, self.kernel, W, H, along=(G,))


def _value(block: Block, kernel: Kernel, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
    return block.losses.value(_outputs(block, kernel.features(block.design, H), V, W))


def _value_gradient(
    block: Block, kernel: Kernel, H: np.ndarray, V: np.ndarray, W: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return the losses of a block, and their gradients with respect to H, V and W."""
    P = block.design.project(H)
    features = kernel.features_of(block.design, H, P * P)
    value, G = block.losses.value_gradient(_outputs(block, features, V, W))
    G = G.astype(H.dtype, copy=False)
    of_weights = crossed(features, G)
    of_linear = block.linear.adjoint(G) if W.shape[1] else W
    if V.shape[1] == 1:
        # G (n, 1) takes the place of G V' (n, k).
        of_units = 2.0 * V * kernel.products_of(block.design, G, H, P)
    else:
        of_units = 2.0 * kernel.products_of(block.design, G @ V.T, H, P)
    gradients = [part.astype(np.float64, copy=False) for part in (of_units, of_weights, of_linear)]
    return value, *gradients


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
    """The sums by compiled loops over the stored entries, row by row."""

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
        """Lay out a point for compiled loops."""
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


class _GradientSums(NamedTuple):
    """Arrays to which compiled loops add gradients, or None for gradients that are not needed; in their order."""

    constants: Any = None
    units: Any = None
    weights: Any = None
    linear: Any = None


def _add_gradients(lines: Any, first: int, stop: int, layers: _Layers, slopes: Any, sums: _GradientSums) -> None:
    """Add the gradients over some rows, for loss slopes (m, rows); products need the weights of units."""
    from mopn.compiled.degree_two import add_gradients

    weights = layers.weights if sums.units is not None else None
    add_gradients(
        layers.distinct,
        lines,
        first,
        stop,
        layers.constants,
        layers.at.units,
        weights,
        slopes,
        sums.constants,
        sums.units,
        sums.weights,
        sums.linear,
    )


def _cached_parts(block: Block, layers: _Layers) -> Iterator[tuple[slice, Losses]]:
    """Yield rows that fit into the cache, and their losses; at least as many as the table of the units has."""
    n = block.design.shape[0]
    size = max(rows_at_once(_ARRAYS_OF_LOSS * len(layers.weights)), len(layers.at.units))
    for begin in range(0, n, size):
        rows = slice(begin, min(begin + size, n))
        yield rows, block.losses.rows(rows)


def _sparse_value(block: Block, layers: _Layers) -> float:
    parts = _cached_parts(block, layers)
    return sum((losses.value(_sparse_outputs(block, rows, layers)) for rows, losses in parts), 0.0)


def _sparse_value_gradient(block: Block, layers: _Layers) -> tuple[float, Any, Any, Any, Any]:
    """Return the losses, and their gradients with respect to constants, units, weights and W'."""
    units = layers.at.units
    # Sums to which every row contributes are in float64.
    sums = _GradientSums(
        constants=np.zeros(layers.constants.shape),
        units=np.zeros_like(units),
        weights=np.zeros(layers.weights.shape),
        linear=np.zeros(layers.linear.shape),
    )
    value = 0.0
    for rows, losses in _cached_parts(block, layers):
        of_rows, G = losses.value_gradient(_sparse_outputs(block, rows, layers))
        slopes = np.ascontiguousarray(G.T, dtype=units.dtype)
        _add_gradients(block.lines, rows.start, rows.stop, layers, slopes, sums)
        value += of_rows
    return value, sums.constants, sums.units.astype(np.float64, copy=False), sums.weights, sums.linear


def _sparse_outputs(block: Block, rows: slice, layers: _Layers) -> np.ndarray:
    from mopn.compiled.degree_two import set_outputs

    distinct, at, constants, weights, linear = layers
    outputs = np.empty((len(weights), rows.stop - rows.start), at.units.dtype)
    set_outputs(distinct, block.lines, rows.start, rows.stop, constants, at.units, weights, linear, outputs)
    return outputs.T.astype(np.float64, copy=False)


def _sparse_forms(block: Block, G: np.ndarray, layers: _Layers) -> np.ndarray:
    """Return the sums (m, k') of G_ic K(h_r, x_i)."""
    slopes = np.ascontiguousarray(G.T)
    total = np.zeros((len(slopes), layers.at.units.shape[1]))
    _add_gradients(block.lines, 0, len(G), layers, slopes, _GradientSums(weights=total))
    return total


def _sparse_products(block: Block, G: np.ndarray, layers: _Layers) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of the sums of G_ic K(h_r, x_i) with respect to constants and units."""
    sums = _GradientSums(constants=np.zeros_like(layers.constants), units=np.zeros_like(layers.at.units))
    _add_gradients(block.lines, 0, len(G), layers, np.ascontiguousarray(G.T), sums)
    return sums.constants, sums.units


class RelationLayers(SparseLayers):
    """The sums by the same loops over S and over the tables B of the design S B.

    With a = B h, a number for every row of the tables, A^2(h, x_i) is A^2(a, s_i) plus the sum of A^2(h, b) over the
    rows b that make up the sample: a linear term of S. <h, x_i>^2 is <a, s_i>^2.
    """

    def __init__(self, rows: Rows, kernel: Kernel, *, single: bool = False) -> None:
        super().__init__(rows, kernel, single=single)
        design = rows.template.without_dummies
        assert isinstance(design, RelationDesign)
        self.tables = design.tables

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        layers = self._layers(H, V, W)
        tables = self._within_tables(H, V, W)
        value, of_constants, of_rows, of_weights, of_rest = self.rows.sum(_sparse_value_gradient, layers)
        of_units = self.tables.X.T @ of_rows
        of_linear = np.zeros(tables.linear.shape)
        slopes = np.ascontiguousarray(of_rest[1:].T, dtype=self.dtype)
        # Without products of distinct features the tables add nothing to the weights' gradient.
        of_inside = of_weights if self.distinct else np.zeros_like(of_weights)
        sums = _GradientSums(np.zeros(of_constants.shape), of_units, of_inside, of_linear)
        self._add_over_tables(tables, slopes, sums)
        of_linear[:1] = of_rest[:1]
        gradient = self.layout.gradient(layers.at, of_constants, of_units, len(H))
        return value, gradient, of_weights.T[: len(H)], self.layout.linear_gradient(of_linear)

    def forms(self, G: Any, H: np.ndarray) -> np.ndarray:
        no_weights = np.zeros((len(H), 0))
        no_linear = np.zeros((0, 0))
        tables = self._within_tables(H, no_weights, no_linear)
        total = self.rows.sum(_sparse_forms, self._between_tables(H, no_weights, no_linear), along=(G,))
        if self.distinct:
            self._add_over_tables(tables, self._slopes(G), _GradientSums(weights=total))
        return total.T[: len(H)]

    def products(self, G: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        no_linear = np.zeros((0, 0))
        tables = self._within_tables(H, W, no_linear)
        layers = self._between_tables(H, W, no_linear)
        of_constants, of_rows = self.rows.sum(_sparse_products, layers, along=(G,))
        of_units = self.tables.X.T @ of_rows
        if self.distinct:
            sums = _GradientSums(np.zeros(of_constants.shape), of_units)
            self._add_over_tables(tables, self._slopes(G), sums)
        return 0.5 * self.layout.gradient(layers.at, of_constants, of_units, len(H))

    def _layers(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        """Lay out a point for loops over S: the outputs within the rows of tables are its linear term."""
        from mopn.compiled.degree_two import set_outputs

        layers = self._between_tables(H, V, W)
        tables = self._within_tables(H, V, W)
        n_rows = self.tables.shape[0]
        rest = np.zeros((1 + n_rows, V.shape[1]), self.dtype)
        inside = np.empty((V.shape[1], n_rows), self.dtype)
        lines = self.tables.row_lines
        units = tables.at.units
        set_outputs(self.distinct, lines, 0, n_rows, tables.constants, units, tables.weights, tables.linear, inside)
        rest[1:] = inside.T
        if W.shape[1]:
            rest[0] = layers.linear[0]
        return layers._replace(linear=rest)

    def _between_tables(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        """Lay out a point for loops over S, without the outputs within the rows of tables."""
        layers = super()._layers(H, V, W)
        values = np.ascontiguousarray(self.tables.X @ layers.at.units, dtype=self.dtype)
        return layers._replace(at=PaddedUnits(layers.at.dummies, values))

    def _within_tables(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        """Lay out a point for loops over the tables, which have the products of distinct features; no constants."""
        layers = super()._layers(H, V if self.distinct else np.zeros_like(V), W)
        # A copy, as with one output the transpose is W itself.
        linear = layers.linear.copy()
        linear[:1] = 0.0
        return layers._replace(constants=np.zeros_like(layers.constants), linear=linear)

    def _add_over_tables(self, tables: _Layers, slopes: np.ndarray, sums: _GradientSums) -> None:
        """Add the gradients over all rows of the tables, for slopes (m, rows of tables)."""
        _add_gradients(self.tables.row_lines, 0, self.tables.shape[0], tables, slopes, sums)

    def _slopes(self, G: Any) -> np.ndarray:
        """Return the slopes G, summed over the samples of each row of the tables (m, rows of tables)."""
        return np.ascontiguousarray(self.rows.sum(_by_table_row, along=(G,)).T)


def _by_table_row(block: Block, G: np.ndarray) -> np.ndarray:
    design = block.design.without_dummies
    assert isinstance(design, RelationDesign)
    return design.by_table_row(G)


def two_layers(rows: Rows, kernel: Kernel, *, single: bool = False) -> TwoLayers:
    """Return the sums for rows: dense, sparse, or of relation blocks."""
    if rows.entries is None:
        return DenseLayers(rows, kernel, single=single)
    if isinstance(rows.template.without_dummies, RelationDesign):
        return RelationLayers(rows, kernel, single=single)
    return SparseLayers(rows, kernel, single=single)


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
        if W.shape[1]:
            W = uncentered(W, self.center, 1)
        return np.ascontiguousarray(W.T, dtype)

    def linear_gradient(self, of_linear: np.ndarray) -> np.ndarray:
        """Return the gradient (m, 1 + d) with respect to W from the sums (1 + d, m) of the compiled loops."""
        return self._pulled_back(of_linear.T, 1) if len(of_linear) else of_linear.T

    def gradient(self, at: PaddedUnits, of_constants: np.ndarray, of_units: np.ndarray, k: int) -> np.ndarray:
        """Return the gradient (k, q + d) from the sums of the compiled loops."""
        # In a dummy's entry, A^2 has the derivative <h, x> without the entry itself, and <h, x>^2 has 2 <h, x>.
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
    padded_k = -(-k // WIDTH) * WIDTH
    filled = np.zeros((rows, padded_k), dtype)
    filled[:, :k] = table
    return filled

"""Rows in the arrays of another namespace, such as a GPU's: sums over blocks are computed where the data are.

Functions of blocks that are marked for any namespace get arrays of it; the others get arrays of NumPy, of smaller
blocks, each fetched when its rows are read. What sums return is in NumPy in either case.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mopn.data.cache import rows_at_once
from mopn.data.designs import Design, check_finite, check_shape
from mopn.data.device_design import DeviceDesign
from mopn.data.input_size import check_input
from mopn.data.losses_of_rows import Losses
from mopn.data.rows import TYPICAL_COLUMNS, Block, Function, KeptBlocks, PassCounter, Rows, tree_sum
from mopn.data.thread_pool import in_threads
from mopn.losses.losses import Loss
from mopn.losses.namespaces import check_has_data, is_device_array, is_for_any_namespace, namespace, to_device, to_host
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.cached import cached_property

__all__ = ["DeviceArray", "DeviceRows", "device_rows"]

# Entries of the rows of a block, their features and outputs: half a gigabyte in float64.
_BLOCK_ENTRIES = 1 << 26


class DeviceArray(NDArrayOperatorsMixin):
    """An array of n rows on a device. A slice of rows gives those of a block, in the arrays of the namespace.

    Elementwise functions of NumPy and products with matrices from the right give such arrays again.
    """

    def __init__(self, values: Any) -> None:
        self.values, self.shape = values, values.shape

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self.values[key, ...]
        rows, columns = key
        if rows != slice(None):
            raise IndexError("an array of rows has columns alone; please report this as an error of mopn")
        columns = to_device(np.asarray(columns), self.values)
        return DeviceArray(namespace(self.values).take(self.values, columns, axis=1))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # In place, z += a binds z to the new array.
        if method != "__call__" or options.keys() - {"out"}:
            return NotImplemented
        function = getattr(namespace(self.values), ufunc.__name__)
        return DeviceArray(function(*(self._operand(value) for value in inputs)))

    def _operand(self, value: Any) -> Any:
        if isinstance(value, DeviceArray):
            return value.values
        return to_device(np.asarray(value, dtype=np.float64), self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("rows on a device are not converted to NumPy; please report this as an error of mopn")


class DeviceBlock:
    """Some rows of the data, and their losses, on a device: a ``Block`` for functions for any namespace."""

    def __init__(self, design: DeviceDesign, losses: Losses, rows: slice) -> None:
        self.design, self.rows = design, rows
        self.losses = losses.on_device(design.X)

    @property
    def linear(self) -> DeviceDesign:
        """[1, X], the design of a linear term."""
        return self.design.linear


class HostBlock(Block):
    """Some rows of data on a device, in arrays of NumPy; X is fetched if it is used."""

    def __init__(self, on_device: DeviceDesign, losses: Losses, rows: slice) -> None:
        self._on_device, self.losses, self.rows = on_device, losses, rows

    @cached_property
    def design(self) -> Design:
        return self._on_device.host(self.rows)


class DeviceRows(Rows):
    """Rows of dense data on a device.

    Parameters
    ----------
    data : DeviceDesign
    losses : Losses
        The losses, in arrays of NumPy.
    size : int, optional
        Rows of a block on the device; default as many as take half a gigabyte.
    passes : PassCounter, optional
        Those of the rows of which these are a view.
    """

    entries = None

    def __init__(
        self, data: DeviceDesign, losses: Losses, size: int | None = None, passes: PassCounter | None = None
    ) -> None:
        self.data, self._passes = data, passes or PassCounter()
        self.template: Any = data
        self.losses: Losses = losses
        self.shape, self.n_features = data.shape, data.X.shape[1]
        columns = self.shape[1] + losses.n_outputs + TYPICAL_COLUMNS
        self.size = size or max(1, _BLOCK_ENTRIES // columns)
        self.blocks = [DeviceBlock(data.rows(rows), losses.rows(rows), rows) for rows in self._cut(self.size)]
        self._host_size = rows_at_once(columns)

    def _cut(self, size: int) -> list[slice]:
        n = self.shape[0]
        return [slice(first, min(first + size, n)) for first in range(0, n, size)]

    @property
    def passes(self) -> int:
        return self._passes.count

    def reduce(
        self, function: Function, *arguments: Any, along: Sequence[Any] = (), combine: Function = operator.add
    ) -> Any:
        return _to_host(tree_sum(self._terms(function, arguments, along), combine))

    def map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> DeviceArray:
        return self._joined(self._terms(function, arguments, along))

    def keep(self, function: Function, along: Sequence[Any] = ()) -> KeptBlocks:
        starts = (rows.start for rows in self._cut(self._host_size))
        return KeptBlocks(zip(starts, self._host_terms(function, (), along), strict=True))

    def sum_and_map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> tuple[Any, DeviceArray]:
        firsts: list[Any] = []

        def seconds() -> Iterator[Any]:
            for first, second in self._terms(function, arguments, along):
                firsts.append(first)
                yield second

        array = self._joined(seconds())
        return _to_host(tree_sum(firsts)), array

    def in_coordinates(self, coordinates: Any, dummies: int) -> DeviceRows:
        return self._with(DeviceDesign(self.data.X, coordinates, dummies))

    def beside(self, outputs: DeviceArray) -> DeviceRows:
        return DeviceRows(self.data, self.losses.beside(to_host(outputs.values)), self.size, self._passes)

    def single(self) -> DeviceRows:
        return self._with(self.data.single())

    def sample(self, fraction: float, seed: int) -> DeviceRows:
        rows, losses = self.losses.sample(fraction, seed)
        return DeviceRows(self.data.taken(rows), losses, self.size)

    def _with(self, data: DeviceDesign) -> DeviceRows:
        return DeviceRows(data, self.losses, self.size, self._passes)

    def _terms(self, function: Function, arguments: tuple[Any, ...], along: Sequence[Any]) -> Iterator[Any]:
        self._passes.count += 1
        if not is_for_any_namespace(function):
            yield from self._host_terms(function, arguments, along)
            return
        moved = [self._moved(argument) for argument in arguments]
        for block in self.blocks:
            yield function(block, *(self._moved(array[block.rows]) for array in along), *moved)

    def _host_terms(self, function: Function, arguments: tuple[Any, ...], along: Sequence[Any]) -> Iterator[Any]:
        def term(rows: slice) -> Any:
            block = HostBlock(self.data, self.losses.rows(rows), rows)
            return function(block, *(to_host(array[rows]) for array in along), *arguments)

        with limited_threads():
            yield from in_threads(term, self._cut(self._host_size))

    def _moved(self, argument: Any) -> Any:
        return to_device(argument, self.data.X) if isinstance(argument, np.ndarray) else argument

    def _joined(self, parts: Iterator[Any]) -> DeviceArray:
        """Return the array of the rows of blocks, on the device."""
        array, first = None, 0
        for part in map(self._moved, parts):
            if array is None:
                if part.shape[0] == self.shape[0]:
                    return DeviceArray(part)
                array = namespace(part).empty((self.shape[0], *part.shape[1:]), dtype=part.dtype, device=part.device)
            array[first : first + part.shape[0], ...] = part
            first += part.shape[0]
        return DeviceArray(array)


def _to_host(total: Any) -> Any:
    """Return what a sum found in arrays of NumPy, and numbers in place of those without axes."""
    if isinstance(total, tuple):
        return tuple(map(_to_host, total))
    if not is_device_array(total):
        return total
    return to_host(total) if total.ndim else float(total)


def device_rows(
    X: Any, y: Any, loss: str | Loss, sample_weight: Any, offset: Any, target_weight: Any = None
) -> DeviceRows:
    """Validate data on a device, and return their rows; targets, weights and offset may be of any namespace.

    Raises
    ------
    TypeError
        If X is sparse, or not of float32 or float64.
    ValueError
        For what a problem refuses in arrays of NumPy, too.
    """
    if y is None:
        raise TypeError("y is missing; give it beside X")
    layout = str(getattr(X, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise TypeError(f"X on a device must be dense, got the layout {layout}; pass a SciPy matrix for sparse data")
    check_has_data(X)
    X = X.detach() if hasattr(X, "detach") else X
    check_shape(tuple(X.shape))
    xp = namespace(X)
    if X.dtype not in (xp.float32, xp.float64):
        raise TypeError(f"X on a device must be float32 or float64, got {X.dtype}; convert it first")
    losses = Losses.of_data(loss, *map(to_host, (y, X.shape[0], sample_weight, offset, target_weight)))
    rows = DeviceRows(DeviceDesign(X), losses)
    check_finite(all(bool(xp.all(xp.isfinite(block.design.X))) for block in rows.blocks))
    check_input(rows.largest, "X")
    if losses.weights is not None:
        check_input(losses.weights, "sample_weight")
    return rows

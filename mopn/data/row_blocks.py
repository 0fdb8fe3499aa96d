"""Data that need not fit into memory: a sequence of blocks of rows, read one after the other in every pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.data.validation import as_array, as_numbers
from mopn.data.values import to_host
from mopn.solvers.tools.checks import count, shown
from mopn.solvers.tools.display import Displayed
from mopn.solvers.tools.signals import signals_later

_READS = ".npy (dense), .npz (of scipy.sparse.save_npz) and .parquet"


class RawBlock(NamedTuple):
    """A block with X (n_b, d), the targets and the weights, or None."""

    number: int
    X: Any
    y: Any
    sample_weight: Any


class RowBlocks(Displayed):
    """Training data as blocks of rows, with at most two blocks in memory at a time.

    Pass it as X to :class:`mopn.NetworkProblem` or to ``fit`` of an estimator of networks. Every pass over the data
    reads the blocks in their order, each while the previous one is processed. Results depend on the blocks up to
    rounding, and not on threads.

    Parameters
    ----------
    X : array, path or sequence
        A dense array or ``numpy.memmap`` (n, d), or the path of a ``.npy`` file with one, is cut into blocks of
        ``size`` rows. A sequence has an entry for each block: an array, a sparse matrix or a frame, a file's path
        (``.npy``, ``.npz`` as SciPy saves CSR matrices, ``.parquet`` with pyarrow), or a callable without arguments
        that always returns the same X, (X, y) or (X, y, sample_weight). Columns of Parquet files and frames are put
        into the order of the first block that has names. Estimators other than of tables need numbers.
    y : array-like of shape (n,) or (n, m), optional
        The targets of all rows, which stay in memory; or None if the callables return them.
    sample_weight : array-like of shape (n,), optional
        The weights of all rows, likewise.
    size : int, default 65536
        Rows of the blocks into which a single array is cut.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> rng = np.random.default_rng(0)
    >>> parts = [rng.uniform(-1, 1, (100, 4)) for _ in range(3)]
    >>> y = np.concatenate([np.sign(X[:, 0] * X[:, 1]) for X in parts])
    >>> blocks = mopn.RowBlocks(parts, y)
    >>> blocks
    RowBlocks(blocks=3, y=(300,))
    >>> problem = mopn.NetworkProblem(blocks, loss="logistic", strength=1.0)
    >>> mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-2).success
    True
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, *, size: int = 65_536) -> None:
        size = count()(size, "size")
        if isinstance(X, str | os.PathLike):
            X = _blocks_of_npy(Path(X), size)
        elif isinstance(X, np.ndarray):
            if X.ndim != 2:
                raise ValueError(f"X must be two-dimensional (n, d), got shape {X.shape}")
            if not len(X):
                raise ValueError(f"X is empty: shape {X.shape}")
            X = [X[first : first + size] for first in range(0, len(X), size)]
        elif not isinstance(X, Sequence) or not len(X):
            raise TypeError(
                "X must be an array, the path of a .npy file, or a sequence of blocks that is not empty, as each is "
                f"read many times, got {shown(X)}; in place of a generator give a list of functions, such as "
                "[lambda name=name: load(name) for name in names]"
            )
        self.blocks: list[Any] = [_checked_block(block, number) for number, block in enumerate(X)]
        # Whether targets and weights of the blocks are ignored.
        self.only_X = False
        # The names of the columns, in all copies, from the first block with names that is read.
        self.columns: list[Any] = []
        # Returns X from the data of a block and its name in messages, if X is not an array.
        self.convert: Callable[[Any, str], Any] | None = None
        # The number of all rows, after the first pass.
        self._n_rows: int | None = None
        self.given_y = y  # categories have their order here
        self.y = None if y is None else as_array(y, "y")
        self.sample_weight = None if sample_weight is None else as_numbers(sample_weight, "sample_weight")

    def _entries(self) -> dict[str, str]:
        given = {"y": self.y, "sample_weight": self.sample_weight}
        entries = {"blocks": str(len(self.blocks))}
        for name, values in given.items():
            if values is not None:
                entries[name] = str(values.shape)
        return entries

    def with_targets(self, y: Any, sample_weight: Any, plain: Callable[[Any], Any] | None = None) -> RowBlocks:
        """Return the same blocks with the targets ``plain(y)`` and the weights of all rows, where given."""
        if y is None and sample_weight is None and plain is None:
            return self
        for name, new, old in (("y", y, self.y), ("sample_weight", sample_weight, self.sample_weight)):
            if new is not None and old is not None:
                raise ValueError(f"{name} was given with the blocks already; give it once")
        changes: dict[str, Any] = {}
        if y is None:
            y = self.given_y
        if plain is not None:
            y = plain(y)
        if y is not None:
            targets = as_array(y, "y")
            changes["y"] = targets
            changes["given_y"] = targets
        if sample_weight is not None:
            changes["sample_weight"] = as_numbers(sample_weight, "sample_weight")
        return self._with(**changes)

    def read_by(self, convert: Callable[[Any, str], Any]) -> RowBlocks:
        """Return the same blocks, with X made by a function of the data, such as a frame, and a name for messages."""
        return self._with(convert=convert)

    def _with(self, **changes: Any) -> RowBlocks:
        other = copy(self)
        vars(other).update(changes, _n_rows=None)
        return other

    def with_targets_in_memory(self) -> tuple[RowBlocks, np.ndarray, np.ndarray | None]:
        """Return blocks of X alone, and the targets and weights of all rows."""
        y, weights = self.y, self.sample_weight
        if y is None:
            # Without X, which would not fit into memory.
            blocks = [block._replace(X=None) for block in self if np.shape(block.X)[0]]
            missing = [block.number for block in blocks if block.y is None]
            if missing:
                raise ValueError(f"block {missing[0]}: there is no y: give it for all blocks, or with every block")
            parts = [as_array(block.y, "y") for block in blocks]
            y = np.concatenate(parts or [np.empty(0)])
            if weights is None and all(block.sample_weight is not None for block in blocks):
                weights = np.concatenate([as_numbers(block.sample_weight, "sample_weight") for block in blocks])
        if not len(y):
            raise ValueError("X is empty: its blocks have no rows")
        return self._with(y=None, given_y=None, sample_weight=None, only_X=True), y, weights

    def __len__(self) -> int:
        return len(self.blocks)

    def read(self, number: int) -> RawBlock:
        """Return X of a block, and its targets and weights, if it has them; errors name the block."""
        block = self.blocks[number]
        try:
            found = _read(block)
        except (FileNotFoundError, PermissionError, ImportError, MemoryError) as error:
            raise type(error)(f"block {number} cannot be read: {error}") from error
        except Exception as error:
            raise OSError(f"block {number} cannot be read: {error!r}") from error
        parts = found if isinstance(found, tuple) else (found,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(f"block {number} must be X, (X, y) or (X, y, sample_weight), got {len(parts)} parts")
        X, y, weights = (*parts, None, None)[:3]
        raw = RawBlock(number, X, None, None) if self.only_X else RawBlock(number, X, y, weights)
        name = block.name if isinstance(block, Path) else "X"
        convert = self.convert or self._array
        return raw._replace(X=named(raw, lambda raw: convert(raw.X, name)))

    def _array(self, X: Any, name: str) -> Any:
        """Return X as an array or sparse matrix, its columns in the order of the first block that has names."""
        names = getattr(X, "column_names", getattr(X, "columns", None))
        if names is None:
            return row_by_row(X)
        found = list(names)
        expected = self.columns or list(names)
        self.columns[:] = expected
        if set(found) != set(expected) or len(found) != len(expected):
            lacking = sorted(set(expected) - set(found), key=str)
            other = sorted(set(found) - set(expected), key=str)
            raise ValueError(
                f"{name} has other columns than the blocks before: it lacks {shown(lacking)} and has {shown(other)}"
            )
        if hasattr(X, "column_names"):  # a table of Arrow, such as of a Parquet file
            return np.column_stack([as_numbers(X[column].to_numpy(), f"column {column!r}") for column in expected])
        if found != expected:
            X = np.asarray(X)[:, [found.index(column) for column in expected]]
        return row_by_row(X)

    def __iter__(self) -> Iterator[RawBlock]:
        """Yield the blocks in their order; a thread reads the next one meanwhile."""
        first = 0
        with ThreadPoolExecutor(1, thread_name_prefix="mopn-read") as reader:
            following = reader.submit(self.read, 0)
            for number in range(len(self)):
                block = following.result()
                if number + 1 < len(self):
                    following = reader.submit(self.read, number + 1)
                rows = slice(first, first + np.shape(block.X)[0])
                first = rows.stop
                yield self._with_targets(block, rows)
        if self._n_rows not in (None, first):
            raise OSError(
                f"the blocks have {first} rows now, and had {self._n_rows} when they were read first; a block must be "
                "the same whenever it is read"
            )
        self._n_rows = first
        for name, values in (("y", self.y), ("sample_weight", self.sample_weight)):
            if values is not None and len(values) != first:
                raise ValueError(
                    f"{name} must have one row per sample: the blocks have {first} rows, {name} has {len(values)}"
                )

    def _with_targets(self, block: RawBlock, rows: slice) -> RawBlock:
        """Return a block with its targets and weights, from these rows of the arrays if all were given at once."""
        for name, own, given in (("y", block.y, self.y), ("sample_weight", block.sample_weight, self.sample_weight)):
            if own is not None and given is not None:
                raise ValueError(
                    f"block {block.number} returned {name}, but {name} was also passed to RowBlocks; give it once"
                )
        y = block.y if self.y is None else self.y[rows]
        weights = block.sample_weight if self.sample_weight is None else self.sample_weight[rows]
        return RawBlock(block.number, block.X, y, weights)


def row_by_row(X: Any) -> Any:
    """Return dense X in C order, so that blocks of any origin have the same last bits."""
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def named(block: RawBlock, function: Callable[[RawBlock], Any]) -> Any:
    """Call a function of a block; its errors name the block."""
    try:
        return function(block)
    except (ValueError, TypeError) as error:
        raise type(error)(f"block {block.number}: {error}") from error


def _checked_block(block: Any, number: int) -> Any:
    """Return the entry of a block, with the names of files as paths."""
    if isinstance(block, str | os.PathLike):
        path = Path(block)
        if path.suffix not in (".npy", ".npz", ".parquet"):
            raise ValueError(f"block {number} is the file {path.name!r}; {_READS} files can be read")
        return path
    block = to_host(block)
    is_frame = hasattr(block, "columns") or hasattr(block, "column_names")
    if is_frame or callable(block) or sparse.issparse(block) or isinstance(block, np.ndarray):
        return block
    raise TypeError(
        f"block {number} must be an array, a sparse matrix, a frame, a path or a callable, got {shown(block)}"
    )


def _read(block: Any) -> Any:
    """Return the data of a block's entry."""
    if isinstance(block, Path):
        return _READERS[block.suffix](block)
    if callable(block):
        return to_host(block())
    if isinstance(block, np.memmap):
        return np.array(block)  # read here, ahead of its use
    return block


def _parquet(path: Path) -> Any:
    try:
        with signals_later():
            from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ImportError("Parquet files need pyarrow; install it by pip install pyarrow") from None
    return parquet.read_table(path)


_READERS: dict[str, Callable[[Path], Any]] = {".npy": np.load, ".npz": sparse.load_npz, ".parquet": _parquet}


def _blocks_of_npy(path: Path, size: int) -> list[_Slice]:
    """Return readers of blocks of rows of a dense array in a file, which is never mapped into memory."""
    if path.suffix != ".npy":
        raise ValueError(f"X is the path {path.name!r}; a single file must be .npy. Give several files as a list")
    with path.open("rb") as file:
        if np.lib.format.read_magic(file) == (1, 0):
            shape, in_columns, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, in_columns, dtype = np.lib.format.read_array_header_2_0(file)
        offset = file.tell()
    if len(shape) != 2 or dtype.hasobject or (in_columns and shape[1] > 1):
        raise ValueError(f"{path.name} must hold a two-dimensional array of numbers, row by row (C order); got {shape}")
    n, d = shape
    return [_Slice(path, dtype, offset, first, min(size, n - first), d) for first in range(0, n, size)]


class _Slice(NamedTuple):
    """Rows of an array in a ``.npy`` file; calling it reads them."""

    path: Path
    dtype: np.dtype
    offset: int
    first: int
    rows: int
    columns: int

    def __call__(self) -> np.ndarray:
        start = self.offset + self.first * self.columns * self.dtype.itemsize
        X = np.fromfile(self.path, self.dtype, self.rows * self.columns, offset=start)
        if X.size != self.rows * self.columns:
            raise OSError(f"{self.path.name} ends before row {self.first + self.rows}")
        return X.reshape(self.rows, self.columns)

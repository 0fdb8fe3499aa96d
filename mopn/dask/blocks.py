"""Blocks of rows that the workers of a Dask cluster hold, sums over them, and the problem of networks on them."""

from __future__ import annotations

import ctypes
import operator
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, NoReturn
from uuid import uuid4

import cloudpickle
import dask.array as da
import distributed
import numpy as np
from dask.core import flatten

from mopn.data.chunked_rows import Chunks, stored_numbers
from mopn.data.row_blocks import RawBlock, named
from mopn.data.rows import Function, tree_sum
from mopn.data.validation import distinct_labels
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.checks import check_seconds, shown
from mopn.solvers.tools.decorators import door

# Seconds that a pass may take.
TIMEOUT = 3600.0
# A wait is cut into parts of so many seconds; after each, the cluster is looked at. Its answers may take a few of them.
_PART, _ANSWER = 2.0, 30.0
_MEMORY = "workers exceeded their limit of memory; give them more, or use smaller chunks"
# Terms that a task adds up: a power of two, for a branch of the tree.
_BRANCH = 8
# Parameters of glibc's mallopt: the free memory kept at the end of the heap, and the size from which arrays are mapped.
_MALLOPT = {-3: 31 << 20, -1: 62 << 20}
# Stored numbers of small blocks that a task takes together: a pass over them takes as long as Dask's work for a task.
_TOGETHER = 1 << 20
# Bytes of a task from which workers get it from each other, once each, and not from the scheduler with every block.
_LARGE = 1 << 18


class DaskBlocks(Chunks):
    """Blocks on the workers, in ``groups`` of ``size``, a power of two; blocks of a dead worker are computed anew."""

    def __init__(self, client: Any, groups: Sequence[Any], timeout: float, classes: Any = None, size: int = 1) -> None:
        self.client, self.groups, self.timeout, self.classes, self.size = client, groups, timeout, classes, size
        # The error that ended a pass: no other pass waits for the same cluster again.
        self._lost: OSError | None = None

    def count(self) -> int:
        """Return how many numbers X stores, in all blocks; the first pass computes the blocks."""
        return self._reduce(lambda block: stored_numbers(block.X), operator.add)

    def gathered(self) -> list[RawBlock]:
        """Return all blocks, in this process."""
        return self._reduce(lambda block: [block], operator.add)

    def grouped(self, stored: int) -> DaskBlocks:
        """Return the same blocks, several small ones a task; ``stored`` numbers are in all."""
        workers = sum(self._asked("ncores", workers=None).values()) or 1
        n = len(self.groups)
        size = 1
        # A task for each thread, at least.
        while 2 * size * workers <= n and 2 * size * stored <= _TOGETHER * n:
            size *= 2
        if size == 1:
            return self
        name = f"mopn-group-{uuid4().hex}"
        parts = [self.groups[first : first + size] for first in range(0, n, size)]
        graph = {(name, number): (_chained, *part) for number, part in enumerate(parts)}
        return self._with(graph, list(graph), self.classes, size)

    def replaced(self, task: Callable[[RawBlock], RawBlock], classes: np.ndarray | None) -> DaskBlocks:
        """Return other blocks, which are computed from these once."""
        graph, keys = self._tasks("mopn-block", lambda block: [task(block)], operator.add)
        return self._with(graph, keys, classes, self.size)

    def _with(self, graph: dict[Any, Any], keys: list[Any], classes: np.ndarray | None, size: int) -> DaskBlocks:
        self._check_connection()
        return DaskBlocks(self.client, self.client.get(graph, keys, sync=False), self.timeout, classes, size)

    def _reduce(self, task: Callable[[RawBlock], Any], combine: Function) -> Any:
        """Return the combined terms, by a task for every group and branch; ``OSError`` without the cluster."""
        if self._lost is not None:
            raise self._lost
        try:
            self._check_connection()
            graph, keys = self._tasks("mopn-term", task, combine)
            while len(keys) > 1:
                name = f"mopn-sum-{uuid4().hex}"
                branches = [keys[first : first + _BRANCH] for first in range(0, len(keys), _BRANCH)]
                keys = [(name, number) for number in range(len(branches))]
                graph |= {key: (_branch, combine, *terms) for key, terms in zip(keys, branches, strict=True)}
            return self._result(graph, keys)
        except OSError as error:
            self._lost = error
            raise

    def _tasks(self, name: str, task: Callable[[RawBlock], Any], combine: Function) -> tuple[dict[Any, Any], list[Any]]:
        """Return the graph of a task for every group, which combines the terms of its blocks, and its keys."""
        # As bytes, so that nothing looks into it, and threads of a worker share no object.
        graph: dict[Any, Any] = {}
        name = f"{name}-{uuid4().hex}"
        sent = cloudpickle.dumps((task, combine))
        if len(sent) > _LARGE:
            graph[f"{name}-parameters"] = (bytes, sent)
            sent = f"{name}-parameters"
        keys = [(name, number) for number in range(len(self.groups))]
        tasks = {key: (_call, sent, key[1] * self.size, group) for key, group in zip(keys, self.groups, strict=True)}
        return graph | tasks, keys

    def _result(self, graph: dict[Any, Any], key: list[Any]) -> Any:  # noqa: RET503  (``_raise`` does not return)
        began = time.monotonic()
        future = None
        while True:
            try:
                if future is None:
                    (future,) = self.client.get(graph, key, sync=False)
                error = future.exception(timeout=_PART)
                if error is None:
                    # Longer each time, as a large one may take more than a part of the time to come here.
                    return future.result(timeout=_PART + time.monotonic() - began)
                break
            except distributed.TimeoutError:
                self._check_cluster(began + self.timeout)
            except Exception as lost:
                error = lost
                break
        self._raise(error)

    def _raise(self, error: BaseException) -> NoReturn:
        """Raise the error of a task, with the number of the block that caused it."""
        self._check_connection()
        for number, group in enumerate(self.groups):
            if group.status == "error":
                cause = group.exception(timeout=_ANSWER)
                self._check_memory(cause)
                if isinstance(cause, (ValueError, TypeError)) and str(cause).startswith("block "):
                    raise cause  # an error of the data
                first = number * self.size
                blocks = f"block {first}" if self.size == 1 else f"a block of {first} to {first + self.size - 1}"
                raise OSError(f"{blocks} cannot be computed: {cause!r}") from cause
        self._check_memory(error)
        if isinstance(error, CancelledError):
            raise ConnectionError(f"the Dask cluster no longer has the data: {error}") from error
        raise error

    def _check_memory(self, error: BaseException) -> None:
        if isinstance(error, distributed.scheduler.KilledWorker):
            why = _MEMORY if self._restarts_for_memory() else "their logs say why; often they lack memory"
            raise ConnectionError(f"a task ended a Dask worker several times: {why}") from error

    def _restarts_for_memory(self) -> bool:
        return bool(self._asked("events", topic="worker-restart-memory"))

    def _asked(self, what: str, **arguments: Any) -> Any:
        try:
            return self.client.sync(getattr(self.client.scheduler, what), **arguments, callback_timeout=_ANSWER)
        except (OSError, distributed.TimeoutError) as error:
            raise self._lost_scheduler(error) from error

    def _check_connection(self) -> None:
        status = self.client.status
        if status in ("closing", "closed"):
            raise ConnectionError(f"the Dask client is {status}; keep it open until the fit is over")
        if status != "running":
            raise self._lost_scheduler(f"the client is {status}")

    def _lost_scheduler(self, why: object) -> ConnectionError:
        return ConnectionError(
            f"the Dask scheduler does not answer: {why}; the blocks of rows of its workers are "
            "lost and have to be made anew on another cluster"
        )

    def _check_cluster(self, end: float) -> None:
        """Raise an error at the end of the time, and if no worker is there or comes within a while."""
        self._check_connection()
        until = min(end, time.monotonic() + _ANSWER)
        while not self._asked("ncores", workers=None):
            if time.monotonic() > until:
                why = f": {_MEMORY}" if self._restarts_for_memory() else ""
                raise TimeoutError(f"the Dask cluster has had no worker for {_ANSWER:.0f} seconds{why}")
            time.sleep(_PART)
            self._check_connection()
        if time.monotonic() > end:
            raise TimeoutError(f"a pass over the data took more than {self.timeout:g} seconds; give a larger timeout")


def dask_blocks(X: Any, y: Any, sample_weight: Any, classes: Any, client: Any, timeout: float) -> DaskBlocks:
    """Return the blocks of dask arrays or DataFrames, as they are; the cluster begins to compute them."""
    timeout = check_seconds(timeout, "timeout")
    classes = None if classes is None else distinct_labels(classes, "classes")[0]
    X = _in_partitions(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional (n, d), got {X.ndim} dimensions")
    given = (y, "y"), (sample_weight, "sample_weight")
    arrays = [X, *(None if part is None else _beside(X, part, name) for part, name in given)]
    client = _client() if client is None else client
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise TypeError(f"client must be a dask.distributed.Client that is not asynchronous, got {shown(client)}")
    operands = [part for array in arrays for part in (array, None if array is None else "ijk"[: array.ndim])]
    # Lists of the one chunk of columns, as nothing is to be concatenated.
    options = {"concatenate": False, "align_arrays": False, "dtype": object, "meta": np.empty(0, dtype=object)}
    held = client.persist(da.blockwise(_raw_block, "i", *operands, token="mopn-rows", **options))
    futures = held.__dask_graph__()
    return DaskBlocks(client, [futures[key] for key in flatten(held.__dask_keys__())], timeout, classes)


def arranged(blocks: DaskBlocks, stored: int, convert: Callable[[Any], Any]) -> DaskBlocks:
    """Return blocks for passes: arrays, X as ``convert`` makes it of a chunk; small ones are taken together."""
    return blocks.grouped(stored).replaced(partial(_plain, convert=convert), blocks.classes)


def check_collection(values: Any, name: str) -> None:
    """Raise an error unless values are a dask array, DataFrame or Series with all columns in one chunk."""
    if hasattr(values, "map_partitions"):
        return
    if not isinstance(values, da.Array):
        raise TypeError(
            f"{name} must be a dask array or DataFrame with its rows in chunks, got {shown(values)}; "
            f"make one by dask.array.from_array({name}, chunks=...)"
        )
    if values.ndim > 1 and values.numblocks[1] > 1:
        raise ValueError(
            f"{name} has {values.numblocks[1]} chunks of columns, and each block needs all columns; "
            f"use {name}.rechunk({{1: -1}})"
        )


def _in_partitions(values: Any, name: str) -> Any:
    """Return a dask array whose blocks are the partitions of a DataFrame or Series; a dask array as it is."""
    check_collection(values, name)
    if not hasattr(values, "map_partitions"):
        return values
    empty = np.empty((0, len(values.columns)) if values.ndim > 1 else 0, object)
    return values.map_partitions(_same, meta=empty, enforce_metadata=False)


def _same(values: Any) -> Any:
    return values


def _beside(X: Any, values: Any, name: str) -> Any:
    """Return the array of y or the weights, in the same chunks of rows as X."""
    values = _in_partitions(values, name)
    rows = X.chunks[0]
    other = values.chunks[0]
    if np.isnan([*rows, *other]).any():
        if len(rows) != len(other):
            raise ValueError(
                f"X has {len(rows)} blocks of rows and {name} {len(other)}, and their sizes are not known; "
                "call compute_chunk_sizes() of both, or divide them alike"
            )
        return values
    if sum(rows) != sum(other):
        raise ValueError(f"{name} must have one row per sample: X has {sum(rows)} rows, {name} has {sum(other)}")
    return values if rows == other else values.rechunk({0: rows})


def _client() -> distributed.Client:
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError("there is no Dask client: make one by dask.distributed.Client(), or give client=") from None


def _raw_block(*parts: Any) -> list[RawBlock]:
    return [RawBlock(-1, *(part[0] if isinstance(part, list) else part for part in parts))]


def _plain(block: RawBlock, convert: Callable[[Any], Any]) -> RawBlock:
    """Return a block whose y and weights are arrays."""
    y, weights = (None if part is None else np.asarray(part) for part in (block.y, block.sample_weight))
    return named(block, lambda block: RawBlock(block.number, convert(block.X), y, weights))


def _chained(*groups: list[RawBlock]) -> list[RawBlock]:
    return [block for group in groups for block in group]


def _keep_freed_memory() -> None:
    """Let glibc keep freed memory in a worker: else a pass takes up to 3.5 times as long (benchmarks/scaling)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        for parameter, size in _MALLOPT.items():
            mallopt(parameter, size)


@door
def _call(sent: bytes, first: int, group: list[RawBlock]) -> Any:
    _keep_freed_memory()
    # A thread of a worker is a core: the terms do not start threads.
    with limited_threads(1):
        task, combine = cloudpickle.loads(sent)
        return tree_sum((task(block._replace(number=first + j)) for j, block in enumerate(group)), combine)


def _branch(combine: Function, *terms: Any) -> Any:
    return tree_sum(terms, combine)

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
from mopn.solvers.tools.decorators import quiet

# Seconds that a pass may take.
TIMEOUT = 3600.0
# Seconds of a part of a wait for a result; after each part, the state of the cluster is checked.
_PART_SECONDS = 2.0
# Seconds that the cluster has for an answer.
_ANSWER_SECONDS = 30.0
_OUT_OF_MEMORY = "workers exceeded their limit of memory; give them more, or use smaller chunks"
# Terms that a task adds up: a power of two, for a branch of the tree.
_TERMS_PER_TASK = 8
# Parameters of glibc's mallopt: the size from which arrays are mapped, and the free memory kept at the end of the heap.
_MALLOPT = {-3: 31 << 20, -1: 62 << 20}
# Stored numbers of the small blocks of a task: a pass over them takes as long as Dask's own work for a task.
_NUMBERS_PER_TASK = 1 << 20
# Bytes of a task from which workers get it from each other, once each, and not from the scheduler with every block.
_LARGE_TASK_BYTES = 1 << 18


class DaskBlocks(Chunks):
    """Blocks on the workers, in ``groups`` of ``size``, a power of two.

    Blocks of a dead worker are computed again.
    """

    def __init__(self, client: Any, groups: Sequence[Any], timeout: float, classes: Any = None, size: int = 1) -> None:
        self.client, self.groups, self.timeout, self.classes, self.size = client, groups, timeout, classes, size
        # The error that ended a pass: no later pass waits for the same cluster.
        self._lost: OSError | None = None

    def count(self) -> int:
        """Return how many numbers X stores, in all blocks; the first pass computes the blocks."""
        return self._reduce(lambda block: stored_numbers(block.X), operator.add)

    def gathered(self) -> list[RawBlock]:
        """Return all blocks, in this process."""
        return self._reduce(lambda block: [block], operator.add)

    def grouped(self, stored: int) -> DaskBlocks:
        """Return the same blocks, with several small ones in a task; they store ``stored`` numbers in all."""
        n_threads = sum(self._ask_scheduler("ncores", workers=None).values()) or 1
        n = len(self.groups)
        size = 1
        # At least one task for each thread.
        while 2 * size * n_threads <= n and 2 * size * stored <= _NUMBERS_PER_TASK * n:
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

    def exchanged(
        self, split: Callable[[RawBlock], list[Any]], join: Callable[[list[Any]], RawBlock], number: int
    ) -> DaskBlocks:
        """Return ``number`` other blocks, each joined from a part of every block."""
        graph, keys = self._tasks("mopn-split", lambda block: [split(block)], operator.add)
        name = f"mopn-part-{uuid4().hex}"
        joined = f"mopn-joined-{uuid4().hex}"
        for place in range(number):
            for of_group, key in enumerate(keys):
                graph[(name, place, of_group)] = (_parts, key, place)
            parts = [(name, place, of_group) for of_group in range(len(keys))]
            graph[(joined, place)] = (_joined_parts, join, *parts)
        return self._with(graph, [(joined, place) for place in range(number)], None, 1)

    def _with(self, graph: dict[Any, Any], keys: list[Any], classes: np.ndarray | None, size: int) -> DaskBlocks:
        self._check_connection()
        groups = self.client.get(graph, keys, sync=False)
        return DaskBlocks(self.client, groups, self.timeout, classes, size)

    def _reduce(self, task: Callable[[RawBlock], Any], combine: Function) -> Any:
        """Return the combined terms, by a task for every group and branch; ``OSError`` without the cluster."""
        if self._lost is not None:
            raise self._lost
        try:
            self._check_connection()
            graph, keys = self._tasks("mopn-term", task, combine)
            while len(keys) > 1:
                name = f"mopn-sum-{uuid4().hex}"
                branches = [keys[first : first + _TERMS_PER_TASK] for first in range(0, len(keys), _TERMS_PER_TASK)]
                keys = [(name, number) for number in range(len(branches))]
                for key, terms in zip(keys, branches, strict=True):
                    graph[key] = (_combine_terms, combine, *terms)
            return self._result(graph, keys)
        except OSError as error:
            self._lost = error
            raise

    def _tasks(self, name: str, task: Callable[[RawBlock], Any], combine: Function) -> tuple[dict[Any, Any], list[Any]]:
        """Return the graph of a task for every group, which combines the terms of its blocks, and its keys."""
        graph: dict[Any, Any] = {}
        name = f"{name}-{uuid4().hex}"
        # As bytes, so that Dask does not look into the task, and threads of a worker share no object.
        sent = cloudpickle.dumps((task, combine))
        if len(sent) > _LARGE_TASK_BYTES:
            graph[f"{name}-parameters"] = (bytes, sent)
            sent = f"{name}-parameters"
        keys = []
        for number, group in enumerate(self.groups):
            key = (name, number)
            graph[key] = (_call, sent, number * self.size, group)
            keys.append(key)
        return graph, keys

    def _result(self, graph: dict[Any, Any], key: list[Any]) -> Any:  # noqa: RET503  (``_raise`` does not return)
        """Return the result of a graph, while the cluster is there and the time is not over."""
        began = time.monotonic()
        future = None
        while True:
            try:
                if future is None:
                    (future,) = self.client.get(graph, key, sync=False)
                error = future.exception(timeout=_PART_SECONDS)
                if error is None:
                    # A large result may take more than a part of the wait to come here, so the limit grows.
                    return future.result(timeout=_PART_SECONDS + time.monotonic() - began)
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
                cause = group.exception(timeout=_ANSWER_SECONDS)
                self._check_memory(cause)
                if isinstance(cause, (ValueError, TypeError)) and str(cause).startswith("block "):
                    raise cause  # an error of the data
                first = number * self.size
                last = first + self.size - 1
                blocks = f"block {first}" if first == last else f"a block of {first} to {last}"
                raise OSError(f"{blocks} cannot be computed: {cause!r}") from cause
        self._check_memory(error)
        if isinstance(error, CancelledError):
            raise ConnectionError(f"the Dask cluster no longer has the data: {error}") from error
        raise error

    def _check_memory(self, error: BaseException) -> None:
        if isinstance(error, distributed.scheduler.KilledWorker):
            why = _OUT_OF_MEMORY if self._restarts_for_memory() else "their logs say why; often they lack memory"
            raise ConnectionError(f"a task ended a Dask worker several times: {why}") from error

    def _restarts_for_memory(self) -> bool:
        return bool(self._ask_scheduler("events", topic="worker-restart-memory"))

    def _ask_scheduler(self, what: str, **arguments: Any) -> Any:
        """Return the scheduler's answer to a call of the method ``what``."""
        try:
            ask = getattr(self.client.scheduler, what)
            return self.client.sync(ask, **arguments, callback_timeout=_ANSWER_SECONDS)
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
        """Raise an error if the time is over, or if there is no worker for some time."""
        self._check_connection()
        until = min(end, time.monotonic() + _ANSWER_SECONDS)
        while not self._ask_scheduler("ncores", workers=None):
            if time.monotonic() > until:
                why = f": {_OUT_OF_MEMORY}" if self._restarts_for_memory() else ""
                raise TimeoutError(f"the Dask cluster has had no worker for {_ANSWER_SECONDS:.0f} seconds{why}")
            time.sleep(_PART_SECONDS)
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
    y = None if y is None else _in_chunks_of(X, y, "y")
    sample_weight = None if sample_weight is None else _in_chunks_of(X, sample_weight, "sample_weight")
    client = _client() if client is None else client
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise TypeError(f"client must be a dask.distributed.Client that is not asynchronous, got {shown(client)}")
    operands = []
    for array in (X, y, sample_weight):
        axes = None if array is None else "ijk"[: array.ndim]
        operands += [array, axes]
    # Without concatenation X comes as a list of its one chunk of columns.
    options = {"concatenate": False, "align_arrays": False, "dtype": object, "meta": np.empty(0, dtype=object)}
    held = client.persist(da.blockwise(_raw_block, "i", *operands, token="mopn-rows", **options))
    futures = held.__dask_graph__()
    return DaskBlocks(client, [futures[key] for key in flatten(held.__dask_keys__())], timeout, classes)


def arranged(blocks: DaskBlocks, stored: int, convert: Callable[[Any], Any]) -> DaskBlocks:
    """Return blocks for passes, with X by ``convert`` from a chunk, and small blocks taken together."""
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
    return values.map_partitions(_identity, meta=empty, enforce_metadata=False)


def _identity(values: Any) -> Any:
    return values


def _in_chunks_of(X: Any, values: Any, name: str) -> Any:
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


def _raw_block(*chunks: Any) -> list[RawBlock]:
    """Return the block of chunks of X, y and weights; a chunk with columns comes as a list."""
    parts = [chunk[0] if isinstance(chunk, list) else chunk for chunk in chunks]
    return [RawBlock(-1, *parts)]


def _plain(block: RawBlock, convert: Callable[[Any], Any]) -> RawBlock:
    """Return a block whose y and weights are arrays."""
    y = None if block.y is None else np.asarray(block.y)
    weights = None if block.sample_weight is None else np.asarray(block.sample_weight)
    return named(block, lambda block: RawBlock(block.number, convert(block.X), y, weights))


def _parts(of_blocks: list[list[Any]], place: int) -> list[Any]:
    return [parts[place] for parts in of_blocks]


def _joined_parts(join: Callable[[list[Any]], RawBlock], *parts: list[Any]) -> list[RawBlock]:
    return [join([part for of_group in parts for part in of_group])]


def _chained(*groups: list[RawBlock]) -> list[RawBlock]:
    return [block for group in groups for block in group]


def _keep_freed_memory() -> None:
    """Let glibc keep freed memory in a worker: else a pass takes up to 3.5 times as long (benchmarks/scaling)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        for parameter, size in _MALLOPT.items():
            mallopt(parameter, size)


@quiet()
def _call(sent: bytes, first: int, group: list[RawBlock]) -> Any:
    """Return the combined terms of a group, whose first block has the number ``first``."""
    _keep_freed_memory()
    # A thread of a worker is a core: the terms do not start threads.
    with limited_threads(1):
        task, combine = cloudpickle.loads(sent)
        terms = (task(block._replace(number=number)) for number, block in enumerate(group, first))
        return tree_sum(terms, combine)


def _combine_terms(combine: Function, *terms: Any) -> Any:
    return tree_sum(terms, combine)

"""A pool of threads for NumPy's and compiled functions, which release the interpreter lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from mopn.solvers.tools.blas_threads import most_threads

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def n_workers() -> int:
    """Return the number of threads: the call's, ``OMP_NUM_THREADS``, or all cores of this process."""
    if (most := most_threads()) is not None:
        return most
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Return the threads of a process; a fork does not inherit them."""
    return ThreadPoolExecutor(workers, thread_name_prefix="mopn")


def in_threads(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
    """Yield the results of a function for several items, in their order, with few in memory."""
    workers = min(n_workers(), len(items))
    if workers == 1:
        yield from map(function, items)
        return
    pool, errors = _pool(os.getpid(), n_workers()), np.geterr()
    pending: deque[Future[_Result]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(_call, function, item, errors))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        # After an error or Ctrl-C nothing may go on reading what the caller is free to change.
        for future in pending:
            future.cancel()
        wait(pending)


def _call(function: Callable[[_Item], _Result], item: _Item, errors: Any) -> _Result:
    """Call a function with the caller's handling of floating-point errors."""
    with np.errstate(**errors):
        return function(item)

"""A pool of threads for compiled functions and NumPy's, which release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import starmap
from typing import Any, TypeVar

from mopn.solvers.numerics.threads import most_threads

__all__ = ["map_in_threads", "n_workers"]

_Result = TypeVar("_Result")


def n_workers() -> int:
    """Return the number of threads: that of the call, ``OMP_NUM_THREADS``, or all cores of this process."""
    if (most := most_threads()) is not None:
        return most
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Return the threads of this process: a forked process does not inherit those of its parent."""
    return ThreadPoolExecutor(workers, thread_name_prefix="mopn")


def map_in_threads(function: Callable[..., _Result], arguments: Sequence[tuple[Any, ...]]) -> list[_Result]:
    """Return the results of a function for several tuples of arguments, in their order."""
    workers = n_workers()
    if workers == 1 or len(arguments) == 1:
        return list(starmap(function, arguments))
    return list(_pool(os.getpid(), workers).map(function, *zip(*arguments, strict=True)))

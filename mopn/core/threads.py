"""Threads of Python for compiled functions and for NumPy's, which let each other run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

__all__ = ["map_in_threads", "n_workers"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def n_workers() -> int:
    """Return the number of threads: ``OMP_NUM_THREADS``, as linear algebra has it, or all cores of this process."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Return the threads of this process: those of a process that forked it are not there."""
    return ThreadPoolExecutor(workers, thread_name_prefix="mopn")


def map_in_threads(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Return the function of every item, in their order."""
    items, workers = list(items), n_workers()
    if workers == 1 or len(items) == 1:
        return [function(item) for item in items]
    return list(_pool(os.getpid(), workers).map(function, items))

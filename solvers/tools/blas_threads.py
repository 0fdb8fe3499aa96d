"""How a call shares its threads: among blocks of rows, and with linear algebra only for large single products.

OpenBLAS and MKL start all cores for any but the smallest products, and their threads wait for each other actively: on
a busy machine, or with virtual cores, a fit of many small products then takes ten or a hundred times as long. So linear
algebra has one thread in a call, and the threads of the call share the blocks of rows. Only a large product of matrices
has all of them, where no blocks share them; decompositions would wait thousands of times.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from mopn.solvers.tools.checks import count
from mopn.solvers.tools.signals import signals_later

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# Multiplications and additions of a product from which threads pay: some 50 ms of one thread. Two idle cores gain from
# 1e7 on. But if one of them is busy, each product waits for it for a slice of the scheduler, 8 ms.
LARGE_OPERATIONS = 1e9


class _Call(threading.local):
    """The call that a Python thread is in: the number of threads it was given, and whether blocks share them."""

    is_running = False
    number: int | None = None
    in_blocks = False


_CALL = _Call()

check_threads = count(1).or_none()


class _Blas:
    """The BLAS libraries of this process, whose numbers of threads all its Python threads share.

    Among Python threads that call at the same time, the first one sets and restores the numbers; the others use them as
    they are. The last one cannot restore them: OpenBLAS 0.3.31 ignores settings of another thread after the main one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._controller: Any = None
        self._found: list[tuple[Any, int]] = []
        self._owner: int | None = None

    def limit(self) -> bool:
        """Set the numbers of threads to one, unless a call has done so; return whether this was done."""
        with self._lock:
            if self._owner is not None:
                return False
            self._owner = threading.get_ident()
            self._found = [(library, library.get_num_threads()) for library in self._libraries()]
        self.set(1)
        return True

    def owned(self) -> bool:
        return self._owner == threading.get_ident()

    def set(self, most: int | None) -> None:
        """Set the numbers of threads to ``most``, or for None to the numbers before the call."""
        for library, found in self._found:
            library.set_num_threads(found if most is None else most)

    def restore(self) -> None:
        """Set the numbers that were found; in a process that was forked within the call this has been done."""
        if self.owned():
            self.set(None)
            self._owner = None

    def after_fork(self) -> None:
        """Undo in the child the settings of a call in the parent; another thread may have held the lock."""
        self._lock = threading.Lock()
        _CALL.__dict__.clear()
        if self._owner is not None:
            self.set(None)
            self._owner = None

    def _libraries(self) -> list[Any]:
        if self._controller is None:
            with signals_later():
                from threadpoolctl import ThreadpoolController  # predictions do not need it

            self._controller = ThreadpoolController().select(user_api="blas")
        return self._controller.lib_controllers


_BLAS = _Blas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLAS.after_fork)


@contextmanager
def limited_threads(n_threads: int | None = None) -> Iterator[None]:
    """Give linear algebra one thread within a call, and the call ``n_threads`` for blocks and large products."""
    n_threads = None if n_threads is None else check_threads(n_threads, "n_threads")
    if _CALL.is_running:
        yield
        return
    _CALL.is_running = True
    _CALL.number = n_threads
    limited = _BLAS.limit()
    try:
        yield
    finally:
        _CALL.__dict__.clear()
        if limited:
            _BLAS.restore()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep linear algebra at one thread, whatever the size of its products: blocks of rows share the threads."""
    before = _CALL.in_blocks
    _CALL.in_blocks = True
    try:
        yield
    finally:
        _CALL.in_blocks = before


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """Give a product the threads of the call, if it takes many operations and a call has limited the threads."""
    lifted = operations >= LARGE_OPERATIONS and _BLAS.owned() and not _CALL.in_blocks
    if lifted:
        _BLAS.set(_CALL.number)
    try:
        yield
    finally:
        if lifted:
            _BLAS.set(1)


def most_threads() -> int | None:
    """Return the number of threads that the running call of this Python thread was given, or None."""
    return _CALL.number


def n_workers() -> int:
    """Return the number of threads: the call's, ``OMP_NUM_THREADS``, or all cores of this process."""
    if (most := most_threads()) is not None:
        return most
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    pool = _pool(os.getpid(), n_workers())
    errors = np.geterr()
    pending: deque[Future[_Result]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(_call, function, item, errors))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        # After an error or Ctrl-C nothing may go on reading arrays that the caller is free to change.
        for future in pending:
            future.cancel()
        wait(pending)


def _call(function: Callable[[_Item], _Result], item: _Item, errors: Any) -> _Result:
    """Call a function with the caller's handling of floating-point errors."""
    with np.errstate(**errors):
        return function(item)

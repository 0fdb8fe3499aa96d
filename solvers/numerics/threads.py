"""The number of threads of linear algebra for the time of a call.

OpenBLAS and MKL start all cores for any but the smallest products, and their threads wait for each other actively. On
a machine with something else to do, or with virtual cores, a fit of many small products then takes ten times as long as
with one thread, or a hundred. So a call uses one thread, but for products so large that more threads pay.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mopn.solvers.checks import count

__all__ = ["EIGH", "check_threads", "limited_threads", "most_threads", "threads_for"]

# Multiplications and additions of a product from which it is worth it to start threads: some 50 ms of one thread. Two
# idle cores gain from 1e7 on, but if one of them is busy, each product waits for it for a slice of the scheduler, 8 ms.
_LARGE = 1e9
# The operations of a decomposition into eigenvectors, relative to the third power of the dimension.
EIGH = 9.0
# The number of threads that the running call of a Python thread was given.
_GIVEN = threading.local()

check_threads = count(1).or_none()


class _Blas:
    """The BLAS libraries of this process, whose numbers of threads all its Python threads share.

    The first of the Python threads that call at the same time sets them, and restores them at the end of its call. The
    others take what they find; threadpoolctl has the same rule. The last one cannot restore them instead: OpenBLAS
    0.3.31 ignores what another thread sets after the main one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._controller: Any = None
        self._found: list[tuple[Any, int]] = []
        self._owner: int | None = None

    def limit(self, most: int) -> bool:
        """Set the numbers of threads, unless a call has done so; return whether this was done."""
        with self._lock:
            if self._owner is not None:
                return False
            self._owner = threading.get_ident()
            self._found = [(library, library.get_num_threads()) for library in self._libraries()]
        self.set(most)
        return True

    def owned(self) -> bool:
        """Return whether this Python thread has set the numbers."""
        return self._owner == threading.get_ident()

    def set(self, most: int | None) -> None:
        """Set the numbers of threads; None for those that were found."""
        for library, found in self._found:
            library.set_num_threads(found if most is None else most)

    def restore(self) -> None:
        """Set the numbers that were found; in a process that was forked within the call this has been done."""
        if self.owned():
            self.set(None)
            self._owner = None

    def after_fork(self) -> None:
        """Restore in the child what a call of the parent has set; another thread may have held the lock."""
        self._lock = threading.Lock()
        _GIVEN.__dict__.clear()
        if self._owner is not None:
            self.set(None)
            self._owner = None

    def _libraries(self) -> list[Any]:
        if self._controller is None:
            from threadpoolctl import ThreadpoolController  # predictions do not need it

            self._controller = ThreadpoolController().select(user_api="blas")
        return self._controller.lib_controllers


_BLAS = _Blas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLAS.after_fork)


@contextmanager
def limited_threads(n_threads: int | None = None) -> Iterator[None]:
    """Limit the threads of linear algebra within a call, to ``n_threads`` or by the sizes of the products.

    Within such a call of the same Python thread it has no effect.

    Raises
    ------
    ValueError
        If ``n_threads`` is not an integer >= 1 or None.
    """
    n_threads = check_threads(n_threads, "n_threads")
    if hasattr(_GIVEN, "number"):
        yield
        return
    _GIVEN.number = n_threads
    limited = _BLAS.limit(n_threads or 1)
    try:
        yield
    finally:
        _GIVEN.__dict__.clear()
        if limited:
            _BLAS.restore()


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """Allow the threads that the process had before the call, for one product of so many multiplications and additions.

    Where the call was given a number of threads, or is not limited, this has no effect.
    """
    lifted = operations >= _LARGE and _BLAS.owned() and most_threads() is None
    if lifted:
        _BLAS.set(None)
    try:
        yield
    finally:
        if lifted:
            _BLAS.set(1)


def most_threads() -> int | None:
    """Return the number of threads that the running call of this Python thread was given, or None."""
    return getattr(_GIVEN, "number", None)

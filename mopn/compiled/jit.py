"""The decorators of compiled functions: numba's ``njit`` with a cache on disk that never makes a call fail.

``njit(cache=True)`` refuses a function where no folder can be written to, and raises errors of damaged files and full
disks: here the function is compiled anew. It takes machine code for fresh while the function's own file is unchanged,
whatever else it calls: here all sources are part of the key. Some processes lack numba's threads, and some of its
layers do not share them.
"""

import gc
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from mopn.solvers.tools.signals import signals_later

with signals_later():
    from numba import njit, threading_layer
    from numba import prange as prange
    from numba import types as types
    from numba.core.caching import FunctionCache, NullCache
    from numba.extending import overload as overload
    from numba.np.unsafe.ndarray import to_fixed_tuple as to_fixed_tuple

# The threading layers that take calls of several Python threads at a time; numba's own queue ends the process.
_SHARED = ("omp", "tbb")
_turn = Lock()
_lost = False
# Units whose kernels are computed at a time: a vector register of doubles.
WIDTH = 8
# Multiplications and additions may be fused, and the signs of zeros ignored; the order of sums is kept.
IN_ORDER = {"contract", "nsz"}
# The order of sums may change too.
FAST = IN_ORDER | {"reassoc"}
SOURCES = sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()

# Divisions are NumPy's: checks of divisors would have to be compiled too. Nobody needs the addresses of functions.
_decorator: Any = partial(njit, no_cfunc_wrapper=True, error_model="numpy")
# The decorator of functions that only compiled ones call. Interfaces to Python take a seventh of the compiler's time.
inner: Any = partial(_decorator, no_cpython_wrapper=True)
# The decorator of functions of one entry or one row. New code would call their first compiled copies, which lie
# elsewhere in memory: epochs would take up to twice the time of the same code read from disk (benchmarks/epochs).
inlined: Any = partial(inner, forceinline=True)


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator ``njit`` with these options, and with a cache if there is a folder for it.

    With ``NUMBA_DISABLE_JIT=1`` functions stay as they are, as by ``njit``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = _decorator(**options)(function)
        if dispatcher is function:
            return dispatcher
        dispatcher.compile = partial(_compile, dispatcher.compile)
        try:
            dispatcher._cache = _Cache(function)
        except Exception:
            dispatcher._cache = _NoCache()
        return dispatcher

    return decorate


def _compile(compile_: Callable[..., Any], signature: Any) -> Any:
    """Compile, or load, without Python's cyclic garbage collector, which would take a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        with signals_later():  # llvmlite, interrupted, may free code twice, which ends the process
            return compile_(signature)
    finally:
        if enabled:
            gc.enable()


class _Cache(FunctionCache):
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        code = None
        try:
            code = super().load_overload((sig, SOURCES), target_context)
        except Exception:
            # An index that cannot be read would not take new entries either.
            with suppress(Exception):
                self.flush()
        if code is None:
            _announce("once; later processes read the machine code from disk")
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):
            super().save_overload((sig, SOURCES), data)


class _NoCache(NullCache):
    def load_overload(self, sig: Any, target_context: Any) -> None:
        _announce("in every process, as numba finds no folder to keep the machine code in: set NUMBA_CACHE_DIR to one")


@cache
def _announce(when: str) -> None:
    logging.getLogger("mopn").warning("mopn compiles loops that this call needs, which takes some seconds, %s", when)


def threads_usable() -> bool:
    """Return whether numba's threads survive in this process: not if its parent started them before a fork."""
    return not _lost


def in_turn(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function that uses the threads; Python's threads wait for each other where they must."""
    if _layer() in _SHARED:
        return function(*arguments)
    with _turn:
        return function(*arguments)


def _layer() -> str | None:
    """Return the name of the threading layer, or None before the first function that uses it is compiled or loaded."""
    try:
        return threading_layer()
    except ValueError:
        return None


def _after_fork() -> None:
    global _lost, _turn
    _lost = _lost or _layer() is not None
    _turn = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""The decorators of compiled functions: numba's ``njit`` with a cache on disk that never makes a call fail.

``njit(cache=True)`` refuses a function where no folder can be written to, and raises errors of damaged files and full
disks: here the function is compiled anew. It takes machine code for fresh while the function's own file is unchanged,
whatever else it calls: here all sources are part of the key.
"""

import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, NullCache

# Units whose kernels are computed at a time: a vector register of doubles.
WIDTH = 8
# Multiplications and additions may be fused, and the signs of zeros ignored; the order of sums is kept.
IN_ORDER = {"contract", "nsz"}
# The order of sums may change too.
FAST = IN_ORDER | {"reassoc"}
_SOURCES = sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()

# Divisions are NumPy's: checks of divisors would have to be compiled too. Nobody needs the addresses of functions.
_decorator: Any = partial(njit, no_cfunc_wrapper=True, error_model="numpy")
# The decorator of functions that only compiled ones call. Interfaces to Python take a seventh of the compiler's time.
inner: Any = partial(_decorator, no_cpython_wrapper=True)
# That of functions of an entry or a row. New code would call their first compiled copies, which lie elsewhere: epochs
# then take up to twice as long as by the same code read from disk (benchmarks/epochs).
inlined: Any = partial(inner, forceinline=True)


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator ``njit`` with these options, and with a cache if there is a folder for it."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = _decorator(**options)(function)
        dispatcher.compile = partial(_compile, dispatcher.compile)
        try:
            dispatcher._cache = _Cache(function)
        except Exception:
            dispatcher._cache = _NoCache()
        return dispatcher

    return decorate


def _compile(compile_: Callable[..., Any], signature: Any) -> Any:
    """Compile without Python's cyclic garbage collector, which would take a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return compile_(signature)
    finally:
        if enabled:
            gc.enable()


class _Cache(FunctionCache):
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        code = None
        try:
            code = super().load_overload((sig, _SOURCES), target_context)
        except Exception:
            # An index that cannot be read would not take new entries either.
            with suppress(Exception):
                self.flush()
        if code is None:
            _announce("once; later processes read the machine code from disk")
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):
            super().save_overload((sig, _SOURCES), data)


class _NoCache(NullCache):
    def load_overload(self, sig: Any, target_context: Any) -> None:
        _announce("in every process, as numba finds no folder to keep the machine code in: set NUMBA_CACHE_DIR to one")


@cache
def _announce(when: str) -> None:
    logging.getLogger("mopn").warning("mopn compiles loops that this call needs, which takes some seconds, %s", when)

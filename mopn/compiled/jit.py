"""The decorator of all compiled functions: numba's, with a cache on disk that never makes a call fail.

numba refuses to cache a function if it finds no folder to write to, and raises what goes wrong with the files of its
cache: one cut short, one that names a class which an update has moved, a full disk. Here all of these mean that the
function is compiled anew.

numba also takes machine code for fresh as long as the file of the function itself is unchanged, whatever else it calls
and whatever options it is compiled with. Here both are part of the key.

Compiling takes seconds, so the first time in a process is told to the log.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, NullCache

__all__ = ["inner", "jit"]

_SOURCES = sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator ``njit`` with these options, and with a cache if there is a folder for it.

    Divisions are those of NumPy: checks that the divisor is not 0 would have to be compiled too.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        # Nobody asks for the address of a function.
        decorator: Any = njit(no_cfunc_wrapper=True, error_model="numpy", **options)  # type: ignore[call-overload]
        dispatcher: Any = decorator(function)
        try:
            dispatcher._cache = _Cache(function, options)
        except Exception:
            dispatcher._cache = _NoCache()
        dispatcher.compile = _without_collections(dispatcher.compile)
        return dispatcher

    return decorate


def inner(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of functions that compiled ones call: parts of these, without an interface to Python.

    Interfaces take a seventh of the compiler's time. Called from Python such a function is Python's.
    """

    def decorate(function: Any) -> Any:
        options_of_all = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
        decorator: Any = njit(**options_of_all, **options)  # type: ignore[call-overload]
        compiled = decorator(function)
        # So numba takes the function for the compiled one; ``register_jitable`` compiles it for all options of callers.
        function.compiled, function._numba_type_ = compiled, compiled._numba_type_
        return function

    return decorate


def _without_collections(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiler, with Python's cyclic garbage collector off while it runs: a tenth of the time was its."""

    def compile_signature(signature: Any) -> Any:
        enabled = gc.isenabled()
        gc.disable()
        try:
            return compile_(signature)
        finally:
            if enabled:
                gc.enable()

    return compile_signature


class _Cache(FunctionCache):
    """The machine code of a function on disk; what cannot be read is compiled anew."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function)
        # The order of a set differs between processes.
        fixed = {name: tuple(sorted(value)) if isinstance(value, set) else value for name, value in options.items()}
        self._variant = _SOURCES, *sorted(fixed.items())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature, or None."""
        code = None
        try:
            code = super().load_overload((sig, self._variant), target_context)
        except Exception:
            # An index that cannot be read would not take new entries either.
            with suppress(Exception):
                self.flush()
        if code is None:
            _announce("once; later processes read the machine code from disk")
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the machine code for a signature if that is possible."""
        with suppress(Exception):
            super().save_overload((sig, self._variant), data)


class _NoCache(NullCache):
    """Stands where there is no folder for a cache."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Find nothing."""
        _announce("in every process, as numba finds no folder to keep the machine code in: set NUMBA_CACHE_DIR to one")


@cache
def _announce(when: str) -> None:
    """Tell the user that the following seconds are those of the compiler."""
    logging.getLogger("mopn").warning("mopn compiles loops that this call needs, which takes some seconds, %s", when)

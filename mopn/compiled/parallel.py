"""Calls of compiled functions that use numba's threads, which some processes lack and some layers do not share."""

import os
from collections.abc import Callable
from threading import Lock
from typing import Any

from numba import threading_layer

# The threading layers that take calls of several Python threads at a time; numba's own queue ends the process.
_SHARED = ("omp", "tbb")
_turn = Lock()
_lost = False


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
    _lost, _turn = _lost or _layer() is not None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

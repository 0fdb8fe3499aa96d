"""A function in a fork of this process."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["ForkError", "in_fork"]


class ForkError(RuntimeError):
    """A fork died or had to be ended."""


def in_fork(function: Callable[[], Any], seconds: float) -> Any:
    """Return what a function returns in a fork of this process, which is ended after some seconds.

    Raises
    ------
    ForkError
        If the fork dies, hangs, or the function raises an exception.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns if this process has threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer(writer, function)
    os.close(writer)
    killer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    killer.start()
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    hangs = not killer.is_alive()
    killer.cancel()
    if not answer:
        raise ForkError("hang" if hangs else f"exit code {os.waitstatus_to_exitcode(status)}")
    value, error = pickle.loads(answer)
    if error:
        raise ForkError(error)
    return value


def _answer(writer: int, function: Callable[[], Any]) -> NoReturn:
    """Write what a function returns, and end this process without any clean-up."""
    try:
        answer = function(), ""
    except BaseException:
        answer = None, traceback.format_exc()
    with os.fdopen(writer, "wb") as file:
        pickle.dump(answer, file)
    os._exit(0)

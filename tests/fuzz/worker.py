"""The worker process: it makes calls of a campaign, within limits of time and memory, and some of them in forks."""

import contextlib
import os
import pickle
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import numba
from numba.core import event

from tests.fuzz.outcomes import HangError, Outcome, Record, observe
from tests.fuzz.trial import Trial

# Returns a call of a campaign from its seed and its number.
Draw = Callable[[int, int], tuple[Record, Trial]]
# Seconds in which numba may compile; they do not count.
COMPILING = 600
_MEMORY = 6 << 30


def serve(connection: Connection, draw: Draw, seed: int, limit: int) -> None:
    """Answer numbers of calls with records, until the connection is closed; a call has ``limit`` seconds.

    The record of a call is sent when the call begins, whenever numba begins or ends to compile, and when it is over:
    its kind says which.
    """
    import resource  # not on every system

    os.setsid()
    with contextlib.suppress(ValueError):
        # macOS has no such limit.
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _silence()
    with contextlib.suppress(EOFError, BrokenPipeError):
        _Server(connection, draw, seed, limit).run()


def _silence() -> None:
    """Discard what is printed, and draw into no window."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["MPLBACKEND"] = "Agg"


class _Server(event.Listener):
    """The loop of a worker, and its clock, which stops while numba compiles."""

    def __init__(self, connection: Connection, draw: Draw, seed: int, limit: int) -> None:
        self.connection, self.draw, self.seed, self.limit = connection, draw, seed, limit
        self.record = Record(-1, "", "", "")
        signal.signal(signal.SIGALRM, _over)
        # Ctrl-C in the first compilation of a process leaves numba's own tables half filled.
        numba.njit(_nothing)()
        event.register("numba:compile", self)

    def run(self) -> None:
        while True:
            number = self.connection.recv()
            signal.alarm(self.limit)
            self.record, trial = self.draw(self.seed, number)
            self._send("runs")
            began = time.perf_counter()
            kind, detail, _ = self._outcome(trial)
            signal.alarm(0)
            seconds = time.perf_counter() - began
            self.connection.send(self.record._replace(kind=kind, detail=detail, seconds=seconds))

    def _outcome(self, trial: Trial) -> Outcome:
        """Run a trial: in a fork, if it may write anywhere in memory."""
        if trial.where != "fork":
            return observe(trial)
        signal.alarm(0)
        try:
            return in_fork(lambda: self._limited(trial), self.limit + COMPILING)
        except ForkError as error:
            return Outcome("crash", str(error))

    def _limited(self, trial: Trial) -> Outcome:
        signal.alarm(self.limit)
        return observe(trial)

    def _send(self, kind: str) -> None:
        self.connection.send(self.record._replace(kind=kind))

    def on_start(self, event: Any) -> None:
        """Stop the clock."""
        signal.alarm(0)
        self._send("compiles")

    def on_end(self, event: Any) -> None:
        """Start the clock again."""
        signal.alarm(self.limit)
        self._send("runs")


def _nothing() -> None:
    pass


def _over(number: int, frame: Any) -> NoReturn:
    raise HangError("the limit of time is over")


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

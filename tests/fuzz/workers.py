"""Worker processes with limits of time and memory; one that crashes or hangs is replaced."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from tests.fuzz.forks import ForkError, in_fork

__all__ = ["Record", "run_all", "run_one"]

# Seconds of a call; those in which numba compiles do not count.
LIMIT = 20
# Seconds after which the parent ends a worker that does not end the call itself, or that compiles.
_GRACE, _COMPILING = 10, 600
_MEMORY = 6 << 30


class Record(NamedTuple):
    """A call, and what became of it."""

    number: int
    category: str
    interface: str
    change: str
    kind: str
    detail: str
    seconds: float


# -- in the worker -----------------------------------------------------------------------------------------------------


def run_one(seed: int, number: int) -> tuple[Record, str]:
    """Make a call of a campaign in this process; return what became of it, and the traceback."""
    from tests.fuzz.campaign import category_of, trial_number
    from tests.fuzz.outcomes import observe

    category = category_of(seed, number)
    trial = trial_number(seed, number)
    began = time.perf_counter()
    outcome = observe(trial)
    seconds = time.perf_counter() - began
    return Record(number, category, trial.interface, trial.change, outcome.kind, outcome.detail, seconds), outcome.trace


def _serve(connection: Connection, seed: int) -> None:
    """Answer numbers of calls with records, until the parent closes the connection."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _silence()
    _limit_time(connection)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            connection.send(_limited(seed, connection.recv()))


def _limited(seed: int, number: int) -> Record:
    """Make a call within the limit of time; in a fork, if it may write anywhere in memory."""
    from tests.fuzz.campaign import CATEGORIES, category_of

    if CATEGORIES[category_of(seed, number)].where != "fork":
        signal.alarm(LIMIT)
        try:
            return run_one(seed, number)[0]
        finally:
            signal.alarm(0)
    try:
        return in_fork(lambda: run_one(seed, number)[0], LIMIT)
    except ForkError as error:
        return _lost(seed, number, "hang" if str(error) == "hang" else "crash", str(error))


def _silence() -> None:
    """Discard what is printed."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    import matplotlib as mpl

    mpl.use("Agg")


def _limit_time(connection: Connection) -> None:
    """Raise ``HangError`` at the alarm, and stop the clock while numba compiles."""
    from numba.core import event

    from tests.fuzz.outcomes import HangError

    def over(number: int, frame: Any) -> None:
        raise HangError(f"more than {LIMIT} s")

    class Clock(event.Listener):
        def on_start(self, event: Any) -> None:
            signal.alarm(0)
            connection.send("compiling")

        def on_end(self, event: Any) -> None:
            signal.alarm(LIMIT)
            connection.send("running")

    signal.signal(signal.SIGALRM, over)
    event.register("numba:compile", Clock())


# -- in the parent -----------------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    """A process, and the call that it makes."""

    process: Any
    connection: Connection
    number: int = -1
    busy: bool = False
    deadline: float = 0.0

    def give(self, number: int) -> None:
        self.number, self.busy = number, True
        self.connection.send(number)
        self.wait_for(LIMIT + _GRACE)

    def wait_for(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds

    def end(self) -> None:
        """End the process, and those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()


def _start(seed: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, seed), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def run_all(seed: int, numbers: Iterator[int], jobs: int) -> Iterator[Record]:
    """Make calls of a campaign in worker processes; yield their records as they come."""
    workers = [_start(seed) for _ in range(jobs)]
    try:
        for index in range(jobs):
            _next(workers[index], numbers)
        while any(worker.busy for worker in workers):
            ready = wait([worker.connection for worker in workers if worker.busy], timeout=1.0)
            for index, worker in enumerate(workers):
                if not worker.busy:
                    continue
                record = _received(worker, seed) if worker.connection in ready else _overdue(worker, seed)
                if record is None:
                    continue
                yield record
                if record.kind in ("crash", "hang") and not worker.process.is_alive():
                    workers[index] = worker = _start(seed)
                _next(worker, numbers)
    finally:
        for worker in workers:
            worker.end()


def _next(worker: _Worker, numbers: Iterator[int]) -> None:
    worker.busy = False
    for number in numbers:
        worker.give(number)
        return


def _received(worker: _Worker, seed: int) -> Record | None:
    """Return the record that a worker sent, or that of its crash; None while it goes on."""
    try:
        message = worker.connection.recv()
    except (EOFError, ConnectionResetError):
        worker.end()
        return _lost(seed, worker.number, "crash", f"exit code {worker.process.exitcode}")
    if isinstance(message, Record):
        return message
    worker.wait_for(_COMPILING if message == "compiling" else LIMIT + _GRACE)
    return None


def _overdue(worker: _Worker, seed: int) -> Record | None:
    if time.monotonic() < worker.deadline:
        return None
    worker.end()
    return _lost(seed, worker.number, "hang", "the process was ended")


def _lost(seed: int, number: int, kind: str, detail: str) -> Record:
    """Return the record of a call that did not return."""
    from tests.fuzz.campaign import category_of, trial_number

    trial = trial_number(seed, number)
    return Record(number, category_of(seed, number), trial.interface, trial.change, kind, detail, float("nan"))

"""Worker processes for the calls of a campaign; one that crashes or hangs is replaced."""

import contextlib
import itertools
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import wait
from typing import Any

from tests.fuzz.campaign import drawn
from tests.fuzz.outcomes import Record
from tests.fuzz.worker import COMPILING, Draw, serve


def run_all(
    seed: int, numbers: Iterator[int], jobs: int, draw: Draw = drawn, limit: int = 20, grace: int = 20
) -> Iterator[Record]:
    """Make calls of a campaign in some processes; yield their records as they come.

    A call has ``limit`` seconds, and a worker ``grace`` more, to start and to notice that it hangs.
    """

    def begin(number: int) -> _Worker:
        return _Worker(number, limit + grace, draw, seed, limit)

    workers = [begin(number) for number in itertools.islice(numbers, jobs)]
    try:
        while workers:
            ready = wait([worker.connection for worker in workers], timeout=1.0)
            for worker in list(workers):
                record = worker.record(ready=worker.connection in ready)
                if record is None:
                    continue
                yield record
                number = next(numbers, None)
                if number is not None and worker.process.is_alive():
                    worker.give(number)
                    continue
                worker.end()
                workers.remove(worker)
                if number is not None:
                    workers.append(begin(number))
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process, and the call that it makes."""

    def __init__(self, number: int, patience: float, *arguments: Any) -> None:
        self.patience = patience
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: Any = context.Process(target=serve, args=(theirs, *arguments))
        self.process.start()
        theirs.close()
        self.give(number)

    def give(self, number: int) -> None:
        """Let the process make a call."""
        self.last = Record(number, "", "", "")
        self.deadline = time.monotonic() + self.patience
        self.connection.send(number)

    def record(self, *, ready: bool) -> Record | None:
        """Return the record of the call; None while it goes on."""
        if not ready:
            return self._lost("hang", "the process was ended") if time.monotonic() > self.deadline else None
        try:
            self.last = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._lost("crash", "")
        compiles = self.last.kind == "compiles"
        self.deadline = time.monotonic() + self.patience + (COMPILING if compiles else 0)
        return None if compiles or self.last.kind == "runs" else self.last

    def _lost(self, kind: str, detail: str) -> Record:
        """Return the record of a call that does not return."""
        self.end()
        return self.last._replace(kind=kind, detail=detail or f"exit code {self.process.exitcode}")

    def end(self) -> None:
        """End the process, and those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()

"""Calls of a campaign in some processes, each call in a fork of its own, within limits of time and memory."""

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import numba

from tests.fuzz.campaign import drawn
from tests.fuzz.outcomes import HangError, Record, observe
from tests.fuzz.trial import Trial

# Returns a call of a campaign from its seed and its number.
Draw = Callable[[int, int], tuple[Record, Trial]]
_MEMORY = 6 << 30
# Seconds that a fork has to notice by itself that its call hangs.
_GRACE = 20


def run_all(seed: int, numbers: Iterator[int], jobs: int, draw: Draw = drawn, limit: int = 60) -> Iterator[Record]:
    """Make calls of a campaign; yield their records as they come. A call has ``limit`` seconds."""
    executor = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _prepare, (draw, seed))
    try:
        calls = [executor.submit(_call, draw, seed, limit, number) for number in numbers]
        for call in as_completed(calls):
            yield call.result()
    finally:
        executor.shutdown(cancel_futures=True)


def _prepare(draw: Draw, seed: int) -> None:
    """Silence a process, and make the tables that its forks need."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["MPLBACKEND"] = "Agg"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Ctrl-C in the first compilation of a process leaves numba's own tables half filled.
    numba.njit(_nothing)()
    for number in range(5):
        draw(seed, number)


def _nothing() -> None:
    pass


def _call(draw: Draw, seed: int, limit: int, number: int) -> Record:
    """Return the record of a call that a fork makes, which may die."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        _make_call(writer, draw, seed, limit, number)
    writer.close()
    record = Record(number, "", "", "")
    try:
        while not record.kind:
            if not reader.poll(limit + _GRACE):
                return record._replace(kind="hang", detail="the process was ended")
            record = reader.recv()
        return record
    except EOFError:
        return record._replace(kind="crash")
    finally:
        reader.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _make_call(writer: Connection, draw: Draw, seed: int, limit: int, number: int) -> NoReturn:
    """Send the record of a call before it is made and after it, and end this process without any clean-up."""
    import resource  # not on every system

    os.setsid()
    with contextlib.suppress(ValueError):
        # macOS has no such limit.
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, _over)
    record, trial = draw(seed, number)
    writer.send(record)
    signal.alarm(limit)
    began = time.perf_counter()
    kind, detail, _ = observe(trial)
    signal.alarm(0)
    writer.send(record._replace(kind=kind, detail=detail, seconds=time.perf_counter() - began))
    os._exit(0)


def _over(number: int, frame: Any) -> NoReturn:
    raise HangError("the limit of time is over")

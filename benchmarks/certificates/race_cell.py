"""One solver on one problem of the race, in a process of its own: within a limit of seconds and of memory."""

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import mopn
from benchmarks.certificates.planted import Planted, planted
from benchmarks.certificates.semidefinite import SOLVERS, solve, units
from benchmarks.common.processes import limit_memory, one_thread

GAP = 1e-4
DONE, TIME_OUT, MEMORY_OUT, INACCURATE = "proven", "out of time", "out of memory", "not accurate enough"
_TOLERANCES = tuple(10.0**-k for k in range(4, 11))
# Seconds that a process has for loading and for making the data, beyond the limit.
_LOADING = 10.0
_GIB = 2**30
Answer = dict[str, Any]


class Cell(NamedTuple):
    """A problem, a solver, and its limits: seconds, and GiB of memory."""

    loss: str
    n: int
    d: int
    m: int
    solver: str
    ratio: float
    max_time: float
    memory: float


# -- in the process that holds the race --------------------------------------------------------------------------------


def answer_in_process(cell: Any, program: str, *options: str) -> Answer:
    """Start the program with the cell, wait for it no longer than allowed, and return its last answer."""
    command = [sys.executable, "-m", program, "--cell", json.dumps(cell), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=one_thread(), **pipes) as process:
        try:
            printed, errors = process.communicate(timeout=cell.max_time + _LOADING)
        except subprocess.TimeoutExpired:
            process.kill()
            return _last(process.communicate()[0]) | {"status": TIME_OUT}
        except BaseException:
            process.kill()
            raise
    answer = _last(printed)
    return answer if process.returncode == 0 else answer | {"status": _failure(process.returncode, errors)}


def _last(printed: str) -> Answer:
    """Return the last line that is complete."""
    lines = [line for line in printed.split("\n")[:-1] if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}


def _failure(code: int, errors: str) -> str:
    """Say what ended a process: allocations that fail abort it, or the kernel kills it."""
    if code in (-signal.SIGABRT, -signal.SIGKILL) or any(word in errors for word in ("MemoryError", "alloc")):
        return MEMORY_OUT
    return f"failed: {(errors.strip().splitlines() or [f'exit status {code}'])[-1]}"


# -- in the process of the cell ----------------------------------------------------------------------------------------


def print_answers(text: str) -> None:
    """Solve the cell that a JSON text holds, with its limit of memory, and print its answers, better and better."""
    cell = Cell(*json.loads(text))
    limit_memory(int(cell.memory * _GIB))
    for answer in _answers(cell):
        print(json.dumps(answer), flush=True)


def _answers(cell: Cell) -> Iterator[Answer]:
    problem = planted(cell.loss, cell.n, cell.d, cell.m, cell.ratio)
    if cell.solver in SOLVERS:
        yield from _of_program(problem, cell)
    else:
        yield _of_mopn(problem.problem, cell)


def _of_mopn(problem: mopn.NetworkProblem, cell: Cell) -> Answer:
    # Load all code first.
    _fit(planted(cell.loss, 50, 3, cell.m, cell.ratio).problem, 10.0)
    result = _fit(problem, cell.max_time)
    status = DONE if result.gap <= GAP * result.fun else TIME_OUT if result.status.name == "MAX_TIME" else INACCURATE
    return {"status": status, "seconds": result.time, "fun": result.fun, "gap": result.gap / result.fun}


def _fit(problem: mopn.NetworkProblem, seconds: float) -> mopn.Result:
    solver = mopn.solvers.ConditionalGradient(refit="full", oracle="exact")
    return mopn.minimize(problem, solver, tol=GAP, max_time=seconds)


def _of_program(problem: Planted, cell: Cell) -> Iterator[Answer]:
    """Yield the best answer so far after every tolerance, until one is proven or tighter ones change nothing."""
    began = time.perf_counter()
    best: Answer = {"status": INACCURATE, "gap": math.inf}
    previous = None
    for tolerance in _TOLERANCES:
        left = cell.max_time - (time.perf_counter() - began)
        answer = _certified(problem, cell.solver, tolerance, left) if left > 0 else {"status": TIME_OUT}
        best = min(best, answer, key=lambda one: one.get("gap", math.inf))
        if time.perf_counter() - began >= cell.max_time and best["status"] != DONE:
            best = best | {"status": TIME_OUT}
        yield {name: value for name, value in best.items() if value != math.inf}
        if best["status"] != INACCURATE or answer.get("fun") == previous:
            return
        previous = answer.get("fun")


def _certified(problem: Planted, solver: str, tolerance: float, seconds: float) -> Answer:
    found = solve(problem, solver, tolerance, seconds)
    answer = {"seconds": found.seconds, "compilation": found.compilation, "tolerance": tolerance, "status": INACCURATE}
    if found.matrices is None:
        return answer
    measure = mopn.certify(problem.problem, *units(found.matrices), "exact")
    status = DONE if measure.gap <= GAP * measure.fun else INACCURATE
    return answer | {"fun": measure.fun, "gap": measure.gap / measure.fun, "status": status}

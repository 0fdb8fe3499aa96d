"""Measurements in processes of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def run_program(program: str, *arguments: object, **environment: str) -> dict[str, Any]:
    """Run a program of this package in a process of its own, and return the JSON object that it prints."""
    return last_json(run_python("-m", f"benchmarks.{program}", *map(str, arguments), **environment))


def run_python(*arguments: str, **environment: str) -> str:
    """Run this interpreter in a process of its own, with one thread unless told otherwise; return its output."""
    command, variables = [sys.executable, *arguments], one_thread() | environment
    return subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout


def one_thread() -> dict[str, str]:
    """Return this process's environment, with one thread for each library, and the folder of the studies."""
    libraries = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    # Last, so that the user's own folders on the path come first.
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    return {**os.environ, **dict.fromkeys(libraries, "1"), "PYTHONPATH": path}


def last_json(text: str) -> dict[str, Any]:
    """Return the JSON object of the last line that is one."""
    return json.loads(next(line for line in text.splitlines()[::-1] if line.startswith("{")))


def limit_memory(n_bytes: int) -> None:
    """Limit the address space of this process; raise ``OSError`` where there is no such limit, as on Windows."""
    try:
        import resource
    except ImportError as error:
        raise OSError("this system has no limit of a process's memory; run this study on Linux") from error
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


class CPUTimeError(Exception):
    """More time of the processor than allowed."""


@contextmanager
def limit_cpu_time(seconds: float) -> Iterator[None]:
    """Raise ``CPUTimeError`` in what takes more CPU seconds, once it is in Python again; ``OSError`` on Windows."""
    if not hasattr(signal, "setitimer"):
        raise OSError("this system has no timer of a process's time; run this study on Linux or macOS")

    def stop(*_: object) -> None:
        raise CPUTimeError

    before = signal.signal(signal.SIGPROF, stop)
    # Again every second, should the first one be swallowed.
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def peak_memory() -> int:
    """Return the peak of the resident memory of this process in bytes, on Linux."""
    # Not getrusage's ru_maxrss: a process inherits its parent's.
    status = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(status.split("VmHWM:")[1].split()[0])

"""Measurements in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "last_json", "limit_memory", "peak_memory", "run_program", "run_python"]

ROOT = Path(__file__).resolve().parents[2]


def run_program(program: str, *arguments: object, **environment: str) -> dict[str, Any]:
    """Run a program of this package in a process of its own, and return the JSON object that it prints.

    Parameters
    ----------
    program : str
        What follows ``python -m benchmarks.``.
    *arguments : object
        Its command line.
    **environment : str
        Variables in addition to this process's.

    Returns
    -------
    dict
    """
    return last_json(run_python("-m", f"benchmarks.{program}", *map(str, arguments), **environment))


def run_python(*arguments: str, **environment: str) -> str:
    """Run this interpreter in a process of its own, with one thread unless told otherwise; return what it prints."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # Last, so that what the user put on the path comes first.
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    variables = {**os.environ, **threads, "PYTHONPATH": path, **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout


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


def peak_memory() -> int:
    """Return the peak of the resident memory of this process in bytes, on Linux."""
    # Not getrusage's ru_maxrss: a process inherits that of the one that started it.
    status = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(status.split("VmHWM:")[1].split()[0])

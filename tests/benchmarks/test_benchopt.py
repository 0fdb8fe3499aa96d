"""The benchmark for benchopt passes benchopt's own tests, without those that make environments."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("benchopt")

FOLDER = Path(__file__).parents[2] / "benchmarks" / "benchopt"


def test_benchopt_accepts_the_benchmark(tmp_path):
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = [str(programs / "benchopt"), "test", str(FOLDER), "--skip-install"]
    done = subprocess.run(command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]

"""What type checkers see of mopn where it is installed: the layout of the wheel, by pyproject.toml."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import mopn
import numpy as np
from mopn.estimators import TableClassifier
from mopn.solvers import ConditionalGradient, minimize

X = np.eye(3)
problem = mopn.NetworkProblem(X, X[:, 0], strength=1.0)
result = minimize(problem, ConditionalGradient(max_units=5))
gap: float = result.gap
name: str = result.status.message
model: TableClassifier = TableClassifier(max_units=5).fit(X, X[:, 0])
TableClassifier(max_unit=5)  # mistake
ConditionalGradient(max_units="five")  # mistake
mopn.NetworkProblem(X, X[:, 0], norm="l2")  # mistake
result.gapp  # mistake
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment with mopn, and with what this one has."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([python, "-c", ask], text=True).strip())
    (packages / "others.pth").write_text(str(Path(np.__file__).parents[1]))
    install(packages)
    return python


def install(packages):
    """Copy the files that a wheel has."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    for package in settings["packages"]:
        known = max((name for name in settings["package-dir"] if f"{package}.".startswith(f"{name}.")), key=len)
        inside = package.removeprefix(known).strip(".").split(".")
        source = ROOT.joinpath(settings["package-dir"][known], *inside)
        target = packages.joinpath(*package.split("."))
        target.mkdir()
        for pattern in ("*.py", *settings["package-data"].get(package, [])):
            for path in source.glob(pattern):
                shutil.copy(path, target)


def lines_of_mypy(python, script):
    command = [sys.executable, "-m", "mypy", "--cache-dir", script.parent, "--python-executable", python, script]
    said = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=False).stdout
    assert "error" in said
    return re.findall(rf"^{script.name}:(\d+): error", said, flags=re.MULTILINE)


def lines_of_pyright(python, script):
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    command = ["pyright", "--pythonpath", python, "--outputjson", script]
    said = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=False).stdout
    found = json.loads(said)["generalDiagnostics"]
    return [1 + one["range"]["start"]["line"] for one in found if one["severity"] == "error"]


@pytest.mark.slow
@pytest.mark.parametrize("errors", [lines_of_mypy, lines_of_pyright])
def test_a_script_of_a_user_has_errors_in_its_mistakes_alone(python, errors, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    mistakes = [number for number, line in enumerate(SCRIPT.splitlines(), 1) if "mistake" in line]
    assert sorted(map(int, errors(python, script))) == mistakes

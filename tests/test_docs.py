"""The README's scripts run as they stand, and so do the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

import mopn

mpl.use("Agg")

ROOT = Path(__file__).parents[1]
BLOCKS = [
    block
    for name in ("README.md", "docs/migration.md")
    for block in re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)
]
MODULES = [
    name for _, name, _ in pkgutil.walk_packages(mopn.__path__, "mopn.") if not name.startswith("mopn.solvers")
] + [name for _, name, _ in pkgutil.walk_packages(mopn.solvers.__path__, "mopn.solvers.")]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_script_of_the_documents(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    exec(compile(BLOCKS[number], f"script {number}", "exec"), namespace)
    assert capsys.readouterr().out


def test_the_scripts_are_found():
    assert len(BLOCKS) == 8


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["digits.py", "--out", str(tmp_path), "--units", "4"])
    runpy.run_path(str(ROOT / "examples" / "digits.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "test accuracy" in out
    assert "certificate" in out
    assert (tmp_path / "convergence.png").stat().st_size > 10_000
    assert mopn.load(tmp_path / "digits.npz").n_features == 64


def test_every_public_name_has_a_docstring():
    for module in (mopn, mopn.solvers, mopn.oracles):
        assert module.__doc__
        for name in module.__all__:
            assert getattr(module, name).__doc__, f"{module.__name__}.{name}"


def test_importing_mopn_does_not_import_numba():
    code = (
        "import sys, mopn; assert 'numba' not in sys.modules; mopn.FactorizationProblem; assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("extra", ["sklearn", "matplotlib"])
def test_import_needs_no_extra(extra):
    import subprocess

    code = f"import sys; sys.modules[{extra!r}] = None; import mopn; assert mopn.load"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""The studies' tests are slow ones, but for the programs' help and the readers of data; their data are synthetic."""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if any(find_spec(name) is None for name in ("sklearn", "pandas", "matplotlib", "joblib")):
    collect_ignore_glob = ["*"]

_QUICK = ("test_programs.py", "test_data.py", "test_collection.py", "test_datasets.py")


# Before the hook that leaves slow tests out.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.path.name not in _QUICK:
            item.add_marker("slow")


@pytest.fixture
def folder(tmp_path):
    """A data folder with a vowel file of three classes that a quadratic model separates."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (800, 10))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] ** 2 > 3)
    table = np.column_stack([np.arange(800) % 4 == 3, np.zeros((800, 2)), X, y])
    path = tmp_path / "data" / "vowel" / "vowel-context.data"
    path.parent.mkdir(parents=True)
    np.savetxt(path, table, delimiter=", ", fmt=["%d"] * 3 + ["%.3f"] * 10 + ["%d"])
    return tmp_path / "data"


@pytest.fixture
def write():
    """Write the files of a folder, from their names to their texts, compressed where the name says so."""

    def write(folder, texts):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            if name.endswith(".gz"):
                with gzip.open(folder / name, "wt") as file:
                    file.write(text)
            else:
                (folder / name).write_text(text, encoding="latin-1")

    return write

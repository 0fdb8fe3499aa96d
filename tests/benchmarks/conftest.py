"""The studies' tests are slow ones, but for the programs' help and the readers of data; their data are synthetic."""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if any(find_spec(name) is None for name in ("sklearn", "pandas", "matplotlib", "joblib")):
    collect_ignore_glob = ["*"]

_QUICK = ("test_programs.py", "test_data.py", "test_sets.py")


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


@pytest.fixture
def abalone(folder, write):
    """The data folder with a small abalone file, and the other two of its study by name only."""
    from benchmarks.direct_lifted.budget import SETS

    rng = np.random.default_rng(0)
    X, sex = rng.uniform(-1, 1, (120, 3)), rng.integers(0, 3, 120)
    y = 3 * X[:, 0] * X[:, 1] * X[:, 2] + X[:, 0] ** 2 + sex + 0.1 * rng.standard_normal(120)
    lines = [f"{'MFI'[s]},{a:.4f},{b:.4f},{c:.4f},{t:.4f}" for s, (a, b, c), t in zip(sex, X, y, strict=True)]
    header = "% comment\n@relation 'a'\n@attribute 'Sex' { M, F, I}\n@data\n"
    for source in SETS.values():
        write(folder / source.folder, dict.fromkeys(source.files, header))
    write(folder / "abalone", {"abalone.arff": header + "\n".join(lines) + "\n\n"})
    return folder


def make_ratings(n, seed=0):
    """Ratings of a model with main effects and a product, each pair with probability 0.6."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random(n) < 0.6)
    of_users, of_items = rng.standard_normal((2, max(n), 2))
    table = of_users[: n[0], :1] + of_items[: n[1], 0] + np.outer(of_users[: n[0], 1], of_items[: n[1], 1])
    return users, items, np.clip(np.round(3 + table[users, items]), 1, 5)


@pytest.fixture
def movielens(folder, write):
    """The data folder with small MovieLens sets: 100K with users and films, in one file and in two, and 1M."""
    rng = np.random.default_rng(0)
    rated = [
        (1 + u, 1 + i, int(y), rng.integers(10) * 7 * 24 * 3600)
        for u, i, y in zip(*make_ratings((40, 20)), strict=True)
    ]
    lines, n_test = ["\t".join(map(str, row)) for row in rated], len(rated) // 5
    users = [(u, (1, 18, 25, 35, 45, 50, 56)[u % 7], "FM"[u % 2]) for u in range(1, 41)]
    genres = rng.integers(2, size=(21, 19))
    dates = ["", *(f"01-Jan-{1922 + 4 * film}" for film in range(2, 21))]
    small = {
        "u.data": lines,
        "u1.base": lines[n_test:],
        "u1.test": lines[:n_test],
        "u.user": [f"{u}|{age}|{gender}|job{u % 3}|{'0123V'[u % 5]}1234" for u, age, gender in users],
        "u.item": [f"{f}|Thé {f}|{date}||url|{'|'.join(map(str, genres[f]))}" for f, date in enumerate(dates, 1)],
    }
    large = {
        "ratings_notimestamp.dat.gz": [f"{u}::{f}::{y}" for u, f, y, _ in rated],
        "users.dat": [f"{u}::{gender}::{age}::{u % 3}::0" for u, age, gender in users],
        "movies.dat": [f"{f}::F ({1922 + 4 * f})::{('Drama|War', 'Comedy')[genres[f, 0]]}" for f in range(1, 21)],
    }
    for name, files in (("ml-100k", small), ("ml-1m", large)):
        write(folder / name, {file: "\n".join(rows) + "\n" for file, rows in files.items()})
    return folder

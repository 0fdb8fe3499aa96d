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


def make_ratings(n=(20, 15), seed=0):
    """Ratings of a model with main effects and a product, each pair with probability 0.6."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random(n) < 0.6)
    of_users, of_items = rng.standard_normal((2, max(n), 2))
    table = of_users[: n[0], :1] + of_items[: n[1], 0] + np.outer(of_users[: n[0], 1], of_items[: n[1], 1])
    return users, items, np.clip(np.round(3 + table[users, items]), 1, 5)


@pytest.fixture
def write_ratings(write):
    """Write the files of MovieLens 100K into a folder, every fifth rating in the test."""

    def write_ratings(folder):
        rows = enumerate(zip(*make_ratings(), strict=True))
        lines = [f"{1 + u}\t{1 + i}\t{y:.0f}\t88{n}\n" for n, (u, i, y) in rows]
        n_test = len(lines) // 5
        write(folder / "ml-100k", {"u1.base": "".join(lines[n_test:]), "u1.test": "".join(lines[:n_test])})

    return write_ratings


@pytest.fixture
def write_movielens(write):
    """Write users, films and ratings into a folder, and return the pairs of five stars."""

    def write_movielens(folder, n=(12, 15)):
        rng = np.random.default_rng(0)
        jobs, zips = ["artist", "writer", "other"], "0123V"
        users = "".join(f"{u + 1}|{7 + 5 * u}|{'FM'[u % 2]}|{jobs[u % 3]}|{zips[u % 5]}1234\n" for u in range(n[0]))
        genres = ["|".join(map(str, rng.integers(2, size=19))) for _ in range(n[1])]
        films = "".join(f"{f + 1}|Thé {f}|01-Jan-{1922 + 5 * f}||url|{genres[f]}\n" for f in range(n[1] - 1))
        films += f"{n[1]}|unknown||||{genres[-1]}\n"
        rated = rng.permutation(n[0] * n[1])[:120]
        stars = np.where(np.arange(120) % 4, 5, 1 + np.arange(120) % 3)
        ratings = "".join(
            f"{1 + p // n[1]}\t{1 + p % n[1]}\t{s}\t8{i}\n" for i, (p, s) in enumerate(zip(rated, stars, strict=True))
        )
        write(folder / "ml-100k", {"u.user": users, "u.item": films, "u.data": ratings})
        return {(p // n[1], p % n[1]) for p, s in zip(rated, stars, strict=True) if s == 5}

    return write_movielens

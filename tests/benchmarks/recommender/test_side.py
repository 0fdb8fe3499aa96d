"""Side information in the recommender study, on small synthetic files: no data folder is needed."""

import numpy as np
import pytest

from benchmarks.recommender import side

GENRES = ("Comedy", "Drama", "War")


@pytest.fixture
def folder(tmp_path, write):
    """Six users, each with an age group of 100K and 1M alike, nine films, and half of all ratings in both formats."""
    rng = np.random.default_rng(0)
    ages, flags = (1, 18, 25, 35, 45, 50), rng.integers(0, 2, (9, 3))
    flags[:, 0] |= flags.sum(axis=1) == 0
    rated = [(u, f, rng.integers(1, 6)) for u in range(1, 7) for f in range(1, 10) if rng.random() < 0.7]
    years, known = [f"19{80 + f}" for f in range(1, 10)], np.array(GENRES)
    small = {
        "u.data": [f"{u}\t{f}\t{y}\t88" for u, f, y in rated],
        "u.user": [f"{u}|{age}|{'FM'[u % 2]}|job{u % 3}|0" for u, age in enumerate(ages, 1)],
        "u.item": [f"{f}|F|01-Jan-{years[f - 1]}||url|{'|'.join(map(str, flags[f - 1]))}" for f in range(1, 10)],
    }
    large = {
        "ratings_notimestamp.dat.gz": [f"{u}::{f}::{y}" for u, f, y in rated],
        "users.dat": [f"{u}::{'FM'[u % 2]}::{age}::{u % 3}::0" for u, age in enumerate(ages, 1)],
        "movies.dat": [f"{f}::F ({years[f - 1]})::{'|'.join(known[flags[f - 1] == 1])}" for f in range(1, 10)],
    }
    for name, files in (("ml-100k", small), ("ml-1m", large)):
        write(tmp_path / name, {file: "\n".join(lines) + "\n" for file, lines in files.items()})
    return tmp_path


def test_the_program_prints_a_row_a_fit(folder, capsys, monkeypatch):
    monkeypatch.setitem(side._USERS, "ml-1m", 1.0)
    assert side.main(["--data", str(folder), "--units", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(row[0], "side" in row, row[-4]) for row in rows] == [
        (name, known, scale) for name in side.SETS for known in (False, True) for scale in ("none", "large")
    ]
    # Users and films alone are fitted as they are.
    assert all(rows[place][-3] == rows[place + 1][-3] for place in (0, 4))

"""The literature's splits, on small synthetic files: no data folder is needed."""

import numpy as np
import pytest

from benchmarks.recommender import splits
from benchmarks.recommender.data import load

N_TEST = 12


@pytest.fixture
def folder(tmp_path, write, monkeypatch):
    """Eight users, nine films and most of all ratings, of 100K in its two files with dates and of 1M without."""
    rng = np.random.default_rng(0)
    rated = [(u, f, rng.integers(1, 6), rng.integers(10) * splits._WEEK) for u in range(1, 9) for f in range(1, 10)]
    rated = [rated[i] for i in rng.permutation(len(rated))[:60]]
    lines = ["\t".join(map(str, row)) for row in rated]
    small = {"u1.base": lines[:-N_TEST], "u1.test": lines[-N_TEST:]}
    large = {"ratings_notimestamp.dat.gz": [f"{u}::{f}::{y}" for u, f, y, _ in rated]}
    for name, files in (("ml-100k", small), ("ml-1m", large)):
        write(tmp_path / name, {file: "\n".join(lines) + "\n" for file, lines in files.items()})
    monkeypatch.setattr(splits, "_U1_TEST", N_TEST)
    monkeypatch.setattr(splits, "_ALPHAS", (1.0, 2.0))
    return tmp_path


def test_columns_hold_what_the_training_rows_say(folder):
    ratings = load("ml-100k", folder)
    train, test = splits.make_parts("ml-100k", len(ratings.y), 0)
    assert (len(train), len(test)) == (48, N_TEST)
    weeks = splits._weeks(str(folder))
    case = splits.make_columns(ratings, "dates", weeks, train)
    X, (n_users, n_items) = case.X.tocsr().toarray(), ratings.shape
    assert X.shape[1] == sum(case.fields) == 2 * (n_users + n_items) + weeks.max() + 1
    for i in (train[0], test[0]):
        user, item, week = ratings.users[i], ratings.items[i], weeks[i]
        rated = np.zeros(n_items)
        rated[ratings.items[train][ratings.users[train] == user]] = 1.0
        raters = np.zeros(n_users)
        raters[ratings.users[train][ratings.items[train] == item]] = 1.0
        parts = [np.eye(n_users)[user], rated, np.eye(n_items)[item], raters, np.eye(weeks.max() + 1)[week]]
        parts[1:4:2] = (part / max(np.linalg.norm(part), 1.0) for part in parts[1:4:2])
        np.testing.assert_allclose(X[i], np.concatenate(parts))


def test_splits_of_the_million_differ():
    (train, test), (_, other) = (splits.make_parts("ml-1m", 100, split) for split in (0, 1))
    assert sorted([*train, *test]) == list(range(100))
    assert len(test) == 10
    assert set(test) != set(other)


def test_the_program_prints_a_row_a_fit(folder, capsys):
    options = ["--splits", "2", "--methods", "FM", "ordinal"]
    assert splits.main(["--data", str(folder), *options]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    small, large = (sum(row[0] == name and "mean" not in row for row in lines) for name in splits.NAMES)
    assert (small, large) == (3 * 2, 2 * 2 * 2)
    assert sum("mean" in row for row in lines) == 4
    assert sum(row[0] == "published:" for row in lines) == 2

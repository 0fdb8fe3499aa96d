"""Scales of fields in the recommender study, on small synthetic files: no data folder is needed."""

import numpy as np
import pytest

from benchmarks.recommender import fields, splits


@pytest.fixture
def folder(tmp_path, write, monkeypatch):
    """Six users, nine films and half of all ratings of MovieLens 100K, with what is known of users and films."""
    rng = np.random.default_rng(0)
    rated = [(u, f, rng.integers(1, 6)) for u in range(1, 7) for f in range(1, 10)]
    rated = [f"{u}\t{f}\t{y}\t88" for u, f, y in (rated[i] for i in rng.permutation(54)[:45])]
    users = [f"{u}|{age}|{'FM'[u % 2]}|job{u % 3}|0" for u, age in enumerate((1, 18, 25, 35, 45, 50), 1)]
    films = [f"{f}|F|01-Jan-19{80 + f}||url|1|{f % 2}|0" for f in range(1, 10)]
    files = {"u1.base": rated[:-9], "u1.test": rated[-9:], "u.data": rated, "u.user": users, "u.item": films}
    write(tmp_path / "ml-100k", {name: "\n".join(lines) + "\n" for name, lines in files.items()})
    monkeypatch.setattr(splits, "_U1_TEST", 9)
    return tmp_path


def test_side_columns_are_those_of_the_user_and_the_film(folder):
    case = fields._case("ml-100k", "side", "u1", str(folder))
    # Users, genders, age groups, occupations; films, decades, genres.
    assert case.design.fields == [6, 2, 6, 3, 9, 1, 2]
    X, (user, film) = case.design.X.tocsr().toarray(), (case.ratings.users[0], case.ratings.items[0])
    assert np.flatnonzero(X[0])[0] == user
    np.testing.assert_array_equal(X[0, 6:8], np.eye(2)[(user + 1) % 2])
    np.testing.assert_array_equal(X[0, 17:26], np.eye(9)[film])
    np.testing.assert_array_equal(X[0, 27:], [1, (film + 1) % 2])


def test_the_program_prints_a_row_a_fit(folder, capsys):
    options = ["--sets", "ml-100k", "--splits", "u1", "1", "--alphas", "1", "2"]
    assert fields.main(["--data", str(folder), *options]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(rows) == 3 * 2 * 3
    assert [row[1] for row in rows] == [columns for columns in fields.COLUMNS for _ in range(6)]
    held_out = [
        (float(row[-k - 2]), float(row[-k - 1])) for row in rows for k in [{"ids": 2, "implicit": 4, "side": 7}[row[1]]]
    ]
    assert all(chosen <= ones for ones, chosen in held_out)

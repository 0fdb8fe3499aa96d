"""The recommender study, on small synthetic files: no data folder is needed."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks.recommender import side, splits
from benchmarks.recommender.cells import Task, make_task, measures, run_cell
from benchmarks.recommender.data import Ratings, load, random_parts
from benchmarks.recommender.implicit_methods import Method, ease
from benchmarks.recommender.models import FITS
from benchmarks.recommender.plan import Cell
from tests.benchmarks.conftest import make_ratings

# -- splits ------------------------------------------------------------------------------------------------------------


def test_parts_are_disjoint_seeded_and_of_the_right_sizes():
    parts = random_parts(1000, 3, (0.5, 0.25))
    np.testing.assert_array_equal(np.sort(np.concatenate([parts.fit, parts.held, parts.test])), np.arange(1000))
    np.testing.assert_array_equal(np.sort(parts.train), np.sort(np.concatenate([parts.fit, parts.held])))
    assert [len(places) for places in (parts.fit, parts.held, parts.test)] == [500, 250, 250]
    np.testing.assert_array_equal(parts.fit, random_parts(1000, 3, (0.5, 0.25)).fit)
    assert not np.array_equal(parts.fit, random_parts(1000, 4, (0.5, 0.25)).fit)
    drawn = random_parts(1000, 3, (0.5, 0.25), rows=40)
    assert len(drawn.train) + len(drawn.test) == 40


# -- cells -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ratings():
    return Ratings(*make_ratings((40, 30)))


def test_one_user_ranked_by_hand():
    found = measures(np.array([1.0, 3.0, 2.0]), np.array([2.0, 2.5, 3.5]), np.zeros(3))
    assert found["rmse"] == pytest.approx(np.sqrt((1.0 + 0.25 + 2.25) / 3))
    assert found["ndcg1"] == pytest.approx(3 / 7)
    assert found["linear1"] == pytest.approx(2 / 3)
    assert list(measures(np.ones(2), np.ones(2), np.zeros(2), ranked=False)) == ["rmse"]


@pytest.mark.parametrize("study", ["ranking", "kernels"])
def test_the_strength_is_chosen_without_the_test(ratings, study, monkeypatch):
    cell = Cell(study, "ml-100k", 0, "A2-linear", 2)
    task, fitted = make_task(cell, ratings), []
    original = FITS["A2-linear"]

    def spy(X, y, options):
        fitted.append(X.toarray())
        return original(X, y, options)

    monkeypatch.setitem(FITS, "A2-linear", spy)
    row = run_cell(cell, task)
    searched = fitted[: len(cell.grid)]
    assert all(np.array_equal(X, task.X[task.parts.fit].toarray()) for X in searched)
    if study == "ranking":
        assert len(fitted) == len(cell.grid)
    else:
        assert np.array_equal(fitted[-1], task.X[task.parts.train].toarray())
        assert len(fitted) == len(cell.grid) + 1
    # Other targets in the test change its figures and nothing else.
    y = task.y.copy()
    y[task.parts.test] = 6 - y[task.parts.test]
    other = run_cell(cell, Task(task.X, y, task.users, task.parts))
    assert other["rmse"] != row["rmse"]
    assert [other[name] for name in ("strength", "curve", "units")] == [
        row[name] for name in ("strength", "curve", "units")
    ]


# -- the literature's splits, and side information ---------------------------------------------------------------------


def test_columns_hold_what_the_training_rows_say(movielens, monkeypatch):
    monkeypatch.setattr(splits, "U1_TEST", 9)
    ratings = load("ml-100k", movielens)
    train, test = splits.make_parts("ml-100k", len(ratings.y), 0)
    assert len(train) + len(test) == len(ratings.y)
    assert len(test) == 9
    weeks = splits._weeks(str(movielens))
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


def test_splits_print_a_row_a_fit(movielens, capsys, monkeypatch):
    monkeypatch.setattr(splits, "U1_TEST", 9)
    monkeypatch.setattr(splits, "ALPHAS", (1.0, 2.0))
    options = ["--splits", "2", "--methods", "FM", "ordinal"]
    assert splits.main(["--data", str(movielens), *options]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    small, large = (sum(row[0] == name and "mean" not in row for row in lines) for name in splits.NAMES)
    assert (small, large) == (3 * 2, 2 * 2 * 2)
    assert sum("mean" in row for row in lines) == 4
    assert sum(row[0] == "published:" for row in lines) == 2


def test_side_information_prints_a_row_a_fit(movielens, capsys, monkeypatch):
    monkeypatch.setitem(side._USERS, "ml-1m", 1.0)
    assert side.main(["--data", str(movielens), "--units", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(row[0], "side" in row, row[-4]) for row in rows] == [
        (name, known, scale) for name in side.SETS for known in (False, True) for scale in ("none", "large")
    ]
    # Users and films alone are fitted as they are.
    assert all(rows[place][-3] == rows[place + 1][-3] for place in (0, 4))


@pytest.mark.parametrize("shape", [(12, 7), (7, 12)])
def test_ease_is_the_regression_of_each_item_on_the_others(shape):
    likes = (np.random.default_rng(0).random(shape) < 0.4).astype(float)
    expected = np.zeros(shape)
    for item in range(shape[1]):
        others = np.delete(likes, item, axis=1)
        gram = others.T @ others + 3.0 * np.eye(shape[1] - 1)
        expected[:, item] = others @ np.linalg.solve(gram, others.T @ likes[:, item])
    np.testing.assert_allclose(ease(sparse.csr_array(likes), 3.0), expected, atol=1e-10)


def test_options_are_those_of_the_best_lists_on_held_out_pairs():
    likes = sparse.csr_array((np.random.default_rng(0).random((40, 30)) < 0.3).astype(float))

    def scores(train, follows):
        return follows * (likes - train).toarray()

    assert Method(scores, {"follows": (-1.0, 1.0, 0.0)}).chosen(likes) == {"follows": 1.0}
    assert not Method(scores, {}, "nobody_has_it").is_installed

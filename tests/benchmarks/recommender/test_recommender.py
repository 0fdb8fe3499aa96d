"""The recommender study, on small synthetic files: no data folder is needed."""

import numpy as np
import pytest

from benchmarks.recommender.cells import Task, make_task, measures, run_cell
from benchmarks.recommender.data import SETS, Ratings, load, random_parts
from benchmarks.recommender.models import FITS, MODELS
from benchmarks.recommender.plan import COLUMNS, GRIDS, PLANS, Cell
from benchmarks.recommender.report import report
from tests.benchmarks.conftest import make_ratings

# -- readers -----------------------------------------------------------------------------------------------------------


def test_movielens_100k_has_the_test_rows_last(tmp_path, write):
    write(tmp_path / "ml-100k", {"u1.base": "7\t30\t5\t1\n9\t10\t2\t2\n", "u1.test": "7\t10\t4\t3\n"})
    ratings = load("ml-100k", tmp_path)
    np.testing.assert_array_equal(ratings.users, [0, 1, 0])
    np.testing.assert_array_equal(ratings.items, [1, 0, 0])
    np.testing.assert_array_equal(ratings.y, [5, 2, 4])


def test_movielens_1m_reads_colons(tmp_path, write):
    write(tmp_path / "ml-1m", {"ratings_notimestamp.dat.gz": "1::1193::5\n1::661::3\n4::661::1\n"})
    ratings = load("ml-1m", tmp_path)
    assert ratings.shape == (2, 2)
    np.testing.assert_array_equal(ratings.items, [1, 0, 0])
    np.testing.assert_array_equal(ratings.y, [5, 3, 1])


def test_lastfm_counts_users_of_a_tag_or_tags_of_a_user(tmp_path, write):
    # Users 2 and 3, artists 50 and 60, tags 7, 8 and 9; a repeated line counts once.
    rows = [(2, 50, 7), (2, 50, 8), (2, 60, 9), (3, 50, 7), (3, 50, 7)]
    text = "userID\tartistID\ttagID\tday\tmonth\tyear\n" + "".join(f"{u}\t{a}\t{t}\t1\t4\t2009\n" for u, a, t in rows)
    write(tmp_path / "lastfm-2k", {"user_taggedartists.dat.gz": text})
    counted = {}
    for name in ("lastfm", "lastfm-users"):
        ratings = load(name, tmp_path)
        counted[name] = dict(zip(zip(ratings.users, ratings.items, strict=True), ratings.y, strict=True))
    assert counted["lastfm"] == {(0, 0): 2, (0, 1): 1, (1, 2): 1}
    assert counted["lastfm-users"] == {(0, 0): 2, (0, 1): 1, (1, 0): 1}


def test_rows_have_a_one_for_the_user_and_one_for_the_item():
    ratings = Ratings(*make_ratings())
    X = ratings.rows().toarray()
    n_users, n_items = ratings.shape
    assert X.shape == (len(ratings.y), n_users + n_items)
    np.testing.assert_array_equal(X.sum(axis=1), 2)
    np.testing.assert_array_equal(X[:, :n_users].argmax(axis=1), ratings.users)
    np.testing.assert_array_equal(X[:, n_users:].argmax(axis=1), ratings.items)


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


@pytest.mark.parametrize(("study", "held"), [("ranking", 1 / 3), ("kernels", 1 / 4)])
def test_studies_have_the_shares_of_their_papers(study, held):
    ratings = Ratings(*make_ratings((60, 50)))
    parts = make_task(Cell(study, "ml-100k", 0, "A2-linear", 2), ratings).parts
    assert len(parts.test) / len(ratings.y) == pytest.approx(0.25, abs=0.005)
    assert len(parts.held) / len(parts.train) == pytest.approx(held, abs=0.005)


def test_grids_are_those_of_the_norm():
    assert len({Cell("ranking", "ml-100k", 0, model, 5).grid for model in MODELS}) == 4
    assert {set_ for _, set_ in PLANS} == set(GRIDS) == set(SETS)


# -- cells -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ratings():
    return Ratings(*make_ratings((40, 30)))


@pytest.mark.parametrize("model", MODELS)
def test_every_model_learns(ratings, model, monkeypatch):
    monkeypatch.setitem(GRIDS, "ml-100k", {"": (1.0, 1e5)})
    cell = Cell("ranking", "ml-100k", 0, model, 3)
    task = make_task(cell, ratings)
    row = run_cell(cell, task)
    assert row["strength"] == "1"
    mean = np.full(len(task.parts.test), task.y[task.parts.train].mean())
    assert float(row["rmse"]) < 0.9 * measures(task.y[task.parts.test], mean, task.users[task.parts.test])["rmse"]
    assert set(row) == set(COLUMNS)
    assert 1 <= row["units"] <= 3


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


# -- the program -------------------------------------------------------------------------------------------------------


def test_the_report_averages_splits():
    cell = Cell("kernels", "lastfm", 0, "all-subsets", 5)
    rows = [
        {name: "" for name in COLUMNS} | {name: str(value) for name, value in (cell.key | changes).items()}
        for changes in ({"split": 0, "rmse": 1.5, "strength": 3}, {"split": 1, "rmse": 1.7, "strength": 3})
    ]
    text = report(rows)
    assert "2 splits" in text
    assert "1.6000" in text

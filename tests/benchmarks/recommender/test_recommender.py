"""The recommender study, on small synthetic files: no data folder is needed."""

import numpy as np
import pytest

from benchmarks.recommender.cells import Task, make_task, measures, run_cell
from benchmarks.recommender.data import Ratings, random_parts
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

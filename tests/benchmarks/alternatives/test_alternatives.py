"""The study of alternatives: grids, sizes, the choice on held-out rows, tables, and the program with cheap methods."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.alternatives import report
from benchmarks.alternatives.fits import COLUMNS, choose, run_task
from benchmarks.alternatives.methods import METHODS, Method, installed_methods
from benchmarks.alternatives.sizes import numbers_held
from benchmarks.common.collection import hold_out
from benchmarks.common.study import Task

# -- methods and sizes -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, n_features=3, centers=[[0, 0, 0], [9, 0, 0], [0, 9, 0]], random_state=0)


@pytest.mark.parametrize("method", installed_methods())
def test_every_method_separates_blobs_and_has_a_size(blobs, method):
    grid = METHODS[method].grid(*blobs[0].shape)
    model = next(iter(grid.values())).fit(*blobs)
    assert model.score(*blobs) > 0.95
    assert numbers_held(model) > 0
    assert len({repr(estimator) for estimator in grid.values()}) == len(grid)


def test_sizes_count_what_models_hold(blobs):
    X, y = blobs
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    assert numbers_held(linear) == 2 * 3 + 3 * (3 + 1)
    machine = SVC(kernel="linear").fit(X, y == 0)
    vectors = len(machine.support_)
    assert numbers_held(machine) == vectors * 3 + vectors + 1
    rest = OneVsRestClassifier(SVC(kernel="linear")).fit(X, y)
    assert numbers_held(rest) == sum(4 * len(one.support_) + 1 for one in rest.estimators_)
    # Three classes, two rounds: six stumps, each of a feature, a threshold and two values.
    stumps = HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=2, min_samples_leaf=5).fit(X, y)
    assert numbers_held(stumps) == 6 * 4


# -- fits --------------------------------------------------------------------------------------------------------------


def _constant(label):
    return DummyClassifier(strategy="constant", constant=label)


def test_the_best_on_held_out_rows_is_chosen_and_of_equals_the_first():
    """A grid that is out of time is cut off after its first."""
    X, y = np.zeros((80, 1)), np.repeat([0, 1, 2], [20, 40, 20])
    grid = {"rare": _constant(0), "usual": _constant(1), "the same": _constant(1), "rare too": _constant(2)}
    assert choose(grid, X, y, 0, 60.0) == ("usual", 4)
    assert choose(grid, X, y, 0, -1.0) == ("rare", 1)


class Recorder(LogisticRegression):
    """Keeps the rows that it is fitted to; its fits never converge."""

    fitted: ClassVar = []

    def fit(self, X, y):
        self.fitted.append({tuple(row) for row in X})
        warnings.warn("deliberate", ConvergenceWarning, stacklevel=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().fit(X, y)


def test_the_test_rows_are_in_no_fit(monkeypatch):
    def grid(n, d):
        return {"C 1": Recorder(C=1, max_iter=5), "C 2": Recorder(C=2, max_iter=5)}

    monkeypatch.setitem(METHODS, "linear", Method("linear", grid))
    monkeypatch.setattr(Recorder, "fitted", [])
    row = run_task(Task("breast_cancer", 1, "linear"), "nowhere", 60.0)
    assert list(row) == COLUMNS
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, _, _ = hold_out(X, y, 1)
    first, second, whole = Recorder.fitted
    assert first == second < whole == {tuple(x) for x in X_train}
    assert whole.isdisjoint({tuple(x) for x in X_test})
    assert row["tried"] == "2 of 2"
    assert row["size"] == X.shape[1] + 1
    assert row["note"] == "not converged"


# -- report ------------------------------------------------------------------------------------------------------------

_REFERENCE = report.REFERENCE


def _fits(*rows):
    """Return fits from (set, split, method, accuracy, one_row), of no accuracy a skipped one."""
    records = []
    for name, split, method, accuracy, one_row in rows:
        record = dict.fromkeys(COLUMNS, "1") | {"set": name, "split": str(split), "method": method, "note": ""}
        record |= {"accuracy": accuracy, "one_row": one_row, "dropped": "0"}
        if accuracy == "":
            record |= dict.fromkeys(("fit", "one_row", "batch_row", "size"), "") | {"note": "skipped: too wide"}
        records.append(record)
    return report.frame(records)


@pytest.fixture
def fits():
    """Two sets, one of which is too large for the linear model; the other's first split is a draw."""
    rows = []
    for split in range(3):
        rows += [("a", split, "linear", str(0.5 + 0.1 * split), "1e-6"), ("a", split, _REFERENCE, "0.5", "4e-6")]
        rows += [("b", split, "linear", "", ""), ("b", split, _REFERENCE, "0.9", "16e-6")]
        rows += [("a", split, "mopn", "0.4", "1e-6"), ("b", split, "mopn", "0.9", "9e-6")]
    return _fits(*rows)


def test_the_summary_is_over_the_sets_that_all_methods_have(fits):
    found = report.summary(fits)
    assert set(found["sets"]) == {1}
    assert found.loc[_REFERENCE, "accuracy"] == pytest.approx(50)
    without = report.summary(fits[fits["method"] != "linear"])
    assert set(without["sets"]) == {2}
    assert without.loc[_REFERENCE, "accuracy"] == pytest.approx(70)
    assert without.loc[_REFERENCE, "one_row"] == pytest.approx(8e-6)


def test_wins_and_losses_are_of_the_sets_shared_with_the_reference(fits):
    found = report.summary(fits)
    counts = ["wins", "ties", "losses", "clear_wins", "clear_losses"]
    # The linear model's mean difference on a, 10 points, is less than two of its standard errors.
    assert list(found.loc["linear", counts]) == [1, 0, 0, 0, 0]
    assert list(found.loc["mopn", counts]) == [0, 1, 1, 0, 1]

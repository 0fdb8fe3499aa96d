"""The random search of the study of tables, what it searches, and the methods that it tunes."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from benchmarks.common.study import Task
from benchmarks.tables.fits import COLUMNS, run_task
from benchmarks.tables.methods import METHODS, Method
from benchmarks.tables.recursive_features import RecursiveFeatureClassifier, RecursiveFeatureRegressor
from benchmarks.tables.tuning import tune

TUNED = [name for name, method in METHODS.items() if method.spaces and method.is_installed]


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


def test_what_fails_is_not_chosen():
    X, y = pd.DataFrame({"x": range(60)}), np.arange(60) % 2
    model = DummyClassifier()
    assert tune(model, {"strategy": ["unknown"]}, X, y, seconds=60.0, seed=0) == 2
    assert model.strategy == "prior"


@pytest.mark.parametrize("name", TUNED)
@pytest.mark.parametrize("classes", [True, False])
def test_spaces_are_of_parameters(name, classes):
    method = METHODS[name]
    model = method.classifier() if classes else method.regressor()
    space = method.spaces[0 if classes else 1]
    assert set(space) <= set(model.get_params())
    assert METHODS[name.removesuffix("-tuned")].spaces is None


def test_a_row_of_a_tuned_method_counts_its_configurations(monkeypatch):
    space = {"strategy": ["uniform"]}, {"strategy": ["median"]}
    monkeypatch.setitem(METHODS, "linear-tuned", Method("", DummyClassifier, DummyRegressor, spaces=space))
    row = run_task(Task("diabetes", 0, "linear-tuned"), "nowhere", 60.0, 60.0)
    assert list(row) == COLUMNS
    assert row["tried"] == "2"
    assert run_task(Task("breast_cancer", 0, "linear"), "nowhere", 60.0, 60.0)["tried"] == ""


class Machine:
    """Predicts the mean target of its training rows, as xRFM would be asked to."""

    def __init__(self, parameters, **options):
        self.parameters = parameters

    def fit(self, X, y, X_quarter, y_quarter):
        assert X.dtype == np.float32
        assert len(X_quarter) == len(y_quarter) == (len(X) + len(X_quarter)) // 4
        self.mean = np.mean(y)

    def predict(self, X):
        return np.full((len(X), 1), self.mean)

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_recursive_features_are_an_estimator(monkeypatch):
    module = ModuleType("xrfm")
    module.xRFM = Machine
    monkeypatch.setitem(sys.modules, "xrfm", module)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), 1e3 + rng.normal(size=80)
    regressor = RecursiveFeatureRegressor(bandwidth=3.0).fit(X, y)
    assert regressor.machine_.parameters["model"]["bandwidth"] == 3.0
    np.testing.assert_allclose(regressor.predict(X), 1e3, atol=1.0)
    classifier = RecursiveFeatureClassifier().fit(X, np.arange(80) % 2)
    np.testing.assert_array_equal(classifier.classes_, [0, 1])
    assert classifier.predict_proba(X).shape == (80, 2)
    assert classifier.predict(X).shape == (80,)

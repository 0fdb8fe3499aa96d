"""The random search of the study of tables, what it searches, and the methods that it tunes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from benchmarks.tables.tuning import tune


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

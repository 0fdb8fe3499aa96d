"""The study of radii: models made of other classifiers give the same predictions, and attacks reach other classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from benchmarks.robustness import flips
from benchmarks.robustness.classifiers import ATTACKED, PROVEN, attacked_distances

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 3))
Y = np.argmax(np.column_stack([X[:, 0], X[:, 1] ** 2, 0.5 - X[:, 2]]), axis=1)


def test_models_are_those_of_the_classifiers_that_they_are_made_of():
    logistic = LogisticRegression(max_iter=5000).fit(X, Y)
    np.testing.assert_allclose(PROVEN["logistic regression"](X, Y).outputs(X), logistic.decision_function(X))
    svm = OneVsRestClassifier(SVC(kernel="poly", degree=2, coef0=1.0)).fit(X, Y)  # gamma="scale" as in the study
    network = PROVEN["quadratic SVM, one against the rest"](X, Y)
    np.testing.assert_allclose(network.outputs(X), svm.decision_function(X), atol=1e-9)


def test_attacks_find_the_boundaries_that_symmetry_tells():
    """Three classes of a point each on a regular triangle: they meet on the bisectors, at 60 degrees to a vertex."""
    angles = np.radians([0.0, 120.0, 240.0])
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    several = ATTACKED["RBF SVM, one against the rest"](points, np.arange(3))
    rows = 0.5 * np.column_stack([np.cos(np.radians([20.0, -10.0])), np.sin(np.radians([20.0, -10.0]))])
    expected = 0.5 * np.sin(np.radians([40.0, 50.0]))
    found = attacked_distances(several, rows)
    assert (found >= expected * (1 - 1e-6)).all()
    np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.mark.parametrize("model", flips._MODELS)
def test_flips_of_a_class_that_a_column_tells(model):
    """One column tells the class and the others nothing: every row has exactly one flip that alters it."""
    table = pd.DataFrame(RNG.choice(["x", "y", "z"], (400, 4)), columns=list("abcd"))
    y = (table["b"] == "y").to_numpy().astype(int)
    found = flips.answers(flips._MODELS[model], table[:300], table[300:], y[:300], y[300:])
    assert found.right.all()
    assert (found.flips.found == 1).all()
    assert found.columns == 4

"""The dual points of estimators prove their lower bounds for X, y and weights as the user gave them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mopn
from mopn import estimators

rng = np.random.default_rng(0)
DISTINCT = rng.uniform(-1, 1, (30, 3)).round(1)
# Rows that repeat, in no order, and one of another class that has no weight.
X = DISTINCT[rng.integers(0, 30, 70)]
Y = np.where(X[:, 0] * X[:, 1] > 0, "same", np.where(X[:, 2] > 0, "up", "down"))
W = rng.integers(0, 4, 70).astype(float)
W[0] = 0.0
Y = np.where(np.arange(70) == 0, "none of these", Y)
PLAIN = {"norm": "l1", "strength": 1.0, "ridge": 0.0, "scale": None, "fit_intercept": False}
FORMS = {
    "array": lambda X: X,
    "single": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "blocks": lambda X: mopn.RowBlocks(X, size=24),
}


def largest_form(Z, D):
    """Return the dual norm of l1: the largest modulus of an eigenvalue of the Gammas."""
    return np.abs(np.linalg.eigvalsh(np.einsum("ic,ij,ik->cjk", D, Z, Z))).max()


def conjugate(D, labels, w, offset):
    """Return F* of weighted logistic losses, negative entropies of probabilities, at outputs around an offset."""
    rows = w > 0
    one_hot = labels[rows][:, None] == np.unique(labels[rows])
    P = D[rows] / w[rows][:, None] + one_hot
    assert P.min() > -1e-12
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    logarithms = np.log(np.maximum(P, 1e-300))
    return w[rows] @ np.sum(P * logarithms, axis=1) - np.sum(D * offset)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("cls", [estimators.MultiOutputPNClassifier, estimators.MultiOutputFMClassifier])
def test_the_dual_point_has_a_row_for_each_of_x(form, weighted, cls):
    data = FORMS[form](X)
    labels, w = (Y, W) if weighted else (np.where(Y == "none of these", "up", Y), np.ones(70))
    model = cls(**PLAIN).fit(data, labels, w if weighted else None)
    D = model.dual_.point(model.problem(data, labels, w if weighted else None))
    assert D.shape == (70, 3)
    assert not D[w == 0].any()
    if cls is estimators.MultiOutputPNClassifier:
        norm = largest_form(X.astype(np.float32) if form == "single" else X, D)
        assert norm <= model.dual_.bound * (1 + 1e-9)
        assert norm >= model.dual_.bound * (1 - 1e-3)
    offset = model.model_.offset
    assert -conjugate(D, labels, w, offset) >= model.dual_.lower - 1e-9 * abs(model.dual_.lower)


@pytest.mark.parametrize("y", [X[:, :2] * X[:, 1:], np.where(X[:, 0] > 0, 2.0, 1.0)], ids=["numbers", "levels"])
def test_equal_samples_share_their_slope_by_weight(y):
    cls = estimators.MultiOutputPNRegressor if y.ndim > 1 else estimators.OrdinalPNRegressor
    options = {"strength": 0.3, "scale": None, "fit_intercept": False, "alpha": None, "norm": "l1"}
    model = cls(**options).fit(X, y, W)
    D = model.dual_.point(model.problem(X, y, W))
    assert largest_form(X, D) <= model.dual_.bound * (1 + 1e-9)
    order = np.lexsort((*y.reshape(70, -1).T, *X.T))
    rows = np.column_stack([X, y])[order]
    slopes = (D / np.where(W > 0, W, 1.0)[:, None])[order]
    present = (W > 0)[order]
    equal = (rows[1:] == rows[:-1]).all(axis=1) & present[1:] & present[:-1]
    assert equal.sum() > 5
    np.testing.assert_allclose(slopes[1:][equal], slopes[:-1][equal], atol=1e-12)
    assert not D[W == 0].any()


def table(X):
    return {"length": X[:, 0], "width": X[:, 1], "kind": np.where(X[:, 2] > 0.3, "long", "short")}


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("form", ["dictionary", "frame", "blocks"])
@pytest.mark.parametrize("cls", [estimators.TableClassifier, estimators.TableRegressor])
def test_tables_have_the_problem_of_their_fit(cls, form, fitted):
    columns = table(X)
    # A category, and a class, of rows of weight 0 alone.
    columns["kind"] = np.where(W == 0, "unseen", columns["kind"])
    y = Y if cls is estimators.TableClassifier else X[:, 0] * X[:, 1]
    given = columns if form == "dictionary" else pd.DataFrame(columns)
    if form == "blocks":
        given = mopn.RowBlocks([given[:30], given[30:]])
    strength = mopn.Ratio(0.05) if form == "blocks" or not fitted else "auto"
    model = cls(strength=strength, curves=2)
    problem = None if fitted else model.problem(given, y, W)
    model.fit(given, y, W)
    problem = model.problem(given, y, W) if fitted else problem
    D = model.dual_.point(problem)
    assert len(D) == 70
    assert not D[W == 0].any()
    Z = np.concatenate(problem.rows.sum(lambda block: [block.design.matrix()]))
    assert largest_form(Z, D) <= model.dual_.bound * (1 + 1e-9)
    assert problem.strength == pytest.approx(model.strength_, rel=1e-9)
    assert mopn.certify(problem, model).fun == pytest.approx(model.objective_, rel=1e-9)


def test_the_strength_of_a_table_is_chosen_without_a_fit():
    labels = np.where(Y == "none of these", "up", Y)
    model = estimators.TableClassifier(curves=2)
    problem = model.problem(table(X), labels)
    assert not hasattr(model, "encoding_")
    assert problem.strength == pytest.approx(model.fit(table(X), labels).strength_, rel=1e-9)


def test_a_search_has_the_problem_of_its_best_estimator():
    search = estimators.PathCV(estimators.MultiOutputPNClassifier(**PLAIN), strengths=[2.0, 1.0], cv=2)
    assert search.problem(X, Y, W).strength == 1.0
    problem = search.fit(X, Y, W).problem(X, Y, W)
    assert problem.strength == search.best_params_["strength"]
    assert largest_form(X, search.dual_.point(problem)) <= search.dual_.bound * (1 + 1e-9)
    assert mopn.certify(problem, search).fun == pytest.approx(search.best_estimator_.objective_, rel=1e-9)


@pytest.mark.parametrize(("form", "shift"), [("array", 1e4), ("array", 1e7), ("csr", 1e4), ("blocks", 1e7)])
def test_the_coordinates_of_fit_and_problem_are_the_same(form, shift):
    """A mean that differed by a rounding error of the shift would move all rows."""
    data = FORMS[form](X + shift)
    model = estimators.MultiOutputPNClassifier(norm="l1", ridge=0, max_units=3).fit(data, Y, W)
    problem = model.problem(data, Y, W)
    Z = np.concatenate(problem.rows.sum(lambda block: [block.design.matrix()]))
    assert largest_form(Z, model.dual_.point(problem)) <= model.dual_.bound

"""Coordinate descent and gradients of one output on relation blocks, against the plain matrix."""

import numpy as np
import pytest
from hypothesis import strategies as st
from properties import generators, tried
from scipy import sparse

import mopn
from mopn.data.relation_design import RelationDesign
from mopn.solvers import LBFGS, AdaGrad, CoordinateDescent

N, K = 150, 9


def drawn(rng, scale=1.0):
    """Relation blocks with gaps, the plain matrix, targets, and weights of which some are 0."""
    tables = [
        scale * sparse.random(9, 6, 0.5, format="csr", random_state=rng.integers(1 << 30)),
        rng.standard_normal((4, 3)),
        sparse.eye_array(20),  # rows that no sample has
    ]
    related = mopn.RelationBlocks(tables, np.column_stack([rng.integers(0, size, N) for size in (9, 4, 5)]))
    return related, related.tocsr(), rng.standard_normal(N), rng.integers(0, 3, N) / 2.0


BY_TABLE = {
    "pairs": {},
    "all": {"fit_linear": True, "fit_intercept": True, "fit_lower": "explicit"},
    "signs": {"lams": "signs", "penalty": "weighted"},
    "zero": {"lams": [0.0, 1.0, *np.linspace(-1, 1, K - 2)]},
    "fitted lambda": {"lams": "fit", "fit_linear": True},
    "frobenius": {"penalty": "frobenius"},
}
PLAINLY = {
    "degree 3": {"degree": 3},
    "loss": {"loss": "huber"},
    "dummy": {"fit_lower": "augment"},
    "all-subsets": {"kernel": "all-subsets"},
    "theta": {"theta": [1.0, 0.5]},
}


def results(related, plain, y, weights, solver, **options):
    given = {"n_components": K, "beta": 0.3, "alpha": 0.2, "sample_weight": weights} | options
    problems = (mopn.FactorizationProblem(X, y, **given) for X in (related, plain))
    return (mopn.minimize(problem, solver, tol=0, max_iter=12) for problem in problems)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", [CoordinateDescent(), LBFGS()], ids=["cd", "lbfgs"])
@pytest.mark.parametrize("options", BY_TABLE.values(), ids=BY_TABLE)
def test_equal_to_the_plain_matrix(options, solver, weighted, monkeypatch):
    related, plain, y, weights = drawn(np.random.default_rng(0))
    formed = []
    monkeypatch.setattr(RelationDesign, "matrix", lambda self: formed.append(self))
    found, expected = results(related, plain, y, weights if weighted else None, solver, **options)
    assert not formed
    assert found.fun == pytest.approx(expected.fun, rel=1e-12)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-9, atol=1e-9)


@tried(20, rng=generators, scale=st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]), centered=st.booleans())
def test_any_scale(rng, scale, centered):
    related, plain, y, weights = drawn(rng, scale)
    y = y + (0.0 if centered else 1e3)
    found, expected = results(related, plain, y, weights, CoordinateDescent(), fit_linear=True, lams="signs")
    assert found.fun == pytest.approx(expected.fun, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "solver"),
    [*((options, CoordinateDescent()) for options in PLAINLY.values()), ({}, AdaGrad())],
    ids=[*PLAINLY, "passes"],
)
def test_what_has_no_sums_by_table_forms_the_plain_matrix(options, solver):
    related, plain, y, weights = drawn(np.random.default_rng(0))
    found, expected = results(related, plain, y, weights, solver, **options)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-12, atol=1e-12)


def test_lifted_problems_form_the_plain_matrix():
    related, plain, y, _ = drawn(np.random.default_rng(0))
    found, expected = (mopn.minimize(mopn.LiftedProblem(X, y, rank=3), max_iter=5) for X in (related, plain))
    np.testing.assert_array_equal(found.x, expected.x)


def test_a_dominating_column_loses_no_digits():
    """Its own part of <p, b> is 1e12 times as large as the rest of the derivative."""
    rng = np.random.default_rng(0)
    table = np.column_stack([np.full(5, 1e6), rng.standard_normal((5, 2))])
    related = mopn.RelationBlocks([table, 1e-6 * np.eye(4)], rng.integers(0, 4, (N, 2)))
    y = rng.standard_normal(N)
    P = np.column_stack([np.full((K, 1), 1.0), rng.standard_normal((K, 6))])
    problems = (mopn.FactorizationProblem(X, y, n_components=K, beta=1e-3) for X in (related, related.tocsr()))
    options = {"start": {"P": P[None]}, "tol": 0, "max_iter": 3}
    found, expected = (mopn.minimize(problem, CoordinateDescent(), **options) for problem in problems)
    assert found.fun == pytest.approx(expected.fun, rel=1e-9)

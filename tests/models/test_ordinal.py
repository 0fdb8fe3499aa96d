"""Ordinal McRank: targets of levels, log-odds and probabilities that cross."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from mopn.models.base import cumulative_targets, expected_level, level_probabilities, log_odds


def test_targets_of_levels():
    np.testing.assert_array_equal(cumulative_targets(np.array([0, 1, 2]), 3), [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])


def test_log_odds_count_weights_as_repetitions():
    rng = np.random.default_rng(0)
    Y, weights = cumulative_targets(rng.integers(0, 4, 30), 4), rng.integers(1, 4, 30)
    np.testing.assert_allclose(log_odds(Y, weights), log_odds(np.repeat(Y, weights, axis=0)), rtol=1e-13)
    assert np.isfinite(log_odds(np.ones((5, 2)))).all()


@examples(50)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8))
def test_probabilities_that_cross_are_put_in_order(seed, m, n):
    rng = np.random.default_rng(seed)
    cumulative, levels = rng.uniform(size=(n, m)), np.sort(rng.standard_normal(m + 1))
    P = level_probabilities(cumulative)
    assert P.min() >= 0.0
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.cumsum(P, axis=1)[:, :-1], np.sort(cumulative, axis=1), atol=1e-14)
    # Equally spaced levels: the paper's formula, whatever crosses.
    equal = 1.0 + np.arange(m + 1)
    raw = np.diff(cumulative, axis=1, prepend=0.0, append=1.0) if n else None
    np.testing.assert_allclose(expected_level(cumulative, equal), raw @ equal, rtol=1e-12)
    # Putting in order is never further from any increasing truth.
    truth = np.sort(rng.uniform(size=(n, m)), axis=1)
    before, after = (np.abs(C - truth).sum(axis=1) for C in (cumulative, np.sort(cumulative, axis=1)))
    assert np.all(after <= before + 1e-12)
    found = expected_level(cumulative, levels)
    assert np.all((found >= levels[0] - 1e-12) & (found <= levels[-1] + 1e-12))

"""Quantiles against ranks by counting: the error is what it says, however the numbers come in blocks."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mopn.data.rows import tree_sum
from mopn.tables import quantiles
from mopn.tables.quantiles import Quantiles

RNG = np.random.default_rng(0)
NUMBERS = st.lists(
    st.tuples(st.integers(-30, 30), st.sampled_from([1e-9, 0.3, 1.0, 2.0, 40.0, 1e6])), min_size=1, max_size=150
)


def few(most):
    """Let pruning leave this number of values."""
    return patch.object(quantiles, "_MOST_VALUES", most)


def merged(blocks):
    return tree_sum((Quantiles.of(*block).pruned() for block in blocks), lambda a, b: (a + b).pruned())


def deviations(found, x, weights):
    """Return the errors of the weights up to and below every number."""
    at, both = np.unique(x)[:, None], (np.less_equal, np.less)
    return np.concatenate([abs(below(x, at) @ weights - below(found.values, at) @ found.weights) for below in both])


@given(NUMBERS, st.integers(1, 9))
@pytest.mark.parametrize("most", [4, 16])
def test_ranks_are_wrong_by_the_error_at_most(most, numbers, blocks):
    x, weights = np.array(numbers).T
    cuts = zip(np.array_split(x, blocks), np.array_split(weights, blocks), strict=True)
    parts = [part for part in cuts if len(part[0])]
    with few(most):
        found, total = merged(parts), weights.sum()
    assert len(found.values) <= most
    assert np.all(np.diff(found.values) > 0)
    assert found.weights.sum() == pytest.approx(total)
    assert (found.values[0], found.values[-1]) == (x.min(), x.max())
    rounding = 1e-12 * total
    assert deviations(found, x, weights).max() <= found.error + rounding
    assert found.error <= (1 + math.ceil(math.log2(len(parts)))) * total / (most - 2) + rounding


@pytest.mark.parametrize("blocks", [1, 2, 13, 64])
def test_many_numbers_keep_their_ranks(blocks):
    """The stated bound, of 8192 values: heavy tails, ties and the order of the rows do not matter."""
    x = np.sort(np.append(np.exp(8.0 * RNG.standard_normal(90_000)), np.full(30_000, 2.0)))
    found = merged([(part, np.ones(len(part))) for part in np.array_split(x, blocks)])
    bound = (1 + math.ceil(math.log2(blocks))) / 8190
    assert found.error / len(x) < bound
    at = np.searchsorted(x, found.values, side="right") / len(x)
    assert np.abs(np.cumsum(found.weights) / len(x) - at).max() <= found.error / len(x) + 1e-12
    exact = (np.searchsorted(x, found.values) + np.searchsorted(x, found.values, side="right")) / (2 * len(x))
    assert np.abs(found.mid_ranks - exact).max() <= found.error / len(x) + 1e-12


def test_few_numbers_are_all_kept():
    x, weights = RNG.integers(0, 8192, 50_000).astype(float), RNG.uniform(0.1, 2.0, 50_000)
    whole = Quantiles.of(x, weights)
    found = merged(list(zip(np.array_split(x, 7), np.array_split(weights, 7), strict=True)))
    assert found.error == 0.0
    assert np.array_equal(found.values, whole.values)
    assert np.allclose(found.weights, whole.weights, rtol=1e-13)


@given(st.lists(st.integers(1, 4), min_size=40, max_size=40))
def test_weights_are_repetitions(weights):
    x = np.linspace(0.0, 1.0, 40) ** 3
    with few(8):
        weighted = Quantiles.of(x, np.array(weights)).pruned()
        repeated = Quantiles.of(np.repeat(x, weights), np.ones(sum(weights))).pruned()
    assert np.array_equal(weighted.values, repeated.values)
    assert np.array_equal(weighted.weights, repeated.weights)
    assert weighted.error == repeated.error


NEAR = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, -0.3, 7.0, 1e9, 1e-200]), st.integers(-40, 40), st.integers(1, 3)),
    min_size=1,
    max_size=60,
)


@given(NEAR, st.integers(1, 4))
def test_values_that_differ_by_rounding_are_collected(numbers, blocks):
    """By their distances, whatever the order of the rows, their blocks and repetitions."""
    base, steps, weights = np.array(numbers).T
    x = base * (1.0 + steps * 2.0**-52) + (base == 0.0) * steps * 2.0**-60
    whole = Quantiles.of(x, weights)
    found, sizes = whole.rounded(), np.sort(np.repeat(np.abs(x), weights.astype(int)))
    sizes = sizes[sizes > 0.0]
    typical = sizes[(len(sizes) - 1) // 2] if len(sizes) else 0.0
    expected: list[float] = []
    for value in whole.values:
        if not expected or value - expected[-1] > 2.0**-48 * max(abs(value), abs(expected[-1]), typical):
            expected.append(value)
    assert found.values.tolist() == (whole.values if (x == np.rint(x)).all() else np.array(expected)).tolist()
    assert found.weights.sum() == weights.sum()
    repeated = np.repeat(x, weights.astype(int))[::-1]
    for other in (Quantiles.of(repeated, np.ones(len(repeated))), merged_of(x, weights, blocks)):
        assert np.array_equal(other.rounded().values, found.values)
        assert np.array_equal(other.rounded().weights, found.weights)


def merged_of(x, weights, blocks):
    cuts = zip(np.array_split(x, blocks), np.array_split(weights, blocks), strict=True)
    return merged([part for part in cuts if len(part[0])])

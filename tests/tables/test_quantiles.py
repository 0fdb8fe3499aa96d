"""Distributions against ranks by counting: the stated error holds, however the numbers come in blocks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mopn.data.rows import tree_sum
from mopn.tables.quantiles import SAMPLE_ROWS, Quantiles

RNG = np.random.default_rng(0)
WEIGHTS = st.sampled_from([1e-9, 0.3, 1.0, 2.0, 40.0, 1e6])
NUMBERS = st.lists(st.tuples(st.integers(-30, 30), WEIGHTS), min_size=1, max_size=150)


def merged(x, weights, blocks, most=SAMPLE_ROWS):
    """Return the distribution of blocks, and their number."""
    cuts = zip(np.array_split(x, blocks), np.array_split(weights, blocks), strict=True)
    parts = [Quantiles.of(*part).sampled(most) for part in cuts if len(part[0])]
    return tree_sum(parts, lambda a, b: (a + b).sampled(most)), len(parts)


def deviation(found, x, weights):
    """Return the largest error of the weights up to and below any number."""
    at = np.union1d(x, found.values)
    errors = []
    for side in ("left", "right"):
        exact, other = (
            np.append(0.0, np.cumsum(w[np.argsort(v)]))[np.searchsorted(np.sort(v), at, side=side)]
            for v, w in ((x, weights), (found.values, found.weights))
        )
        errors.append(np.abs(exact - other).max())
    return max(errors)


def check(found, x, weights, blocks, most):
    """Compare a distribution of at most ``most`` values with the numbers, at every rank."""
    total = weights.sum()
    rounding = 1e-12 * total
    assert len(found.values) <= most
    assert np.all(np.diff(found.values) > 0)
    assert found.weights.sum() == pytest.approx(total)
    assert (found.values[0], found.values[-1]) == (x.min(), x.max())
    assert deviation(found, x, weights) <= found.error + rounding
    assert found.error <= (1 + math.ceil(math.log2(blocks))) * total / most + rounding


@given(NUMBERS, st.integers(1, 9))
@pytest.mark.parametrize("most", [4, 16])
def test_ranks_are_wrong_by_the_error_at_most(most, numbers, blocks):
    x, weights = np.array(numbers).T
    found, parts = merged(x, weights, blocks, most)
    check(found, x, weights, parts, most)


@pytest.mark.parametrize("blocks", [1, 2, 13])
def test_many_numbers_keep_their_ranks(blocks):
    """The stated bound: heavy tails, ties, weights and the order of the rows do not matter."""
    x = np.sort(np.append(np.exp(8.0 * RNG.standard_normal(90_000)), np.full(30_000, 2.0)))
    weights = RNG.integers(1, 4, len(x)).astype(float)
    check(*(merged(x, weights, blocks)[0], x, weights, blocks, SAMPLE_ROWS))


def test_up_to_the_size_of_a_sample_all_numbers_are_there():
    most = SAMPLE_ROWS
    x, weights = RNG.integers(0, most, 150_000).astype(float), RNG.integers(1, 4, 150_000).astype(float)
    (found, _), whole = merged(x, weights, 7), Quantiles.of(x, weights)
    assert found.error == 0.0
    assert np.array_equal(found.values, whole.values)
    assert np.array_equal(found.weights, whole.weights)
    more = Quantiles.of(np.arange(most + 1.0), np.ones(most + 1)).sampled()
    assert len(more.values) == most
    assert more.error > 0.0


@given(st.lists(st.integers(1, 4), min_size=40, max_size=40))
def test_weights_are_repetitions(weights):
    x = np.linspace(0.0, 1.0, 40) ** 3
    weighted = Quantiles.of(x, np.array(weights)).sampled(8)
    repeated = Quantiles.of(np.repeat(x, weights), np.ones(sum(weights))).sampled(8)
    for found, expected in zip(vars(weighted).values(), vars(repeated).values(), strict=True):
        assert np.array_equal(found, expected)


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
    for other in (Quantiles.of(repeated, np.ones(len(repeated))), merged(x, weights, blocks)[0]):
        assert np.array_equal(other.rounded().values, found.values)
        assert np.array_equal(other.rounded().weights, found.weights)

"""nDCG by user, against the definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples, seeds

from mopn.ranking import grouped_ndcg


def ndcg_by_definition(y, scores, k, gain):
    """Return the mean over all orders that the scores allow."""
    gains = 2.0**y - 1.0 if gain == "exponential" else y
    discounts = np.where(np.arange(len(y)) < (k or len(y)), 1.0 / np.log2(np.arange(len(y)) + 2.0), 0.0)
    orders = [
        order
        for order in itertools.permutations(range(len(y)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    best = np.sort(gains)[::-1] @ discounts
    return np.mean([gains[list(order)] @ discounts for order in orders]) / best if best > 0 else 0.0


@examples(40)
@given(seeds, st.sampled_from([None, 1, 2, 5]), st.sampled_from(["exponential", "linear"]), st.booleans())
def test_against_the_definition(seed, k, gain, ties):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(["a", "b", "c", "d"], [2, 3, 3, 5]))
    y = rng.integers(0, 6, len(groups)).astype(float)
    scores = rng.integers(0, 3, len(groups)) if ties else rng.standard_normal(len(groups))
    exact = [ndcg_by_definition(y[groups == g], scores[groups == g], k, gain) for g in "abcd"]
    assert grouped_ndcg(y, scores, groups, k, gain) == pytest.approx(np.mean(exact), rel=1e-12)


def test_users_with_one_item():
    y, scores, groups = [5, 3, 1], [0.1, 0.2, 0.3], [0, 0, 1]
    two = grouped_ndcg(y[:2], scores[:2], groups[:2])
    assert two < 1.0
    assert grouped_ndcg(y, scores, groups) == pytest.approx(two)


def test_the_right_order_is_perfect_and_the_wrong_one_the_worst():
    rng = np.random.default_rng(0)
    y, groups = rng.permutation(40).astype(float) / 10, np.repeat(np.arange(5), 8)
    assert grouped_ndcg(y, y, groups, 3) == pytest.approx(1.0)
    others = [grouped_ndcg(y, rng.standard_normal(40), groups, 3) for _ in range(20)]
    assert grouped_ndcg(y, -y, groups, 3) < min(others)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [1], [0, 0]), {}, r"y_score must have the shape \(2,\) of y_true, got \(1,\)"),
        (([1, 2], [1, 2], [0]), {}, "groups must have the shape"),
        (([], [], []), {}, "y_true must have shape"),
        (([1, np.nan], [1, 2], [0, 0]), {}, "NaN or infinity"),
        (([1, 2000], [1, 2], [0, 0]), {}, "y_true is too large for gain='exponential'"),
        (([-1, 2], [1, 2], [0, 0]), {}, "relevances must be >= 0, got -1 in y_true; shift them"),
        (([1, 2], [1, 2], [0, 1]), {}, "every group has a single item"),
        (([1, 2], [1, 2], np.array([1, "a"], dtype=object)), {}, "groups holds labels that cannot be sorted"),
        (([1, 2], [1, 2], [1.0, np.nan]), {}, "groups has missing labels"),
        ((["a", "b"], [1, 2], [0, 0]), {}, "y_true must be numeric"),
        (([1, 2], [1, 2j], [0, 0]), {}, "y_score must hold real numbers"),
        (([[1], [1, 2]], [1, 2], [0, 0]), {}, "y_true must be an array"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        grouped_ndcg(*arguments, **options)

"""Metrics of lists from all items, against loops."""

import math

import numpy as np
import pytest
from scipy import sparse

from mopn.ranking import average_precision_at_k, ndcg_at_k, recall_at_k


def slow(relevant, scores, k, seen):
    """Recall, nDCG and average precision, user by user."""
    found = []
    for wanted, row, known in zip(relevant, scores, seen, strict=True):
        liked = {item for item in range(len(row)) if wanted[item] and not known[item]}
        if not liked:
            continue
        left = [item for item in range(len(row)) if not known[item]]
        ranked = sorted(left, key=lambda item: (-row[item], item))[:k]
        hits = [rank for rank, item in enumerate(ranked, 1) if item in liked]
        most = min(len(liked), k)
        best = sum(1.0 / math.log2(1 + rank) for rank in range(1, most + 1))
        gain = sum(1.0 / math.log2(1 + rank) for rank in hits)
        precision = sum(number / rank for number, rank in enumerate(hits, 1))
        found.append((len(hits) / most, gain / best, precision / most))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("k", [1, 3, 10, 50])
@pytest.mark.parametrize("masked", [False, True])
def test_they_are_those_of_loops(k, masked):
    rng = np.random.default_rng(k)
    relevant = rng.random((40, 25)) < 0.1
    scores = rng.standard_normal((40, 25))
    seen = (rng.random((40, 25)) < 0.3) & masked
    expected = slow(relevant, scores, k, seen)
    given = sparse.csr_array(relevant), scores, k
    mask = sparse.csr_array(seen) if masked else None
    found = [metric(*given, seen=mask) for metric in (recall_at_k, ndcg_at_k, average_precision_at_k)]
    assert found == pytest.approx(expected, rel=1e-12)


def test_of_equal_scores_within_a_list_the_first_item_is_first():
    relevant = sparse.csr_array([[0, 1, 0], [1, 0, 0]])
    assert ndcg_at_k(relevant, np.zeros((2, 3)), 3) == pytest.approx((1.0 + 1.0 / math.log2(3)) / 2)


@pytest.mark.parametrize("metric", [recall_at_k, ndcg_at_k, average_precision_at_k])
def test_unusable_input_is_refused(metric):
    relevant = sparse.csr_array([[0, 1, 0]])
    scores = np.zeros((1, 3))
    for wrong in (
        (relevant.toarray(), scores),
        (relevant, scores[:, :2]),
        (relevant, scores * np.nan),
        (relevant, scores, 0),
        (sparse.csr_array((1, 3)), scores),
    ):
        with pytest.raises((TypeError, ValueError)):
            metric(*wrong)
    with pytest.raises(ValueError, match="seen"):
        metric(relevant, scores, seen=sparse.csr_array((2, 3)))

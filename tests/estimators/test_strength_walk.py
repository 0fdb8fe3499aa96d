"""Walks over strengths: which strengths and folds are tried, and which strength is best."""

from functools import partial

import numpy as np
import pytest

from mopn.estimators.strength_walk import RowLosses, to_the_end, until_losses_rise, walk
from mopn.solvers.tools.budgets import Deadline

STRENGTHS = (8.0, 4.0, 2.0, 1.0)


def walked(totals, rule):
    """Walk over given losses of strengths, by fold, and return the strengths tried in each fold and the best index."""
    tried = [[] for _ in totals[0]]

    def losses_at(strength, iterations, deadline, fold):
        assert iterations == 7
        tried[fold].append(strength)
        loss = totals[STRENGTHS.index(strength)][fold]
        # A row of half of the loss counts twice.
        return None if loss is None else RowLosses(np.array([loss / 2.0, 5.0]), np.array([2.0, 0.0]))

    folds = [partial(losses_at, fold=fold) for fold in range(len(totals[0]))]
    verdicts = [verdict for _, verdict in walk(STRENGTHS, folds, rule, 7, Deadline(None))]
    return [len(strengths) for strengths in tried], verdicts[-1].best if verdicts else None


@pytest.mark.parametrize(
    ("totals", "options", "n_tried", "best"),
    [
        ([[3.0], [2.0], [2.5], [0.0]], {}, [3], 1),
        ([[3.0], [2.0], [2.0], [2.5]], {}, [4], 1),
        ([[3.0], [2.0], [2.5], [1.0]], {"patience": 2}, [4], 3),
        ([[1.0], [2.0], [2.5], [0.0]], {"patience": 2}, [3], 0),
        ([[3.0, 3.0], [2.0, 2.0], [2.2, 1.0], [2.0, 2.0]], {"clearly": 0.05}, [3, 2], 1),
        ([[3.0, 3.0], [2.0, 2.0], [2.2, 1.0], [2.0, 2.0]], {}, [4, 4], 2),
        ([[3.0, 3.0], [2.0, None], [1.0, 1.0], [1.0, 1.0]], {}, [2, 2], 0),
        ([[None, None]] * 4, {}, [1, 0], None),
    ],
    ids=["a rise", "a tie", "patience", "no more patience", "clearly larger", "larger in a part", "no time", "none"],
)
def test_a_walk_ends_where_the_losses_rise(totals, options, n_tried, best):
    assert walked(totals, partial(until_losses_rise, **options)) == (n_tried, best)


def test_a_walk_to_the_end_tries_all_strengths():
    assert walked([[3.0], [9.0], [1.0], [2.0]], to_the_end) == ([4], 2)


def test_without_folds_nothing_is_tried():
    assert list(walk(STRENGTHS, [], to_the_end, 7, Deadline(None))) == []

"""Walks over strengths: which strengths and folds are tried, and which strength is best."""

from functools import partial

import numpy as np
import pytest

from mopn.estimators.strength_walk import RowLosses, between, to_the_end, until_losses_rise, walk, while_surely_better
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
        ([[3.0], [2.0], [2.03], [1.0]], {"patience": 2, "slight_rise": 0.02}, [4], 3),
        ([[3.0], [2.0], [2.05], [1.0]], {"patience": 2, "slight_rise": 0.02}, [3], 1),
        ([[3.0, 3.0], [2.0, 2.0], [2.2, 1.0], [2.0, 2.0]], {"clear_rise": 0.05}, [3, 2], 1),
        ([[3.0, 3.0], [2.0, 2.0], [2.2, 1.0], [2.0, 2.0]], {}, [4, 4], 2),
        ([[3.0, 3.0], [2.0, 2.0], [2.01, 2.0], [2.01, 1.0]], {"patience": 2, "clear_rise": 0.05}, [4, 4], 3),
        ([[3.0, 3.0], [2.0, 2.0], [2.01, 2.0], [2.01, 1.0]], {"patience": 2, "clear_rise_later": 0.0}, [4, 3], 1),
        ([[3.0, 3.0], [2.0, None], [1.0, 1.0], [1.0, 1.0]], {}, [2, 2], 0),
        ([[None, None]] * 4, {}, [1, 0], None),
    ],
    ids=[
        "a rise",
        "a tie",
        "patience",
        "no more patience",
        "slightly larger",
        "larger",
        "clearly larger",
        "larger in a part",
        "patience in parts",
        "no patience in parts",
        "no time",
        "none",
    ],
)
def test_a_walk_ends_where_the_losses_rise(totals, options, n_tried, best):
    assert walked(totals, partial(until_losses_rise, **options)) == (n_tried, best)


def test_a_walk_to_the_end_tries_all_strengths():
    assert walked([[3.0], [9.0], [1.0], [2.0]], to_the_end) == ([4], 2)


def test_without_folds_nothing_is_tried():
    assert list(walk(STRENGTHS, [], to_the_end, 7, Deadline(None))) == []


NOISE = np.random.default_rng(0).standard_normal(400)


def losses_with(gain, noise=1.0, groups=None):
    """Losses of one fold that are smaller than ones by a gain in the mean, with noise in the differences."""
    centered = NOISE - NOISE.mean()
    return [RowLosses(1.0 - gain - noise * centered / centered.std(), None, groups)]


FIRST = [RowLosses(np.ones(400), None)]


@pytest.mark.parametrize(
    ("gains", "best"),
    # A standard error of the mean is 0.05.
    # Losses with the same noise differ surely from each other.
    [([0.09], 0), ([0.11], 1), ([0.09, 0.11], 2), ([0.11, 0.15], 2), ([-0.2], 0)],
    ids=["by less than two errors", "by more", "the second", "both", "worse"],
)
def test_a_larger_strength_must_be_better_by_two_standard_errors(gains, best):
    trials = [losses_with(gain, noise=1.0) for gain in gains]
    assert while_surely_better(trials, FIRST).best == best


def test_copies_count_once():
    groups = np.arange(400) // 2
    once = [RowLosses(each.values[::2], None) for each in losses_with(0.12)]
    twice = [RowLosses(np.repeat(each.values[::2], 2), None, groups) for each in losses_with(0.12)]
    for trial in (once, twice):
        gain = 1.0 - trial[0].values
        surely = gain.mean() > 2.0 * once[0].values.std(ddof=1) / np.sqrt(200)
        first = [RowLosses(np.ones(len(gain)), None, trial[0].groups)]
        assert while_surely_better([trial], first).best == int(surely)


def test_weights_are_repetitions_of_a_group():
    weights = np.where(np.arange(400) % 3, 1.0, 2.0)
    trial = losses_with(0.13)
    weighted = [RowLosses(trial[0].values, weights)]
    rows = np.repeat(np.arange(400), weights.astype(int))
    repeated = [RowLosses(trial[0].values[rows], None, rows)]
    assert weighted[0].total == pytest.approx(repeated[0].total)
    assert weighted[0].of_groups == pytest.approx(repeated[0].of_groups)


def test_a_walk_upwards_ends_where_the_gain_of_the_first_fold_promises_too_little():
    first = [*FIRST, *FIRST]
    assert not while_surely_better([losses_with(-0.1)], first).goes_on
    # Two standard errors of both folds together are 0.1 / sqrt(2) in the mean.
    assert not while_surely_better([losses_with(0.07)], first).goes_on
    assert while_surely_better([losses_with(0.072)], first).goes_on
    assert while_surely_better([[*losses_with(-0.1), *losses_with(0.2)]], first).goes_on
    assert not while_surely_better([[*losses_with(-0.1), *losses_with(0.05)]], first).goes_on


def trials_of(totals):
    return [[RowLosses(np.array([total]), None) for total in folds] for folds in totals]


@pytest.mark.parametrize("curvature", [0.5, 3.0])
@pytest.mark.parametrize("least", [-0.4, 0.0, 0.3])
def test_the_strength_between_is_the_least_point_of_a_parabola(least, curvature):
    logs = np.array([2.0, 0.9, 0.0, -1.2])
    totals = curvature * (logs - least) ** 2 + 7.0
    best = int(np.argmin(totals))
    strength = between(np.exp(logs), trials_of(totals[:, None]), best)
    # Up to a cell of the grid between the middles of both ways.
    cell = (logs[best - 1] - logs[best + 1]) / 2 / 32
    assert abs(np.log(strength) - least) <= 0.5001 * cell


def test_no_strength_is_between_without_the_losses_of_all_folds():
    trials = trials_of([[3.0, 3.0], [1.0, 1.0], [1.5]])
    assert between([0.1, 0.03, 0.01], trials, 1) == 0.03


@pytest.mark.parametrize(
    ("totals", "best"),
    [([1.0, 2.0, 3.0], 0), ([3.0, 2.0, 1.0], 2), ([2.0, 2.0, 2.0], 1), ([1.0, 2.0, 3.0], 1)],
    ids=["no larger one", "no smaller one", "level", "not the least"],
)
def test_without_a_least_point_the_best_strength_stays(totals, best):
    strengths = [0.1, 0.03, 0.01]
    assert between(strengths, trials_of([[total] for total in totals]), best) == strengths[best]


def test_a_single_row_decides_nothing():
    one = [RowLosses(np.ones(1), None)]
    assert while_surely_better([[RowLosses(np.zeros(1), None)]], one).best == 0

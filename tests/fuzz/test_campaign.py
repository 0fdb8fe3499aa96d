"""A slice of the campaign: no crash, no hang, nothing wrong, infinite or unclear, no warning of NumPy's."""

import itertools

import matplotlib as mpl
import pytest

from tests.fuzz.campaign import CATEGORIES, category_of, drawn, numbers
from tests.fuzz.outcomes import FAULTS, observe
from tests.fuzz.pool import run_all

mpl.use("Agg")

SEED = 1
CHUNKS, CALLS = 20, 50
IN_WORKERS = sorted(
    name for name, category in CATEGORIES.items() if category.where != "anywhere" and category.share > 0.1
)


def here(number):
    record, trial = drawn(SEED, number)
    outcome = observe(trial)
    return record._replace(kind=outcome.kind, detail=outcome.detail)


def faults(records):
    return [record for record in records if record.kind in FAULTS]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_calls_in_this_process(chunk, capfd):
    ours = range(chunk * CALLS, (chunk + 1) * CALLS)
    assert not faults(here(number) for number in ours if CATEGORIES[category_of(SEED, number)].where == "anywhere")


@pytest.mark.parametrize("category", IN_WORKERS)
def test_calls_in_a_worker(category):
    assert not faults(run_all(SEED, itertools.islice(numbers(SEED, category), 30), jobs=1))

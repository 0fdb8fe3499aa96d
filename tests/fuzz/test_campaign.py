"""A slice of the campaign: no crash, no hang, nothing wrong, infinite or unclear, no warning of NumPy's."""

import itertools

import matplotlib as mpl
import pytest

from tests.fuzz.campaign import CATEGORIES, category_of, numbers
from tests.fuzz.outcomes import FAULTS
from tests.fuzz.workers import run_all, run_one

mpl.use("Agg")

SEED = 1
CHUNKS, CALLS = 20, 50
IN_WORKERS = sorted(
    name for name, category in CATEGORIES.items() if category.where != "anywhere" and category.share > 0.1
)


def faults(records):
    return [record for record in records if record.kind in FAULTS]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_calls_in_this_process(chunk, capfd):
    ours = range(chunk * CALLS, (chunk + 1) * CALLS)
    here = [number for number in ours if CATEGORIES[category_of(SEED, number)].where == "anywhere"]
    assert not faults(run_one(SEED, number)[0] for number in here)


@pytest.mark.parametrize("category", IN_WORKERS)
def test_calls_in_a_worker(category):
    assert not faults(run_all(SEED, itertools.islice(numbers(SEED, category), 30), jobs=1))

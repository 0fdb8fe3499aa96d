"""A slice of the campaign: no crash, no hang, nothing wrong, infinite or unclear, no warning of NumPy's."""

import itertools

import matplotlib as mpl
import pytest

from tests.fuzz.campaign import CATEGORIES, category_of, drawn
from tests.fuzz.outcomes import FAULTS, observe
from tests.fuzz.pool import run_all

mpl.use("Agg")

SEED = 1
CHUNKS, CALLS = 8, 50
CALLS_IN_FORKS = 20


def fail_for_faults(records):
    faults = [record for record in records if record.kind in FAULTS]
    if faults:
        lines = (
            f"{number}: {kind}: {interface}, {change}: {detail}"
            for number, _, interface, change, kind, detail, _ in faults
        )
        pytest.fail("\n".join(lines), pytrace=False)


def here(number):
    record, trial = drawn(SEED, number)
    outcome = observe(trial)
    return record._replace(kind=outcome.kind, detail=outcome.detail)


def is_harmless(number):
    return not CATEGORIES[category_of(SEED, number)].alone


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_calls_in_this_process(chunk, capfd):
    fail_for_faults(here(number) for number in range(chunk * CALLS, (chunk + 1) * CALLS) if is_harmless(number))


@pytest.mark.slow
def test_calls_in_forks():
    others = (number for number in itertools.count() if not is_harmless(number))
    fail_for_faults(run_all(SEED, itertools.islice(others, CALLS_IN_FORKS), jobs=1))

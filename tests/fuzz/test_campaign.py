"""A slice of the campaign finds no fault; the campaign finds planted faults, and has all public names."""

import inspect
import os
import re
import time
import warnings

import numpy as np
import pytest
from estimator_names import OF_SAMPLES

import mopn
import mopn.estimators
from mopn.solvers import Solver
from mopn.solvers.interface import Problem
from tests.fuzz.__main__ import main
from tests.fuzz.arrays import REFUSED
from tests.fuzz.campaign import CATEGORIES, category_of, drawn, numbers, report, run_all
from tests.fuzz.changes import CHANGES, trial_of
from tests.fuzz.checks import (
    FAULTS,
    Found,
    NotFiniteError,
    Record,
    Trial,
    WrongError,
    check_found,
    fingerprint,
    observe,
)
from tests.fuzz.interfaces import estimators, interfaces, public, solves
from tests.fuzz.relations import certificates_agree, same_bits

SEED = 1
CALLS = 100
# Cases of about the same work.
PARTS = 12
X, Y = np.eye(4), np.arange(4) % 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, CALLS))
def test_calls_end_in_no_fault(first):
    faults = [record for record in run_all(SEED, range(first, first + CALLS), jobs=1) if record.kind in FAULTS]
    assert not faults, report(faults, SEED)


# -- the table of interfaces, which takes a second to make -------------------------------------------------------------


@pytest.mark.slow
def test_all_public_names_are_there():
    """A problem that is not made from X and y needs a maker; the pairs show that this is so."""
    assert {interface.cls.__name__ for interface in estimators()} == set(OF_SAMPLES)
    solvers = {interface.functions["solver"] for interface in solves()}
    assert set(public(mopn.solvers, Solver)) - {mopn.solvers.AlternatingLeastSquares} <= solvers
    assert {interface.maker.cls for interface in solves()} == set(public(mopn, Problem)) - {mopn.ImplicitProblem}
    functions = {name for name in mopn.__all__ if inspect.isfunction(getattr(mopn, name))}
    # Runs are called with every problem and solver; the others have their own tests.
    assert functions - {interface.name for interface in interfaces()} == {"load", "minimize"}
    assert REFUSED.keys() <= CHANGES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_most_valid_arguments_are_taken(part):
    """Some options exclude each other; of some a fit warns."""
    for interface in interfaces()[part::PARTS]:
        drawn = [interface.draw(np.random.default_rng(seed)) for seed in range(5)]
        kinds = [observe(trial_of(interface, arguments, "none")).kind for arguments in drawn]
        assert kinds.count("ok") + kinds.count("other_warning") >= 3, (interface.name, kinds)


@pytest.mark.slow
@pytest.mark.parametrize("category", sorted(CATEGORIES))
def test_a_call_is_a_function_of_seed_and_number(category):
    number = next(numbers(3, category))
    assert category_of(3, number) == category
    first, second = drawn(3, number)[0], drawn(3, number)[0]
    assert first == second
    assert first.category == category


# -- what is found -----------------------------------------------------------------------------------------------------


def negative_strength():
    mopn.NetworkProblem(X, Y, strength=-1.0)


def strength_of_none():
    return None.strength


@pytest.mark.parametrize(
    ("kind", "run", "options"),
    [
        ("clear", negative_strength, {"names": frozenset({"strength"})}),
        ("unclear", negative_strength, {"names": frozenset({"loss"})}),
        ("unclear", negative_strength, {"names": frozenset({"strength"}), "refusals": (TypeError,)}),
        # What Python raises, whatever it says.
        ("unclear", strength_of_none, {"names": frozenset({"strength"})}),
        ("unclear", lambda: float("strength"), {"names": frozenset({"strength"})}),
        ("numpy_warning", lambda: np.float64(1.0) / np.float64(0.0), {}),
        ("numpy_warning", lambda: np.array([1j]).astype(float), {}),
        ("other_warning", lambda: warnings.warn("a word", UserWarning, stacklevel=1), {}),
        ("ok", lambda: None, {}),
    ],
)
def test_what_becomes_of_a_call(kind, run, options):
    assert observe(Trial("a function", "a change", run, **{"names": frozenset(), **options})).kind == kind


def test_numbers_that_are_not_finite_and_gaps_that_are_none():
    with pytest.raises(NotFiniteError, match="basis"):
        check_found(Found({"basis": np.array([1.0, np.nan])}))
    with pytest.raises(NotFiniteError, match="objective"):
        check_found(Found({}, np.inf))
    with pytest.raises(WrongError, match="gap"):
        check_found(Found({}, 1.0, -1e-9))
    check_found(Found({"labels": np.array(["a"])}, 1.0, np.inf))


def test_certificates_that_exclude_each_other():
    first = Found({}, 2.0, 0.5)
    certificates_agree(first, Found({}, 1.6, 0.5), "two")
    for pair in ((first, Found({}, 1.4, 0.5)), (Found({}, 1.4, 0.5), first)):
        with pytest.raises(WrongError, match=r"at least 1\.5"):
            certificates_agree(*pair, "two")


def test_the_last_bit_counts():
    value = np.array([1.0])
    with pytest.raises(WrongError, match="differs"):
        same_bits(Found({"x": value}), Found({"x": np.nextafter(value, 2.0)}), "a second call")


def test_arrays_that_are_written_to_are_noticed():
    array = np.zeros(3)
    for owned in (array, [array], {"a": array}):
        before = fingerprint(owned)
        assert fingerprint(owned) == before
        # Zeros of both signs are equal.
        array[1] = -array[1]
        assert fingerprint(owned) != before


ENDS = {
    "ok": lambda: None,
    "clear": negative_strength,
    "unclear": strength_of_none,
    "crash": os.abort,
    "hang": lambda: time.sleep(60),
    "wrong": lambda: same_bits(Found({}, 1.0), Found({}, 2.0), "a second call"),
}


def draw(seed, number):
    """Calls that end in all ways."""
    kind = list(ENDS)[number % len(ENDS)]
    record = Record(number, "a category", "a function", kind)
    return record, Trial("a function", kind, ENDS[kind], frozenset({"strength"}))


@pytest.mark.slow
def test_a_campaign_survives_what_it_finds():
    numbers = range(2 * len(ENDS))
    records = sorted(run_all(0, iter(numbers), jobs=2, draw=draw, limit=1))
    assert [record.number for record in records] == list(numbers)
    assert [record.kind for record in records] == [record.change for record in records]
    text = report(records, seed=7)
    assert "| a category | 12 | 2 | 2 | 2 |" in text
    assert [int(number) for number in re.findall("--seed 7 --case ([0-9]+)`", text)] == [3, 4, 5, 2]


def test_a_case_alone(capsys):
    record, _ = drawn(0, 0)
    main(["--case", "0"])
    assert f"{record.category}: {record.interface}, {record.change}" in capsys.readouterr().out

"""The table of interfaces has all public names, and a campaign is a function of its seed."""

import inspect

import numpy as np
import pytest

import mopn
import mopn.estimators
from mopn.solvers import Solver
from mopn.solvers.interface import Problem
from tests.fuzz.campaign import CATEGORIES, category_of, drawn, numbers
from tests.fuzz.changes import CHANGES, interfaces, trial_of
from tests.fuzz.inputs.refused import REFUSED
from tests.fuzz.interfaces import estimators, solves
from tests.fuzz.outcomes import observe

# It takes a second to make the table.
pytestmark = pytest.mark.slow
# Cases of about the same work.
PARTS = 12


def subclasses(module, base):
    return {name for name in module.__all__ if base in getattr(getattr(module, name), "__mro__", ())[1:]}


def test_all_public_names_are_there():
    """A problem that is not made from X and y needs a maker; the pairs show that this is so."""
    assert {interface.cls.__name__ for interface in estimators()} == set(mopn.estimators.__all__)
    assert {interface.solver.__name__ for interface in solves()} == subclasses(mopn.solvers, Solver)
    made_of_others = {"JointProblem", "UnitBallProblem"}
    assert {interface.maker.name for interface in solves()} == subclasses(mopn, Problem) | made_of_others
    functions = {name for name in mopn.__all__ if inspect.isfunction(getattr(mopn, name))}
    # Runs are called with every problem and solver; the others have their own tests.
    assert functions - {interface.name for interface in interfaces()} == {"load", "minimize"}
    assert REFUSED.keys() <= CHANGES.keys()


@pytest.mark.parametrize("part", range(PARTS))
def test_most_valid_arguments_are_taken(part):
    """Some options exclude each other; of some a fit warns."""
    for interface in interfaces()[part::PARTS]:
        drawn = [interface.draw(np.random.default_rng(seed)) for seed in range(5)]
        kinds = [observe(trial_of(interface, arguments, "none")).kind for arguments in drawn]
        assert kinds.count("ok") + kinds.count("other_warning") >= 3, (interface.name, kinds)


@pytest.mark.parametrize("category", sorted(CATEGORIES))
def test_a_call_is_a_function_of_seed_and_number(category):
    number = next(numbers(3, category))
    assert category_of(3, number) == category
    first, second = drawn(3, number)[0], drawn(3, number)[0]
    assert first == second
    assert first.category == category

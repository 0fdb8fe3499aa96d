"""The protocols of problems, as classes that users inherit from."""

import inspect

import pytest

import mopn
from mopn.solvers import interface
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.tools.members import data_member

KINDS = [kind for _, kind in inspect.getmembers(interface, inspect.isclass)] + [CorrectiveStep, mopn.Loss]
DATA = [(kind, name) for kind in KINDS for name, value in vars(kind).items() if isinstance(value, data_member)]


def of_the_object(kind, name, value):
    class Own(kind):
        def __init__(self):
            setattr(self, name, value)

    return Own


WAYS = {
    "of the object": of_the_object,
    "of the class": lambda kind, name, value: type("Own", (kind,), {name: value}),
    "a property": lambda kind, name, value: type("Own", (kind,), {name: property(lambda self: value)}),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("kind", "name"), DATA, ids=[f"{kind.__name__}.{name}" for kind, name in DATA])
def test_data_of_an_interface_are_attributes_or_properties(kind, name, way):
    own = way(kind, name, value := object())
    own.__abstractmethods__ = frozenset()
    assert getattr(own(), name) is value


def test_the_data_are_found():
    assert {(interface.Problem, "oracles"), (interface.Composite, "curvature"), (mopn.Loss, "name")} <= set(DATA)
    assert len(DATA) > 20


def test_what_is_not_given_has_its_default():
    own = type("Own", (interface.Composite,), {})()
    assert own.reasons == {}
    assert not own.starts_at_random
    assert own.working_set(None, 50) is None


@pytest.mark.parametrize("length", [0, 1, 20, 21, 300])
def test_a_trace_prints_as_a_table(length):
    trace = mopn.solvers.Trace()
    for i in range(length):
        trace.append(nit=i, fun=1.5 / (1 + i))
    trace.append(gap=0.25)
    header, *lines = str(trace).splitlines()
    assert header.split() == [*(["nit", "fun"] if length else []), "gap"]
    assert len(lines) == min(length + 1, 21)
    assert lines[-1].split() == ["0.25"]
    assert all(len(line) == len(header) for line in lines)
    if length:
        assert lines[0].split() == ["0", "1.5"]
    assert any(set(line) == {".", " "} for line in lines) == (length >= 20)

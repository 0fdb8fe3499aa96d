"""The options of all solvers: a wrong value is refused by an error that names the option."""

from dataclasses import fields, is_dataclass, replace
from functools import partial

import numpy as np
import pytest
from cases import SOLVERS, layer, network
from odd_values import ODD, failures

import mopn
from mopn.solvers import (
    FISTA,
    LBFGS,
    ConditionalGradient,
    CoordinateDescent,
    FullRefit,
    InteriorPoint,
    OutputRefit,
    PlainStep,
)
from mopn.solvers.conditional_gradient import make_corrective_step
from mopn.solvers.tools.checks import (
    check_callback,
    check_count,
    check_flag,
    check_fraction,
    check_nonnegative,
    check_verbose,
    choice,
    shown,
)

EXPORTED = [getattr(mopn.solvers, name) for name in mopn.solvers.__all__]
RUNS = {type(solver): (make, solver) for make, solver in SOLVERS.values()}
CORRECTIONS = {
    kind: (network, lambda kind=kind, **options: ConditionalGradient(kind(**options)))
    for kind in (PlainStep, OutputRefit, FullRefit)
}
# No options of an algorithm: a budget, which the solvers make themselves.
OPTIONS = [
    (kind, field.name)
    for kind in EXPORTED
    if is_dataclass(kind) and kind is not mopn.solvers.interface.Effort
    for field in fields(kind)
]


def attempt(kind, options):
    """Make a solver with some options and let it run."""
    make, solver = CORRECTIONS[kind] if kind in CORRECTIONS else (RUNS[kind][0], partial(replace, RUNS[kind][1]))
    mopn.minimize(make(), solver(**options), tol=0.0, max_iter=1)


@pytest.mark.parametrize(("kind", "name"), OPTIONS, ids=lambda part: getattr(part, "__name__", part))
def test_odd_options_run_or_are_refused_by_name(kind, name):
    assert not failures(name, ODD, lambda value: attempt(kind, {name: value}))


def test_options_are_kept_as_plain_numbers():
    solver = mopn.solvers.SGD(step=np.longdouble(0.25), decay=1, batch_size=np.int8(3))
    assert [type(option) for option in (solver.step, solver.decay, solver.batch_size)] == [float, float, int]
    assert replace(solver, step=0.5).batch_size == 3


def test_what_options_take():
    assert check_count(np.uint8(3), "k") == 3
    assert check_nonnegative(0, "strength") == 0.0
    assert choice(["a", "b"]).or_none()(None, "form") is None
    for check, value, message in (
        (check_count, 0, "x must be an integer >= 1, got 0"),
        (check_count, 10**400, r"x must be an integer >= 1, got 10{119}\.\.\."),
        (check_nonnegative, -0.5, "x must be a finite number >= 0, got -0.5"),
        (check_fraction, 1.0, r"x must be a number in \(0, 1\), got 1.0"),
        (choice(["a", "b"]).or_none(), "c", "x must be one of 'a', 'b' or None, got 'c'"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            check(value, "x")
    assert shown(10**5000) == "an object of type int"


@pytest.mark.parametrize("augment", [2, "yes", None])
def test_values_of_another_type_are_errors_of_type_everywhere(augment):
    for rule in (check_count, check_nonnegative, choice(["a"]), check_flag, check_callback, check_verbose):
        with pytest.raises(TypeError, match=r"^x must be "):
            rule([0.5], "x")
    for make in (
        lambda: mopn.Model(np.eye(3), np.eye(3), augment=augment),
        lambda: mopn.NetworkProblem(np.eye(3), [0, 1, 1], strength=1.0, augment=augment),
    ):
        with pytest.raises(TypeError, match=f"^augment must be True or False, got {augment!r}$"):
            make()


STEPS = ConditionalGradient("none")
REFUSED = [
    (ConditionalGradient, {"schedule": "fill"}, "schedule='fill' fits a model of max_units units: give max_units"),
    (OutputRefit, {"solver": LBFGS}, "solver must be a Solver"),
    (OutputRefit, {"solver": ConditionalGradient()}, "solver must be one for the refit of the output .*corrective"),
    (OutputRefit, {"solver": STEPS}, "solver must be one for the refit of the output layer.*needs atomic"),
    (FullRefit, {"precision": "single", "solver": FISTA()}, "precision='single' is for refits by LBFGS"),
    (FullRefit, {"solver": "fista"}, "solver must be a Solver"),
    (FullRefit, {"solver": InteriorPoint()}, "solver must be one for the refit of both layers.*needs barrier"),
    (FullRefit, {"solver": CoordinateDescent()}, "solver must be one for the refit of both layers.*needs blocks"),
    (FullRefit, {"solver": ConditionalGradient()}, "solver must be one for .* of both layers.*needs corrective"),
    (make_corrective_step, {"refit": "both"}, "refit must be one of 'none', 'output', 'full'.*got 'both'"),
    (make_corrective_step, {"refit": LBFGS()}, "refit must be one of 'none', 'output', 'full'"),
]


@pytest.mark.parametrize(("kind", "options", "message"), REFUSED)
def test_options_are_refused_when_they_are_given(kind, options, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        kind(**options)


@pytest.mark.parametrize("needs", ["gradient", ["gradient"]])
def test_a_solver_names_its_oracles_in_a_set(needs):
    solver = type("Own", (LBFGS,), {"needs": needs})()
    message = r"Own\.needs must be a set of names, frozenset\(\{'gradient'\}\) say, got"
    with pytest.raises(TypeError, match=message):
        mopn.minimize(layer("squared-l2"), solver)
    with pytest.raises(TypeError, match=message):
        FullRefit(solver=solver)

"""Other units of X, y and weights: the same problem, or a clear refusal."""

from typing import Any

import numpy as np

from tests.fuzz.checks import check_found, require
from tests.fuzz.inputs.arrays import dense
from tests.fuzz.interfaces import Arguments, Solve, solves
from tests.fuzz.relations import certificates_agree, draw_pair, is_convex, same_objective
from tests.fuzz.trial import Trial, pick

Generator = np.random.Generator
# Within these powers of two, 1e-6 to 1e6, two runs must agree; beyond, only their certificates must.
_USUAL, _EXTREME = 20, 200
# Objectives differ by so much: refits of both layers, and of weights without a regulariser, depend on their tolerance.
_TOL, _TOL_OF_REFITS = 1e-4, 1e-2
# A run that has converged leaves no more to gain, but for the rounding of the objective at its start.
_LEFT, _ROUNDING = 1e-2, 1e-15


def scaled(rng: Generator) -> Trial:
    """Return a problem in two units: X * c with strength * c^2, or weights * c with strength * c."""
    interface = pick(rng, _interfaces())
    arguments = draw_pair(rng, interface)
    _make_homogeneous(arguments)
    power = int(rng.integers(-_USUAL, _USUAL + 1))
    if rng.uniform() < 0.3:
        power = int(rng.integers(-_EXTREME, _EXTREME + 1))
    unit = pick(rng, ("X", "weights"))
    if unit == "weights":
        # Joint refits have many minima: they end in the same one if nothing is rounded in another way, neither the
        # roots of strengths, nor sums with weights beside those without.
        power -= power % 2
        if (at := arguments["problem"])["sample_weight"] is None:
            at["sample_weight"] = np.ones(len(at["y"]))
    check = _check_minimum if interface.maker.name == "NetworkProblem" else _check_convergence
    what = f"{unit} times 2^{power}"

    def run() -> None:
        check(interface, arguments, unit, 2.0**power, what)

    return Trial(interface.name, what, run, interface.names, interface.refusals)


def _interfaces() -> list[Solve]:
    """Return the solvers of problems whose units of X can be chosen, but for those whose steps have a unit."""
    names = ("NetworkProblem", "FactorizationProblem", "LiftedProblem")
    return [pair for pair in solves() if pair.maker.name in names and "step" not in pair.defaults["solver"]]


def _check_minimum(interface: Solve, arguments: Arguments, unit: str, c: float, what: str) -> None:
    """Convex problems have the same minimum."""
    other, scale = _UNITS[unit](arguments, c)
    first, second = interface.run(arguments), interface.run(other)
    check_found(second)
    if not 2.0**-_USUAL <= c <= 2.0**_USUAL:
        certificates_agree(first, second, what, scale)
        return
    exact = is_convex(interface, arguments)
    same_objective(first, second, what, _TOL if exact else _TOL_OF_REFITS, scale)


def _check_convergence(interface: Solve, arguments: Arguments, unit: str, c: float, what: str) -> None:
    """A run that has converged in one unit goes on in the other one, and gains nothing."""
    arguments = {**arguments, "minimize": {**arguments["minimize"], "tol": 1e-8, "max_iter": 300}}
    other, scale = _UNITS[unit](arguments, c)
    second = interface.run(other)
    check_found(second)
    if not second.made.success:
        return
    start = {name: part for name, part in second.made.items() if name in ("P", "U", "lams", "intercept")}
    if unit == "X":
        start |= {name: c * start[name] for name in ("P", "U") if name in start}
    if arguments["problem"].get("lams") != "fit":
        start.pop("lams", None)
    if not 2.0**-_USUAL <= c <= 2.0**_USUAL:
        return
    first = interface.run({**arguments, "minimize": {**arguments["minimize"], "start": start}})
    before, after = scale * second.fun, first.fun
    lost = _ROUNDING * scale * second.made.trace["fun"][0]
    require(
        before - after <= _LEFT * before + lost, f"{what}: converged to {before!r}, from where a run reaches {after!r}"
    )


def _make_homogeneous(arguments: Arguments) -> None:
    """Leave out what does not scale with X: dummies, linear terms, several degrees with the same units, own scales."""
    at = arguments["problem"]
    at.pop("augment", None)
    at.pop("center", None)
    at.pop("scale", None)
    at.pop("fit_linear", None)
    at.pop("fit_lower", None)
    if "strength" in at:
        at.pop("alpha", None)
    if at.get("kernel") == "all-subsets":
        at.pop("kernel")


def _of_X(arguments: Arguments, c: float) -> tuple[Arguments, float]:
    at = arguments["problem"]
    other = {**at, "X": dense(at["X"]) * c, **_strengths(at, c * c)}
    if at.get("radius") is not None:
        other["radius"] = at["radius"] / c**2
    if "strength" not in at:
        other["init_scale"] = at.get("init_scale", 0.1) / c
    return {**arguments, "problem": other}, 1.0


def _of_weights(arguments: Arguments, c: float) -> tuple[Arguments, float]:
    at = arguments["problem"]
    return {**arguments, "problem": {**at, "sample_weight": c * at["sample_weight"], **_strengths(at, c)}}, 1.0 / c


def _strengths(at: dict[str, Any], factor: float) -> dict[str, Any]:
    if "strength" not in at:
        return {"beta": factor * at.get("beta", 1.0)}
    return {} if at["strength"] is None else {"strength": factor * at["strength"]}


_UNITS = {"X": _of_X, "weights": _of_weights}

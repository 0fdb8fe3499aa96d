"""Other units of X, y and weights: the same problem, or a clear refusal."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.checks import check_found
from tests.fuzz.inputs.dense import dense
from tests.fuzz.interfaces import Arguments, Interface, solves
from tests.fuzz.relations import certificates_agree, draw_pair, same_objective
from tests.fuzz.trial import Trial, pick

__all__ = ["scaled"]

Generator = np.random.Generator
# Within these powers of two, 1e-6 to 1e6, two runs must agree; beyond, only their certificates must.
_USUAL, _EXTREME = 20, 200
_TOL = 1e-4


def scaled(rng: Generator) -> Trial:
    """Return a problem in two units: X * c with strength * c^2, and weights * c with strength * c."""
    interface = pick(rng, _interfaces())
    arguments = draw_pair(rng, interface)
    _make_homogeneous(arguments)
    power = (
        int(rng.integers(-_USUAL, _USUAL + 1)) if rng.uniform() < 0.7 else int(rng.integers(-_EXTREME, _EXTREME + 1))
    )
    unit = pick(rng, ("X", "weights"))
    c = 2.0**power
    other, scale = _UNITS[unit](arguments, c)

    def run() -> None:
        first, second = interface.run(arguments), interface.run(other)
        check_found(second)
        what = f"{unit} times {c:g}"
        if abs(power) <= _USUAL:
            same_objective(first, second, what, _TOL, scale)
        else:
            certificates_agree(first, second, what, scale)

    return Trial(interface.name, f"{unit} times 2^{power}", run, interface.names, interface.refusals)


def _interfaces() -> list[Interface]:
    """Return the solvers of problems whose units of X can be chosen."""
    names = ("NetworkProblem", "FactorizationProblem", "LiftedProblem")
    # Steps of stochastic methods have a unit.
    return [pair for pair in solves() if pair.maker.name in names and "step" not in pair.defaults["solver"]]


def _make_homogeneous(arguments: Arguments) -> None:
    """Leave out what does not scale with X: dummies, linear terms, and several degrees with the same units."""
    at = arguments["problem"]
    at.pop("augment", None)
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
    n = len(at["y"])
    weights = np.ones(n) if at["sample_weight"] is None else at["sample_weight"]
    return {**arguments, "problem": {**at, "sample_weight": c * weights, **_strengths(at, c)}}, 1.0 / c


def _strengths(at: dict[str, Any], factor: float) -> dict[str, Any]:
    if "strength" not in at:
        return {"beta": factor * at.get("beta", 1.0)}
    return {} if at["strength"] is None else {"strength": factor * at["strength"]}


_UNITS = {"X": _of_X, "weights": _of_weights}

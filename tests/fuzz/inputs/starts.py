"""Starts: points, results and parameters that do or do not fit the problem."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.inputs.arrays import PARTS, Change
from tests.fuzz.trial import pick


def odd_start(rng: np.random.Generator, found: Any) -> tuple[str, Any]:
    """Return a start, and what is odd about it; most are made from a result of the problem."""
    name = pick(rng, sorted(_STARTS))
    return name, _STARTS[name](rng, found)


def _arrays(found: Any) -> dict[str, Any]:
    return {name: np.array(part) for name, part in found.items() if isinstance(part, np.ndarray) and name != "x"}


def _changed(rng: np.random.Generator, found: Any, change: Change) -> dict[str, Any]:
    """Return the named parts of a result, with one of them changed."""
    parts = _arrays(found)
    name = pick(rng, sorted(parts))
    return parts | {name: change(rng, parts[name])}


def _pair(rng: np.random.Generator, found: Any, change: Change) -> Any:
    basis, weights = found.get("basis", np.ones((1, 3))), found.get("weights", np.ones((1, 2)))
    return change(rng, np.array(basis)), np.array(weights)


# Starts that are made from a result, with a part of it changed.
_MADE: dict[str, Callable[[np.random.Generator, Any, Change], Any]] = {
    "a flat point": lambda rng, found, change: change(rng, found.x),
    "parts": _changed,
    "a result": lambda rng, found, change: type(found)({**found, **_changed(rng, found, change)}),
    "a pair": _pair,
}
_STARTS: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "a string": lambda rng, found: "nonsense",
    "a number": lambda rng, found: 0.5,
    "a negative integer": lambda rng, found: -1,
    "True": lambda rng, found: True,
    "a seed": lambda rng, found: 3,
    "a generator": lambda rng, found: np.random.default_rng(0),
    "an object": lambda rng, found: object(),
    "an empty dictionary": lambda rng, found: {},
    "an unknown parameter": lambda rng, found: {"nonsense": 1.0},
    "an empty tuple": lambda rng, found: (),
    "a tuple of one": lambda rng, found: (np.ones((1, 3)),),
    "a tuple of four": lambda rng, found: (np.ones((1, 3)),) * 4,
    "a list": lambda rng, found: [1.0, 2.0],
    "the result": lambda rng, found: found,
    "the flat point": lambda rng, found: found.x,
    **{
        f"{kind}, {name}": lambda rng, found, make=make, change=change: make(rng, found, change)
        for kind, make in _MADE.items()
        for name, change in PARTS.items()
    },
}

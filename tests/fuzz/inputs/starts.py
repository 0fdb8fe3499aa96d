"""Starts: points, results and parameters that do or do not fit the problem."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.inputs.arrays import ARRAYS
from tests.fuzz.trial import pick


def odd_start(rng: np.random.Generator, found: Any) -> tuple[str, Any]:
    """Return a start, and what is odd about it; most are made from a result of the problem."""
    name = pick(rng, sorted(_STARTS))
    return name, _STARTS[name](rng, found)


def _arrays(found: Any) -> dict[str, Any]:
    return {name: np.array(part) for name, part in found.items() if isinstance(part, np.ndarray) and name != "x"}


def _changed(found: Any, change: Callable[[np.ndarray], Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the named parts of a result, with one of them changed."""
    parts = _arrays(found)
    name = pick(rng, sorted(parts))
    return parts | {name: change(parts[name])}


def _result(found: Any, change: Callable[[np.ndarray], Any], rng: np.random.Generator) -> Any:
    """Return a copy of a result with one part changed."""
    return type(found)({**found, **_changed(found, change, rng)})


def _pair(found: Any, change: Callable[[np.ndarray], Any]) -> Any:
    basis, weights = found.get("basis", np.ones((1, 3))), found.get("weights", np.ones((1, 2)))
    return change(np.array(basis)), np.array(weights)


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
    **{f"a flat point, {name}": lambda rng, found, change=change: change(found.x) for name, change in ARRAYS.items()},
    **{
        f"parts, {name}": lambda rng, found, change=change: _changed(found, change, rng)
        for name, change in ARRAYS.items()
    },
    **{
        f"a result, {name}": lambda rng, found, change=change: _result(found, change, rng)
        for name, change in ARRAYS.items()
    },
    **{f"a pair, {name}": lambda rng, found, change=change: _pair(found, change) for name, change in ARRAYS.items()},
}

"""Calls with something odd about an argument: one category for each kind of argument and of oddity."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tests.fuzz.checks import check_found, fingerprint, require, surroundings
from tests.fuzz.functions import functions
from tests.fuzz.inputs.arrays import PARTS, Change
from tests.fuzz.inputs.callbacks import odd_callback
from tests.fuzz.inputs.options import odd_option
from tests.fuzz.inputs.refused import REFUSED
from tests.fuzz.inputs.samples import SHAPES_OF_X, STORAGE_OF_X, TYPES_OF_X, VALUES_OF_X
from tests.fuzz.inputs.sparse_forms import FORMS, MALFORMED, SPARSE_TYPES
from tests.fuzz.inputs.starts import odd_start
from tests.fuzz.inputs.targets import TARGETS, WEIGHTS
from tests.fuzz.interfaces import Arguments, Interface, estimators, solves
from tests.fuzz.trial import Trial, pick

Generator = np.random.Generator
Place = tuple[str, str]
# Puts something odd at a place of the arguments, and returns what.
ChangeOfCall = Callable[[Generator, Interface, Arguments, Place], str]
# A limit of memory, and Ctrl-C in a callback.
_MORE_REFUSALS = (MemoryError, KeyboardInterrupt)


@cache
def interfaces() -> list[Interface]:
    """All interfaces."""
    return [*estimators(), *solves(), *functions()]


def trial_of(interface: Interface, arguments: Arguments, change: str, *, must_refuse: bool = False) -> Trial:
    """Return the call with some arguments."""

    def run() -> None:
        owned, around = fingerprint(arguments), surroundings()
        try:
            found = interface.run(arguments)
        finally:
            require(fingerprint(arguments) == owned, "an argument of the caller's has changed")
            changed = [name for name, value in surroundings().items() if value != around[name]]
            require(not changed, f"the call has changed {', '.join(changed)}")
        check_found(found)
        require(not must_refuse, "taken without a word")

    return Trial(interface.name, change, run, interface.names, (*interface.refusals, *_MORE_REFUSALS))


# -- where changes go --------------------------------------------------------------------------------------------------

_SAMPLES = ("X", "features")
_TARGETS = ("y", "y_true")
# They have categories of their own; axes are matplotlib's.
_NOT_OPTIONS = ("sample_weight", "start", "callback", "ax")


def _places(arguments: Arguments, wanted: Callable[[str, str, Any], bool]) -> list[Place]:
    return [(step, name) for step, at in arguments.items() for name, value in at.items() if wanted(step, name, value)]


def _is_samples(step: str, name: str, value: Any) -> bool:
    return name in _SAMPLES and step in ("fit", "problem")


def _is_new_samples(step: str, name: str, value: Any) -> bool:
    return name == "X" and step == "predict"


def _is_targets(step: str, name: str, value: Any) -> bool:
    # Where y is a name, it is an option.
    return name in _TARGETS and not isinstance(value, str)


def _is_option(*of: Any) -> bool:
    data = _is_samples(*of) or _is_new_samples(*of) or _is_targets(*of)
    return not data and of[1] not in _NOT_OPTIONS and of[0] not in ("solver", "minimize")


def _named(wanted: str) -> Callable[[str, str, Any], bool]:
    return lambda step, name, value: name == wanted


def _in(wanted: str) -> Callable[[str, str, Any], bool]:
    return lambda step, name, value: step == wanted and name not in ("start", "callback")


# -- changes -----------------------------------------------------------------------------------------------------------


def _one_of(*tables: dict[str, Change]) -> ChangeOfCall:
    """Return a change by a function of tables."""
    table = {name: change for part in tables for name, change in part.items()}

    def change(rng: Generator, interface: Interface, arguments: Arguments, place: Place) -> str:
        step, name = place
        kind = pick(rng, list(table))
        arguments[step][name] = table[kind](rng, arguments[step][name])
        return kind

    return change


def _weights(rng: Generator, interface: Interface, arguments: Arguments, place: Place) -> str:
    step, name = place
    n = next(at[data].shape[0] for at in arguments.values() for data in _SAMPLES if data in at)
    kind = pick(rng, list(WEIGHTS))
    arguments[step][name] = WEIGHTS[kind](rng, rng.uniform(0.5, 2.0, n))
    return kind


def _option(rng: Generator, interface: Interface, arguments: Arguments, place: Place) -> str:
    step, name = place
    value = arguments[step][name]
    if isinstance(value, np.ndarray) and rng.uniform() < 0.7:
        return _one_of(PARTS)(rng, interface, arguments, place)
    arguments[step][name] = odd = odd_option(rng, name, value)
    return f"{type(odd).__name__} {odd!r}"[:60]


def _callback(rng: Generator, interface: Interface, arguments: Arguments, place: Place) -> str:
    kind, arguments[place[0]][place[1]] = odd_callback(rng)
    return kind


def _start(rng: Generator, interface: Interface, arguments: Arguments, place: Place) -> str:
    try:
        found = interface.run(arguments).made
    except interface.refusals:
        return "none, as there is no result"
    kind, arguments[place[0]][place[1]] = odd_start(rng, found)
    return kind


# The categories: where, and what.
CHANGES: dict[str, tuple[Callable[[str, str, Any], bool], ChangeOfCall]] = {
    "X shape": (_is_samples, _one_of(SHAPES_OF_X)),
    "X dtype": (_is_samples, _one_of(TYPES_OF_X)),
    "X storage": (_is_samples, _one_of(STORAGE_OF_X)),
    "X sparse": (_is_samples, _one_of(FORMS, SPARSE_TYPES)),
    "X malformed": (_is_samples, _one_of(MALFORMED)),
    "X values": (_is_samples, _one_of(VALUES_OF_X)),
    "X at prediction": (
        _is_new_samples,
        _one_of(SHAPES_OF_X, TYPES_OF_X, STORAGE_OF_X, FORMS, SPARSE_TYPES, VALUES_OF_X),
    ),
    "X at prediction, malformed": (_is_new_samples, _one_of(MALFORMED)),
    "y": (_is_targets, _one_of(TARGETS)),
    "weights": (_named("sample_weight"), _weights),
    "options": (_is_option, _option),
    "solver options": (_in("solver"), _option),
    "run options": (_in("minimize"), _option),
    "callback": (_named("callback"), _callback),
    "start": (_named("start"), _start),
}


@cache
def _examples() -> list[tuple[Interface, Arguments]]:
    """Return the interfaces with valid arguments, which tell what can be changed."""
    rng = np.random.default_rng(0)
    return [(interface, interface.draw(rng)) for interface in interfaces()]


def _with_places(category: str) -> list[Interface]:
    """Return the interfaces that have such an argument."""
    return [interface for interface, arguments in _examples() if _places(arguments, CHANGES[category][0])]


def changed(rng: Generator, categories: Sequence[str]) -> Trial:
    """Return a call with a change of each category that the interface of the first one has."""
    interface = pick(rng, _with_places(categories[0]))
    arguments = interface.draw(rng)
    _complete(interface, arguments)
    clean = {step: dict(at) for step, at in arguments.items()}
    changes: dict[Place, str] = {}
    must_refuse = False
    for category in categories:
        wanted, change = CHANGES[category]
        if places := [place for place in _places(clean, wanted) if place not in changes]:
            step, name = place = pick(rng, places)
            valid = {at: dict(values) for at, values in clean.items()}
            kind = change(rng, interface, valid, place)
            arguments[step][name], changes[place] = valid[step][name], f"{name}: {kind}"
            taken = interface.taken if name == "X" else ()
            must_refuse |= name not in interface.ignored and kind in REFUSED.get(category, set()).difference(taken)
    if must_refuse and not any(name == "sample_weight" for _, name in changes):
        # Samples of weight zero may hold anything.
        for at in arguments.values():
            at |= {name: None for name in at if name == "sample_weight"}
    return trial_of(interface, arguments, "; ".join(changes.values()), must_refuse=must_refuse)


def _complete(interface: Interface, arguments: Arguments) -> None:
    """Add the options that are at their defaults, so that they can be changed."""
    for step, defaults in interface.defaults.items():
        for name, value in defaults.items():
            arguments[step].setdefault(name, value)


def two_changes(rng: Generator) -> Trial:
    """Return a call with changes of two categories."""
    kinds = [name for name in CHANGES if name not in ("start", "X malformed", "X at prediction, malformed")]
    return changed(rng, (pick(rng, kinds), pick(rng, kinds)))

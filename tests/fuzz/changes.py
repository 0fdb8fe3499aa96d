"""Calls with something odd about an argument: one category for each kind of argument and of oddity.

Odd starts and callbacks are in ``tests/test_inputs.py`` and ``tests/solvers/test_driver.py``, with every problem and
every solver.
"""

import decimal
import fractions
from functools import cache

import numpy as np

from tests.fuzz import arrays
from tests.fuzz.checks import Trial, check_found, fingerprint, require, surroundings
from tests.fuzz.interfaces import interfaces
from tests.fuzz.samples import pick
from tests.helpers.odd_values import ODD


def trial_of(interface, arguments, change, *, must_refuse=False):
    """Return the call with some arguments."""

    def run():
        owned, around = fingerprint(arguments), surroundings()
        try:
            found = interface.run(arguments)
        finally:
            require(fingerprint(arguments) == owned, "an argument of the caller's has changed")
            changed = [name for name, value in surroundings().items() if value != around[name]]
            require(not changed, f"the call has changed {', '.join(changed)}")
        check_found(found)
        require(not must_refuse, "taken without a word")

    return Trial(interface.name, change, run, interface.names, (*interface.refusals, MemoryError))


# -- where changes go --------------------------------------------------------------------------------------------------

_SAMPLES = ("X", "features")
# Weights have a category of their own.
_NOT_OPTIONS = ("sample_weight", "start", "callback")


def _places(arguments, wanted):
    return [(step, name) for step, at in arguments.items() for name, value in at.items() if wanted(step, name, value)]


def _is_samples(step, name, value):
    return name in _SAMPLES and step in ("fit", "problem")


def _is_new_samples(step, name, value):
    return name == "X" and step == "predict"


def _is_targets(step, name, value):
    # Where y is a name, it is an option.
    return name in ("y", "y_true") and not isinstance(value, str)


def _is_option(*of):
    data = _is_samples(*of) or _is_new_samples(*of) or _is_targets(*of)
    return not data and of[1] not in _NOT_OPTIONS


def _is_weights(step, name, value):
    return name == "sample_weight"


# -- changes: each puts something odd at a place of the arguments, and returns what ------------------------------------


def _one_of(*tables):
    """Return a change by a function of tables."""
    table = {name: change for part in tables for name, change in part.items()}

    def change(rng, interface, arguments, place):
        step, name = place
        kind = pick(rng, list(table))
        arguments[step][name] = table[kind](rng, arguments[step][name])
        return kind

    return change


def _weights(rng, interface, arguments, place):
    step, name = place
    n = next(at[data].shape[0] for at in arguments.values() for data in _SAMPLES if data in at)
    arguments[step][name] = rng.uniform(0.5, 2.0, n)
    return _one_of(arrays.WEIGHTS)(rng, interface, arguments, place)


# Where a large number is more work, not another limit.
_WORK = {"degree", "n_components", "rank", "strengths", "cv", "n_threads", "verbose", "dummies", "k", "max_units"}
_HUGE = (10**6, 2**31, 2**63, 2**64, -(10**400), np.int64(2**62))
_NUMBERS = (
    *(0, 1, 2, 3, -1, -2, 0.0, -0.0, 0.5, 1.0, 1.5, -0.5, np.nan, np.inf, -np.inf, 1e-320, 1e-300, 1e-8, 1e8, 1e300),
    *(np.float32(0.5), np.float16(0.5), np.longdouble(0.5), np.int64(2), np.int8(2), np.uint64(3), np.array(2)),
    *(fractions.Fraction(1, 2), fractions.Fraction(2), decimal.Decimal("0.5")),
)
_OBJECTS = tuple(ODD[name] for name in ODD if "Python prints" not in name)


def _odd_option(rng, name, value):
    """Return a value for an option that has a valid one."""
    if name == "n_jobs":
        # None is for processes: starting them takes seconds.
        return pick(rng, (None, 1, 0, 1.5, "a", np.nan, []))
    numbers = _NUMBERS + (() if name in _WORK else _HUGE)
    if isinstance(value, str):
        others = value.upper(), f" {value}", value.encode(), [value], np.str_(value), np.array(value)
        return pick(rng, (*_OBJECTS, *others))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return pick(rng, numbers if number and rng.uniform() < 0.7 else _OBJECTS + numbers)


def _option(rng, interface, arguments, place):
    step, name = place
    value = arguments[step][name]
    if isinstance(value, np.ndarray) and rng.uniform() < 0.7:
        return _one_of(arrays.PARTS)(rng, interface, arguments, place)
    arguments[step][name] = odd = _odd_option(rng, name, value)
    return f"{type(odd).__name__} {odd!r}"[:60]


_OF_X = (arrays.SHAPES_OF_X, arrays.TYPES_OF_X, arrays.STORAGE, arrays.FORMS, arrays.SPARSE_TYPES, arrays.VALUES_OF_X)
# The place of changes, their kind, and the share of such calls.
CHANGES = {
    "X shape": (_is_samples, _one_of(arrays.SHAPES_OF_X), 3),
    "X dtype": (_is_samples, _one_of(arrays.TYPES_OF_X), 4),
    "X storage": (_is_samples, _one_of(arrays.STORAGE), 4),
    "X sparse": (_is_samples, _one_of(arrays.FORMS, arrays.SPARSE_TYPES), 6),
    "X malformed": (_is_samples, _one_of(arrays.MALFORMED), 3),
    "X values": (_is_samples, _one_of(arrays.VALUES_OF_X), 9),
    "X at prediction": (_is_new_samples, _one_of(*_OF_X), 5),
    "X at prediction, malformed": (_is_new_samples, _one_of(arrays.MALFORMED), 2),
    "y": (_is_targets, _one_of(arrays.TARGETS), 12),
    "weights": (_is_weights, _weights, 6),
    "options": (_is_option, _option, 22),
}


@cache
def _examples():
    """Return the interfaces with valid arguments, which tell the possible changes."""
    rng = np.random.default_rng(0)
    return [(interface, interface.draw(rng)) for interface in interfaces()]


def changed(rng, categories):
    """Return a call with a change of each category that the interface of the first one has."""
    wanted = CHANGES[categories[0]][0]
    interface = pick(rng, [interface for interface, arguments in _examples() if _places(arguments, wanted)])
    arguments = interface.draw(rng)
    for step, defaults in interface.defaults.items():
        # Options at their defaults can be changed, too.
        arguments[step] = defaults | arguments[step]
    clean = {step: dict(at) for step, at in arguments.items()}
    changes = {}
    must_refuse = False
    for category in categories:
        if places := [place for place in _places(clean, CHANGES[category][0]) if place not in changes]:
            step, name = place = pick(rng, places)
            valid = {at: dict(values) for at, values in clean.items()}
            kind = CHANGES[category][1](rng, interface, valid, place)
            arguments[step][name], changes[place] = valid[step][name], f"{name}: {kind}"
            taken = interface.taken if name == "X" else ()
            refused = arrays.REFUSED.get(category, set()).difference(taken)
            must_refuse |= name not in interface.ignored and kind in refused
    if must_refuse and not any(name == "sample_weight" for _, name in changes):
        # Samples of weight zero may hold anything.
        for at in arguments.values():
            at |= {name: None for name in at if name == "sample_weight"}
    return trial_of(interface, arguments, "; ".join(changes.values()), must_refuse=must_refuse)


def two_changes(rng):
    """Return a call with changes of two categories."""
    kinds = [name for name in CHANGES if "malformed" not in name]
    return changed(rng, (pick(rng, kinds), pick(rng, kinds)))

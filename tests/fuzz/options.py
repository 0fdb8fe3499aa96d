"""Odd options, callbacks and starts: of other types, out of range, of other signatures, and of other problems."""

import decimal
import fractions

import numpy as np

from tests.fuzz.arrays import PARTS
from tests.fuzz.checks import require
from tests.fuzz.samples import pick
from tests.odd_values import ODD

# -- options -----------------------------------------------------------------------------------------------------------

# Beside the odd values of other tests: what is of no use for any option, and numbers.
_OBJECTS = (
    *(ODD[name] for name in ODD if "Python prints" not in name),
    *(False, "nonsense", "1", object(), id, (), set(), [1], ["logistic"], (1, 2), np.array([]), np.array([1.0])),
    *(np.array(["logistic"]), np.str_("nonsense"), np.bool_(True), Ellipsis, slice(3), range(3), ValueError("a")),
)
_NUMBERS = (
    0, 1, 2, 3, -1, -2, 0.0, -0.0, 0.5, 1.0, 1.5, -0.5, np.nan, np.inf, -np.inf, 1e-320, 1e-300, 1e-30, 1e-8, 1e8, 1e30,
    1e300, np.float32(0.5), np.float16(0.5), np.longdouble(0.5), np.int64(2), np.int8(2), np.uint64(3),
    np.float64(2.0), np.array(2), fractions.Fraction(1, 2), fractions.Fraction(2), decimal.Decimal("0.5"),
)  # fmt: skip
# Where a larger number is more work, not another limit.
_WORK = frozenset({
    "degree", "n_components", "rank", "strengths", "cv", "n_jobs", "n_threads", "verbose", "dummies", "k",
    "max_units",
})  # fmt: skip
_LARGE = (50, np.int32(40))
_HUGE = (10**6, 2**31, 2**63, 2**64, 10**400, -(10**400), np.int64(2**62))
# No option is for processes: starting them takes seconds.
_NO_PROCESSES = (None, 1, 0, 1.5, "a", np.nan, [])


def odd_option(rng, name, value):
    """Return a value for an option that has a valid one."""
    if name == "n_jobs":
        return pick(rng, _NO_PROCESSES)
    numbers = _NUMBERS + (_LARGE if name in _WORK else _HUGE)
    if isinstance(value, str):
        others = value.upper(), f" {value}", value.encode(), [value], np.str_(value), np.array(value)
        return pick(rng, (*_OBJECTS, *numbers[:8], *others))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return pick(rng, numbers if number and rng.uniform() < 0.7 else _OBJECTS + numbers)


# -- callbacks ---------------------------------------------------------------------------------------------------------


def odd_callback(rng):
    """Return what is odd about a callback, and the callback."""
    name = pick(rng, sorted(_CALLBACKS))
    return name, _CALLBACKS[name](rng)


def _raiser(kind):
    def make(rng):
        left = int(rng.integers(3))

        def callback(intermediate_result):
            nonlocal left
            left -= 1
            if left < 0:
                raise kind("raised by the callback")

        return callback

    return make


def _writer(rng):
    """Return a callback that writes a number into all arrays that it is handed out, as far as it can."""
    value = pick(rng, (np.nan, 1e6, 0.0))

    def callback(intermediate_result):
        for part in dict(intermediate_result).values():
            for array in part if isinstance(part, list) else [part]:
                if isinstance(array, np.ndarray) and array.flags.writeable:
                    array.fill(value)

    return callback


def _keeper(rng):
    """Return a callback that keeps all results, and checks that those kept do not change."""
    kept = []

    def callback(intermediate_result):
        for array, copy in kept:
            require(np.array_equal(array, copy), "a result that was kept has changed")
        kept.append((intermediate_result.x, intermediate_result.x.copy()))

    return callback


def _eraser(intermediate_result):
    intermediate_result.clear()


def _positional(first, second):
    """Take two arguments, of other names."""


def _generator(intermediate_result):
    yield intermediate_result


_RAISED = (
    ValueError, TypeError, KeyError, ZeroDivisionError, FloatingPointError, MemoryError, StopIteration, GeneratorExit,
    KeyboardInterrupt, SystemExit, np.linalg.LinAlgError, RuntimeWarning,
)  # fmt: skip
_CALLBACKS = {
    **{f"raises {kind.__name__}": _raiser(kind) for kind in _RAISED},
    "writes": _writer,
    "keeps": _keeper,
    "erases": lambda rng: _eraser,
    "takes other arguments": lambda rng: _positional,
    "takes none": lambda rng: lambda: None,
    "takes any": lambda rng: lambda *args, **kwargs: "a value",
    "is a generator": lambda rng: _generator,
    "is a class": lambda rng: dict,
    "is a string": lambda rng: "callback",
    "is a list": lambda rng: [print],
    "is True": lambda rng: True,
}

# -- starts ------------------------------------------------------------------------------------------------------------


def odd_start(rng, found):
    """Return what is odd about a start, and the start; most are made from a result of the problem."""
    name = pick(rng, sorted(_STARTS))
    return name, _STARTS[name](rng, found)


def _parts(rng, found, change):
    """Return the named parts of a result, with one of them changed."""
    parts = {name: np.array(part) for name, part in found.items() if isinstance(part, np.ndarray) and name != "x"}
    name = pick(rng, sorted(parts))
    return parts | {name: change(rng, parts[name])}


def _pair(rng, found, change):
    basis, weights = found.get("basis", np.ones((1, 3))), found.get("weights", np.ones((1, 2)))
    return change(rng, np.array(basis)), np.array(weights)


# Starts that are made from a result, with a part of it changed.
_MADE = {
    "a flat point": lambda rng, found, change: change(rng, found.x),
    "parts": _parts,
    "a result": lambda rng, found, change: type(found)({**found, **_parts(rng, found, change)}),
    "a pair": _pair,
}
_STARTS = {
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
    "a tuple of four": lambda rng, found: (np.ones((1, 3)),) * 4,
    "a list": lambda rng, found: [1.0, 2.0],
    "the result": lambda rng, found: found,
    **{
        f"{kind}, {name}": lambda rng, found, make=make, change=change: make(rng, found, change)
        for kind, make in _MADE.items()
        for name, change in PARTS.items()
    },
}

"""Odd options: of other types, out of range, and at the ends of their ranges; and callbacks.

Odd starts, callbacks of other signatures and those that write are in ``tests/test_inputs.py`` and
``tests/solvers/test_driver.py``, with every problem and every solver.
"""

import decimal
import fractions

import numpy as np

from tests.fuzz.checks import require
from tests.fuzz.samples import pick
from tests.odd_values import ODD

_OBJECTS = (
    *(ODD[name] for name in ODD if "Python prints" not in name),
    *(False, "nonsense", "1", object(), (), set(), [1], (1, 2), np.array([]), np.array([1.0]), np.array(["logistic"])),
    *(np.str_("nonsense"), np.bool_(True), Ellipsis, slice(3), range(3), ValueError("a")),
)
_NUMBERS = (
    *(0, 1, 2, 3, -1, -2, 0.0, -0.0, 0.5, 1.0, 1.5, -0.5, np.nan, np.inf, -np.inf, 1e-320, 1e-300, 1e-8, 1e8, 1e300),
    *(np.float32(0.5), np.float16(0.5), np.longdouble(0.5), np.int64(2), np.int8(2), np.uint64(3), np.array(2)),
    *(fractions.Fraction(1, 2), fractions.Fraction(2), decimal.Decimal("0.5")),
)
# Where a larger number is more work, not another limit.
_WORK = {"degree", "n_components", "rank", "strengths", "cv", "n_threads", "verbose", "dummies", "k", "max_units"}
_LARGE = (50, np.int32(40))
_HUGE = (10**6, 2**31, 2**63, 2**64, -(10**400), np.int64(2**62))
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


_RAISED = (
    *(ValueError, TypeError, KeyError, ZeroDivisionError, FloatingPointError, MemoryError, StopIteration),
    *(GeneratorExit, KeyboardInterrupt, SystemExit, np.linalg.LinAlgError, RuntimeWarning),
)


def odd_callback(rng):
    """Return what is odd about a callback, and one that checks that results are kept, empties one, or raises."""
    kind, left, kept = pick(rng, (None, *_RAISED)), int(rng.integers(3)), []

    def callback(intermediate_result):
        nonlocal left
        for array, copy in kept:
            require(np.array_equal(array, copy), "a result that was kept has changed")
        kept.append((intermediate_result.x, intermediate_result.x.copy()))
        left -= 1
        if left < 0 and kind is not None:
            raise kind("raised by the callback")
        intermediate_result.clear()

    return f"raises {kind.__name__}" if kind else "keeps", callback

"""Options: of other types, out of range, and at the ends of their ranges."""

import decimal
import fractions
import math
from typing import Any

import numpy as np

from tests.fuzz.trial import pick

# Of no use for any option.
_OBJECTS: tuple[Any, ...] = (
    None, True, False, "", "nonsense", "a", "1", b"l1", object(), id, int, [], (), {}, set(), [1], ["logistic"],
    (1, 2), {"a": 1}, np.array(1.0), np.array([]), np.array([1.0]), np.array([1.0, 2.0]), np.array(["logistic"]),
    np.str_("nonsense"), np.bool_(True), 1j, np.datetime64("2020-01-01"), Ellipsis, slice(3), range(3), float,
    ValueError("a"),
)  # fmt: skip
_NUMBERS: tuple[Any, ...] = (
    0, 1, 2, 3, -1, -2, 0.0, -0.0, 0.5, 1.0, 1.5, 2.0, -0.5, math.nan, math.inf, -math.inf, 1e-320, 1e-300, 1e-30, 1e-8,
    1e8, 1e30, 1e300, np.float64(0.5), np.float32(0.5), np.float16(0.5), np.longdouble(0.5), np.int64(2), np.int8(2),
    np.uint8(2), np.uint64(3), np.float64(np.nan), np.float64(2.0), np.array(2), fractions.Fraction(1, 2),
    fractions.Fraction(2), decimal.Decimal("0.5"), decimal.Decimal(2),
)  # fmt: skip
# Where a larger number is more work, not another limit.
_WORK = frozenset({
    "degree", "n_components", "rank", "strengths", "cv", "n_jobs", "n_threads", "verbose", "dummies", "k",
    "max_units",
})  # fmt: skip
_LARGE: tuple[Any, ...] = (50, np.int32(40))
_HUGE: tuple[Any, ...] = (10**6, 2**31, 2**63, 2**64, 10**18, 10**400, -(10**400), np.int64(2**62))
# No option is for processes: starting them takes seconds.
_NO_PROCESSES = (None, 1, 0, 1.5, "a", math.nan, [])


def odd_option(rng: np.random.Generator, name: str, value: Any) -> Any:
    """Return a value for an option that has a valid one."""
    if name == "n_jobs":
        return pick(rng, _NO_PROCESSES)
    numbers = _NUMBERS + (_LARGE if name in _WORK else _HUGE)
    if isinstance(value, str):
        others = value.upper(), f" {value}", value.encode(), [value], np.str_(value), np.array(value)
        return pick(rng, (*_OBJECTS, *numbers[:8], *others))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return pick(rng, numbers if number and rng.uniform() < 0.7 else _OBJECTS + numbers)

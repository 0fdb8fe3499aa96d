"""Values of every kind that an option may be given by mistake, and the check that an error says which option it was."""

import math
import re

import numpy as np

ODD = {
    "None": None,
    "True": True,
    "a string": "a",
    "an empty string": "",
    "bytes": b"1",
    "nan": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "-1": -1,
    "0": 0,
    "1": 1,
    "0.5": 0.5,
    "2.5": 2.5,
    "a huge int": 10**400,
    "more digits than Python prints": 10**5000,
    "longdouble": np.longdouble(0.3),
    "a complex number": 0.5j,
    "a date": np.datetime64("2020-01-01"),
    "an array": np.array([0.5, 2.0]),
    "an array without dimensions": np.array(2),
    "an empty list": [],
    "a list": ["a"],
    "a dictionary": {},
    "a class": int,
}
# Values that no option takes, except a number of any sign.
NEVER = {"a string", "an empty string", "nan", "minus inf", "-1", "a complex number", "a date", "a list"}
SIGNED = {"intercept", "offset"}
# Values that are no number of things.
NO_COUNT = {"True", "0", "0.5", "2.5"}
COUNTS = {
    *("n_components", "rank", "degree", "max_units", "k", "n_threads", "patience", "memory"),
    *("batch_size", "polish_iter", "atoms_per_round"),
}


def is_clear(error, name):
    """Whether an error is one of values or types, and names the option."""
    return isinstance(error, ValueError | TypeError) and re.search(rf"\b{name}\b", str(error)) is not None


def failures(name, values, attempt):
    """The odd values of an option that are refused by an error that does not name it, or taken without a meaning."""
    found = {}
    meaningless = (NEVER if name not in SIGNED else set()) | (NO_COUNT if name in COUNTS else set())
    for label, value in values.items():
        try:
            attempt(value)
        except Exception as error:
            if not is_clear(error, name):
                found[label] = f"{type(error).__name__}: {error}"[:200]
        else:
            if label in meaningless:
                found[label] = "taken"
    return found

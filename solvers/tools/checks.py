"""Checks of options. Every message names the option, the values it takes, and the one given.

Values of a type that an option never takes raise ``TypeError``, others that it does not take ``ValueError``.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

# Number of seeds that can be drawn: the nonnegative numbers of int64.
_SEED_COUNT = 2**63
# Characters of a representation in messages; longer ones are cut off.
_MOST_CHARACTERS = 120
# Share of the letters that similar names have in common, as "hinge" and "squared-hinge".
_MIN_SHARED_LETTERS = 0.5


@dataclass(frozen=True)
class Rule:
    """The values of an option, in words, and the function that converts one or raises the right error."""

    takes: str
    convert: Callable[[Any], Any]
    names: tuple[str, ...] = ()

    def __call__(self, value: Any, name: str) -> Any:
        """Return the value of an option, converted."""
        try:
            return self.convert(value)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name} must be {self.takes}, got {shown(value)}{self._similar(value)}") from None

    def _similar(self, value: Any) -> str:
        """Return a question for names that are similar to a wrong one."""
        found = get_close_matches(value, self.names, n=2, cutoff=_MIN_SHARED_LETTERS) if isinstance(value, str) else []
        return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""

    def or_none(self) -> Rule:
        return self._or(None)

    def or_auto(self) -> Rule:
        return self._or("auto")

    def _or(self, other: str | None) -> Rule:
        def convert(value: Any) -> Any:
            if type(value) is type(other) and value == other:
                return other
            try:
                return self.convert(value)
            except TypeError as error:
                # Another text is a wrong value, not a wrong type.
                if type(value) is type(other):
                    raise ValueError from None
                raise error from None

        return Rule(f"{self.takes} or {other!r}", convert, self.names)


def number(
    takes: str = "a finite number", holds: Callable[[float], bool] = lambda x: True, *, finite: bool = True
) -> Rule:
    """Return the rule of a real number of any type but bool, for which a condition holds; NaN is refused."""

    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError
        try:
            x = float(value)
        except OverflowError:
            raise ValueError from None
        if math.isnan(x) or (finite and math.isinf(x)) or not holds(x):
            raise ValueError
        return x

    return Rule(takes, convert)


def count(least: int = 1) -> Rule:
    """Return the rule of an integer of at least ``least``, of any type but bool, that fits into 64 bits."""

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError
        if not least <= int(value) <= sys.maxsize:
            raise ValueError
        return int(value)

    return Rule(f"an integer >= {least}", convert)


def choice(names: Iterable[str]) -> Rule:
    """Return the rule of one of some names."""
    names = tuple(names)

    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError
        if value not in names:
            raise ValueError
        return value

    return Rule(f"one of {', '.join(map(repr, names))}", convert, names)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _callback(value: Any) -> Any:
    if not callable(value):
        raise TypeError
    try:
        signature = inspect.signature(value)
    except ValueError:  # some builtins have no signature
        return value
    try:
        signature.bind(intermediate_result=None)
    except TypeError:
        raise ValueError from None
    return value


_NATURAL = count(0)


def _verbose(value: Any) -> int:
    return int(value) if isinstance(value, bool | np.bool_) else _NATURAL.convert(value)


check_nonnegative = number("a finite number >= 0", lambda x: x >= 0.0)
check_positive = number("a finite number > 0", lambda x: x > 0.0)
check_fraction = number("a number in (0, 1)", lambda x: 0.0 < x < 1.0)
check_seconds = number("a number of seconds >= 0", lambda x: x >= 0.0, finite=False)
check_flag = Rule("True or False", _flag)
check_callback = Rule("callable as callback(intermediate_result=...)", _callback).or_none()
check_verbose = Rule("an integer >= 0, True or False", _verbose)


def check_count(value: Any, name: str, least: int = 1) -> int:
    return count(least)(value, name)


def check_options(options: Any, **rules: Rule) -> None:
    """Convert the attributes of a frozen dataclass by the rules of their names."""
    for name, rule in rules.items():
        object.__setattr__(options, name, rule(getattr(options, name), name))


def _without_numpy_scalars(value: Any) -> Any:
    """Return a value, or a list or tuple of values, with the scalars of NumPy as Python's."""
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(_without_numpy_scalars, value))
    return value.item() if isinstance(value, np.number | np.bool_ | np.str_) else value


def shown(value: Any) -> str:
    """Return a value as text for a message."""
    try:
        text = repr(_without_numpy_scalars(value))
    except ValueError:  # Python refuses to print integers of more than some thousand digits.
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def make_generator(rng: Any, name: str = "rng") -> np.random.Generator:
    try:
        if isinstance(rng, bool):
            raise TypeError
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        takes = "a numpy Generator, a seed (an integer >= 0) or None"
        raise type(error)(f"{name} must be {takes}, got {shown(rng)}") from None


def make_seed(rng: Any) -> int:
    """Return the seed for an ``rng=`` argument: a given seed, a seed drawn from a generator, or 0 for None."""
    if rng is None:
        return 0
    generator = make_generator(rng)
    if isinstance(rng, int | np.integer):
        return int(rng)
    return int(generator.integers(_SEED_COUNT))

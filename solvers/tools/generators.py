"""The convention for ``rng=`` arguments: SPEC 7 of Scientific Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.solvers.tools.checks import shown

__all__ = ["make_generator", "make_seed"]

_SEEDS = 2**63


def make_generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """Return the generator for an ``rng=`` argument.

    Parameters
    ----------
    rng : Generator, int or None
        A generator is returned as it is. A seed gives a new generator with the same numbers every time, None one with
        different numbers every time.
    name : str, default "rng"
        Name of the argument in messages.

    Raises
    ------
    TypeError, ValueError
        If ``rng`` is none of these, or a negative seed.
    """
    try:
        if isinstance(rng, bool):
            raise TypeError
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        takes = "a numpy Generator, a seed (an integer >= 0) or None"
        raise type(error)(f"{name} must be {takes}, got {shown(rng)}") from None


def make_seed(rng: Any) -> int:
    """Return the seed for an ``rng=`` argument: a seed as it is, one drawn from a generator, and 0 for None."""
    if rng is None:
        return 0
    generator = make_generator(rng)
    return int(rng) if isinstance(rng, int | np.integer) else int(generator.integers(_SEEDS))

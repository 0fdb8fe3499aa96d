"""The convention for ``rng=`` arguments: SPEC 7 of Scientific Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.solvers.tools.checks import shown

# Drawn seeds are nonnegative numbers of int64.
_SEEDS = 2**63


def make_generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """Return the generator for an ``rng=`` argument."""
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

"""The convention for ``rng=`` arguments: SPEC 7 of Scientific Python."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["make_generator"]


def make_generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """Return the generator that an argument stands for.

    Parameters
    ----------
    rng : Generator, int or None
        A generator is returned as it is; a seed makes a new one, the same every time; None one that is never the same.
    name : str, default "rng"
        Name of the argument, for messages.

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or a negative seed.
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be a numpy Generator, a seed (an integer >= 0) or None, got {rng!r}") from None

"""What a campaign runs: a call of an interface, with what a clear refusal of it may be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")


class WrongError(AssertionError):
    """Something that must be true is not."""


class NotFiniteError(AssertionError):
    """A model or a prediction holds NaN or infinity."""


@dataclass(frozen=True)
class Trial:
    """A call: the name of its interface, what is odd about it, and how to make it and check what it returns.

    ``names`` are the words that a refusal may say, ``refusals`` what the interface documents to raise.
    """

    interface: str
    change: str
    run: Callable[[], Any]
    names: frozenset[str]
    refusals: tuple[type[BaseException], ...] = (ValueError, TypeError)


def pick(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """Return one of some items, of any types."""
    return items[int(rng.integers(len(items)))]

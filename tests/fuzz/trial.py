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
    """A call.

    Attributes
    ----------
    interface : str
    change : str
        What is odd about it.
    run : callable
        Makes the call and checks what it returns.
    names : frozenset of str
        The names that the message of a refusal may say: those of the arguments.
    refusals : tuple of exception types
        What the interface documents to raise.
    where : {"anywhere", "worker", "fork"}
        Calls that send signals or start processes belong into worker processes; those that may write anywhere in memory
        belong into forks, one each.
    """

    interface: str
    change: str
    run: Callable[[], Any]
    names: frozenset[str]
    refusals: tuple[type[BaseException], ...] = (ValueError, TypeError)
    where: str = "anywhere"


def pick(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """Return one of some items, of any types."""
    return items[int(rng.integers(len(items)))]

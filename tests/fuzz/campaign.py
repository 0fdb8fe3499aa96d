"""The categories of a campaign, and the call of a number."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np

from tests.fuzz.changes import CHANGES, changed, two_changes
from tests.fuzz.interrupts import interrupted
from tests.fuzz.outcomes import Record
from tests.fuzz.relations import RELATIONS, relation
from tests.fuzz.trial import Trial


class Category(NamedTuple):
    """Calls of one kind: how to draw one, their share of all calls, and whether they need a process of their own."""

    draw: Callable[[np.random.Generator], Trial]
    weight: float
    alone: bool = False


_WEIGHTS_OF_CHANGES = {
    "X shape": 3, "X dtype": 5, "X storage": 4, "X sparse": 5, "X malformed": 3, "X values": 8, "X at prediction": 5,
    "X at prediction, malformed": 2, "y": 12, "weights": 6, "options": 14, "solver options": 5, "run options": 3,
    "callback": 3, "start": 4,
}  # fmt: skip
CATEGORIES: dict[str, Category] = {
    **{
        # Malformed matrices may write anywhere in memory.
        name: Category(partial(changed, categories=(name,)), _WEIGHTS_OF_CHANGES[name], "malformed" in name)
        for name in CHANGES
    },
    "two changes": Category(two_changes, 6),
    **{f"relation: {name}": Category(partial(relation, name=name), 0.8) for name in RELATIONS},
    "Ctrl-C": Category(interrupted, 2, alone=True),
}
_NAMES = list(CATEGORIES)
_WEIGHTS = np.array([category.weight for category in CATEGORIES.values()])


def _generator(seed: int, number: int) -> tuple[np.random.Generator, str]:
    rng = np.random.default_rng((seed, number))
    return rng, _NAMES[int(rng.choice(len(_NAMES), p=_WEIGHTS / _WEIGHTS.sum()))]


def category_of(seed: int, number: int) -> str:
    """Return the category of a call."""
    return _generator(seed, number)[1]


def drawn(seed: int, number: int) -> tuple[Record, Trial]:
    """Return a call of a campaign, a function of the seed and the number alone, and its record before it is made."""
    rng, category = _generator(seed, number)
    trial = CATEGORIES[category].draw(rng)
    return Record(number, category, trial.interface, trial.change), trial


def numbers(seed: int, category: str | None) -> Iterator[int]:
    """Yield the numbers of all calls, or of those of a category."""
    return (number for number in count() if category is None or category_of(seed, number) == category)

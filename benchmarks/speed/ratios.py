"""Ratios of times, some of them lower bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import mopn

__all__ = ["Ratio", "make_ratio", "median", "print_medians"]


class Ratio(NamedTuple):
    """A ratio, or a lower bound of one."""

    value: float
    is_bound: bool = False

    def __str__(self) -> str:
        return f"{'> ' if self.is_bound else ''}{self.value:.3g}"


def make_ratio(theirs: float, ours: mopn.Result, arrived: bool) -> Ratio:
    """Return the other's time over ours: a bound unless the other arrived, 0 unless ours did."""
    return Ratio(theirs / ours.time, not arrived) if ours.success else Ratio(0.0)


def median(ratios: list[Ratio]) -> Ratio:
    """Return the median; a bound if a bound below it might lie above."""
    middle = float(np.median([ratio.value for ratio in ratios]))
    return Ratio(middle, any(ratio.is_bound and ratio.value <= middle for ratio in ratios))


def print_medians(ratios: dict[str, list[Ratio]]) -> None:
    """Print the medians by set, and that of all."""
    entries = [f"{name} {median(found)}" for name, found in ratios.items()]
    print(f"median ratio: {', '.join(entries)}; all {median([ratio for found in ratios.values() for ratio in found])}")

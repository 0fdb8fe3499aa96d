"""The end of a call's time: made once, where the call begins, and handed to all that it does."""

from __future__ import annotations

import math
import time


class Deadline:
    """The end of the seconds, on the clock, that a call may take.

    Examples
    --------
    >>> from mopn.solvers.tools.deadline import Deadline
    >>> Deadline(0.0).is_over, Deadline(None).left
    (True, inf)
    """

    def __init__(self, seconds: float | None) -> None:
        self._end = math.inf if seconds is None else time.perf_counter() + seconds

    @property
    def left(self) -> float:
        """Seconds until the end, at least 0."""
        return max(self._end - time.perf_counter(), 0.0)

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return self.left == 0.0

    def share(self, part: float) -> Deadline:
        """Return the deadline of a step that may take a part of the seconds left."""
        return Deadline(part * self.left)

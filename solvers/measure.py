"""The objective of a point with proven bounds, and the gap that follows from them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mopn.solvers.numerics.precision import proven_upper
from mopn.solvers.result import proof_in_words, relative


class Measure(NamedTuple):
    """The objective of a point, and proven bounds of the minimum; ``fun - gap`` is at most ``lower``."""

    fun: float
    """The objective, as computed."""
    lower: float = -math.inf
    """Proven lower bound of the minimum."""
    rounding: float = 0.0
    """Upper bound of the exact objective of the point minus ``fun``."""
    restricted_lower: float = -math.inf
    """Proven lower bound of the minimum over the weights alone, with the units of the point."""
    failure: float = 0.0
    """The largest probability, over the random numbers of the oracle, that a bound is false."""
    seed: int | None = None
    """The seed that the user gave for these random numbers."""
    dual: Any = None
    """The dual point that proves ``lower``; of network problems a :class:`mopn.core.gap.Dual`."""

    @property
    def gap(self) -> float:
        """Upper bound of ``fun``, and of the exact objective, minus the minimum; inf if no bound is known."""
        return self._above(self.lower)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the objective; 0 for a perfect fit, whose objective and gap are rounding errors."""
        return relative(self.gap, self.fun, self.rounding)

    @property
    def restricted_gap(self) -> float:
        """The same for the minimum over the weights alone; at most ``gap``."""
        return self._above(max(self.lower, self.restricted_lower))

    def _above(self, lower: float) -> float:
        """Return max(fun - lower, 0) + rounding, rounded up."""
        distance = 0.0 if self.fun <= lower else math.nextafter(self.fun - lower, math.inf)
        gap = math.nextafter(distance + self.rounding, math.inf) if self.rounding else distance
        return float(proven_upper(gap))

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={getattr(self, name):.8g}" for name in ("fun", "gap", "restricted_gap"))
        return f"Measure({numbers}, proof={self.proof!r})"

    @property
    def proof(self) -> str:
        """Proof of the gap: "deterministic", "probability 1 - 1e-09" for example, or "none"."""
        return proof_in_words(self.gap, random=self.failure > 0, seed=self.seed)

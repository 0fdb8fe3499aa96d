"""The places of the terms' parameters in the flat point of a problem."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mopn.factorization.terms import Term
from mopn.factorization.terms.base import Parameters


class Layout:
    """The terms' parameters one after the other, ``size`` numbers in all."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = list(terms)
        self._places: list[list[tuple[str, slice, tuple[int, ...]]]] = []
        self.size = 0
        for term in self.terms:
            self._places.append([])
            for name, shape in term.shapes.items():
                end = self.size + math.prod(shape)
                self._places[-1].append((name, slice(self.size, end), shape))
                self.size = end

    def views(self, x: np.ndarray) -> list[Parameters]:
        """Return the parameters of each term, as views of a flat point."""
        return [{name: x[place].reshape(shape) for name, place, shape in places} for places in self._places]

    def lower_bounds(self) -> np.ndarray:
        """Return the lower bounds of all parameters, -inf where there are none."""
        lower = np.full(self.size, -np.inf)
        for term, at in zip(self.terms, self.views(lower), strict=True):
            for name, bound in term.lower.items():
                at[name][:] = bound
        return lower

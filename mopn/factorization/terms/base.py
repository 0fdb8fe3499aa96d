"""The interface of the terms of a problem of a single output, and the places of their parameters in its flat point."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mopn.data.designs import Design
from mopn.data.rows import Block, Rows, SumOfLosses
from mopn.factorization.sweep_state import SweepState

Parameters = dict[str, np.ndarray]
# A function that minimises along some coordinates, and returns the largest product of a derivative and its step.
Update = Callable[[], float]


class Term(ABC):
    """A part of the outputs: parameters by ``shapes``, bounds ``lower``, the data ``designs``, and a penalty."""

    # Whether gradient methods can fit it: its parameters have no constraints other than bounds.
    smooth = True
    # Whether it has updates for coordinate descent.
    multiconvex = True

    def __init__(self, shapes: dict[str, tuple[int, ...]], designs: Sequence[Design] = ()) -> None:
        self.shapes = shapes
        self.designs = tuple(designs)
        self.lower: dict[str, float] = {}

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Parameters:
        """Return parameters to start from."""

    @abstractmethod
    def outputs(self, at: Parameters) -> np.ndarray:
        """Return the term's part of the outputs (n,)."""

    @abstractmethod
    def penalty(self, at: Parameters) -> float:
        """Return the term's part of the penalties."""

    @abstractmethod
    def gradient(self, at: Parameters, slopes: np.ndarray) -> Parameters:
        """Return the gradient of the objective, given the slopes (n,) of the losses, in which it is affine."""

    def scales(self, rows: Rows) -> Parameters:
        """Return steps along the parameters that change the objective by about the same amount; 1 where missing."""
        return {}

    @abstractmethod
    def on(self, block: Block) -> Term:
        """Return the term on the rows of a block."""

    @abstractmethod
    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        """Yield the updates of coordinate descent, which change ``at`` and ``state`` in place."""

    def present(self, at: Parameters) -> dict[str, Any]:
        """Return the parameters under the names of results."""
        return dict(at)

    def absorb(self, given: dict[str, Any]) -> Parameters:
        """Return the parameters of the term from a dictionary under the names of results."""
        return {name: given[name] for name in self.shapes if name in given}


def unit_curvature(rows: Rows) -> float:
    """Return the curvature of the losses along a coefficient of a unit, for a feature whose squares add up to 1."""
    losses = SumOfLosses(rows)
    return losses.smoothness * losses.output_unit


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
        return [{name: x[place].reshape(shape) for name, place, shape in places} for places in self._places]

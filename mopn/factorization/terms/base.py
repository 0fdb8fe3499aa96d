"""What a problem of a single output asks of each of its terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mopn.core.designs import Design
from mopn.factorization.sweep_state import SweepState

__all__ = ["Parameters", "Term", "Update"]

Parameters = dict[str, np.ndarray]
# Minimises along some coordinates; returns the largest modulus of the derivatives that it found.
Update = Callable[[], float]


class Term(ABC):
    """A part of the outputs with parameters and a penalty of its own.

    Attributes
    ----------
    shapes : dict
        The names and shapes of its parameters.
    lower : dict
        Lower bounds of parameters, by name, where there are some.
    smooth : bool
        Whether its gradient is enough for descent: no constraints on its parameters beside bounds.
    multiconvex : bool
        Whether it has updates for coordinate descent.
    designs : tuple of Design
        The data that it is a function of.
    """

    shapes: dict[str, tuple[int, ...]]
    lower: dict[str, float]
    smooth = True
    multiconvex = True
    designs: tuple[Design, ...]

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        designs: Sequence[Design] = (),
    ) -> None:
        self.shapes, self.designs, self.lower = shapes, tuple(designs), {}

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Parameters:
        """Return parameters to start from."""

    @abstractmethod
    def outputs(self, at: Parameters) -> np.ndarray:
        """Return its part of the outputs (n,)."""

    @abstractmethod
    def penalty(self, at: Parameters) -> float:
        """Return its part of the regulariser."""

    @abstractmethod
    def gradient(self, at: Parameters, slopes: np.ndarray) -> Parameters:
        """Return the gradient of the objective, given the slopes (n,) of the losses, in which it is affine."""

    @abstractmethod
    def on_rows(self, rows: np.ndarray) -> Term:
        """Return the term on some of the samples; its penalty is the same."""

    @abstractmethod
    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        """Yield the updates of coordinate descent: each changes ``at`` in place and brings ``state`` up to date."""

    def present(self, at: Parameters) -> dict[str, Any]:
        """Return the parameters as users know them."""
        return dict(at)

    def absorb(self, given: dict[str, Any]) -> Parameters:
        """Take parameters from what ``present`` returned."""
        return {name: given[name] for name in self.shapes if name in given}

"""Points, gradients and values on grids that are coarser than rounding errors.

Iterates of a function that is not convex double an error every few steps: from 1e-16 to another local minimum. A grid
removes the error in every step, except at the border of two cells.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mopn.solvers.interface import Evaluation

# Bits of a variable and, relative to the first value, of its change by a typical step; and bits of a value.
_BITS, _VALUE_BITS = 24, 34


def on_grid(x: np.ndarray) -> np.ndarray:
    """Return the nearest numbers of a few bits."""
    mantissas, exponents = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissas, _BITS)), exponents - _BITS)


class OnGrid:
    """A function with values and gradients on grids, by its first value and the scales of variables."""

    def __init__(self, function: Callable[[np.ndarray], Evaluation], scales: np.ndarray) -> None:
        self.function = function
        self._scale_exponents = _exponents(scales)
        self._size: int | None = None

    def __call__(self, x: np.ndarray) -> Evaluation:
        """Return the rounded value and gradient."""
        at = self.function(x)
        if not np.isfinite(at.value):
            return at
        if self._size is None:
            self._size = int(_exponents(abs(at.value)))
        value = _rounded(at.value, self._size - _VALUE_BITS)
        return Evaluation(float(value), _rounded(at.gradient, self._size - self._scale_exponents - _BITS))


def _exponents(sizes: np.ndarray | float) -> np.ndarray:
    # Rounding happens far from round numbers, where errors would choose.
    return np.rint(np.log2(np.where(np.greater(sizes, 0.0), sizes, 1.0))).astype(int)


def _rounded(values: np.ndarray | float, exponents: np.ndarray | int) -> np.ndarray:
    return np.ldexp(np.rint(np.ldexp(values, -exponents)), exponents)

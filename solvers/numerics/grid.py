"""Points, gradients and values on grids that are coarser than rounding errors, which then choose no path.

Iterates of a function that is not convex double an error every few steps: from 1e-16 to another local minimum. On a
grid the error is gone in every step, but where it is at the border of two cells.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mopn.solvers.interface import Evaluation

__all__ = ["OnGrid", "on_grid"]

# Bits that are kept of a variable; of a change of the value by a typical step in a variable, relative to the value of
# the first evaluation; and of the value.
_BITS, _VALUE_BITS = 24, 34


def on_grid(x: np.ndarray) -> np.ndarray:
    """Return the nearest numbers of so many bits."""
    mantissas, exponents = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissas, _BITS)), exponents - _BITS)


class OnGrid:
    """A function whose values and gradients are on grids, which its first value and the scales of variables tell."""

    def __init__(self, function: Callable[[np.ndarray], Evaluation], scales: np.ndarray) -> None:
        self.function = function
        self._of_scales = _exponents(scales)
        self._size: int | None = None

    def __call__(self, x: np.ndarray) -> Evaluation:
        """Return the rounded value and gradient."""
        at = self.function(x)
        if not np.isfinite(at.value):
            return at
        if self._size is None:
            self._size = int(_exponents(abs(at.value)))
        value = _rounded(at.value, self._size - _VALUE_BITS)
        return Evaluation(float(value), _rounded(at.gradient, self._size - self._of_scales - _BITS))


def _exponents(sizes: np.ndarray | float) -> np.ndarray:
    """Return the nearest powers of two, far from round numbers, where errors would choose."""
    return np.rint(np.log2(np.where(np.greater(sizes, 0.0), sizes, 1.0))).astype(int)


def _rounded(values: np.ndarray | float, exponents: np.ndarray | int) -> np.ndarray:
    """Return the nearest multiples of powers of two."""
    return np.ldexp(np.rint(np.ldexp(values, -exponents)), exponents)

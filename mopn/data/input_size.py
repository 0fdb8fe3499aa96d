"""Checks that input, and the products in which it occurs, are within the range of floating point."""

from __future__ import annotations

import numpy as np

__all__ = ["LARGEST", "check_input", "check_start_size", "is_start_size"]

# The largest modulus in an argument is zero, or between the reciprocal of this and this.
_LARGEST_INPUT = 1e50
# Losses, slopes and weights are: fourth powers of them are numbers.
LARGEST = 1e70


def check_input(values: float | np.ndarray, name: str, limit: float = _LARGEST_INPUT) -> None:
    """Raise ``ValueError`` if the largest modulus in an argument makes products infinite, or 0 where it is not."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest and not 1.0 / limit <= largest <= limit:
        raise ValueError(
            f"{name} is too {'large' if largest > 1 else 'small'} for floating point: its largest modulus is "
            f"{largest:.3g}, and products with it would be infinite or 0; scale it, to 1 for example"
        )


def check_start_size(start: np.ndarray, name: str) -> None:
    """Raise ``ValueError`` if units or weights to start from are larger than any that a problem allows."""
    check_input(float(np.abs(start).max(initial=1.0)), name, LARGEST)


def is_start_size(start: np.ndarray) -> bool:
    """Return whether parameters are numbers, and no larger than any that a problem allows to start from."""
    return bool(np.abs(start).max(initial=0.0) <= LARGEST)

"""The losses per output, compiled: their derivative with respect to the output, by an integer code."""

from __future__ import annotations

import math

from mopn.compiled.codes import LOGISTIC, SQUARED
from mopn.compiled.jit import jit

__all__ = ["derivative"]


@jit()
def derivative(loss, y, output):  # type: ignore[no-untyped-def]
    """Return the derivative of the loss of a code."""
    if loss == SQUARED:
        return output - y
    if loss == LOGISTIC:
        return -y / (1.0 + math.exp(y * output))
    return -2.0 * y * max(1.0 - y * output, 0.0)

"""The losses per output, compiled: their derivative with respect to the output, by a code and its parameters."""

import math

from mopn.compiled.codes import CLIPPED, LARGEST_EXPONENT, LOGISTIC, POISSON, SQUARED
from mopn.compiled.jit import inlined


@inlined()
def derivative(loss, y, output):  # type: ignore[no-untyped-def]
    """Return the derivative of a ``CompiledLoss``."""
    if loss.code == SQUARED:
        return output - y
    if loss.code == LOGISTIC:
        return -y / (1.0 + math.exp(y * output))
    if loss.code == CLIPPED:
        return min(max((output - y) / loss.width, loss.low), loss.high)
    if loss.code == POISSON:
        return math.exp(min(output, LARGEST_EXPONENT)) - y
    return -2.0 * y * max(1.0 - y * output, 0.0)

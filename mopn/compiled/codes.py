"""The integer codes of the losses whose derivatives are compiled; importing them does not import numba."""

from typing import NamedTuple

# Names of losses for compiled code; their order means nothing.
SQUARED, LOGISTIC, SQUARED_HINGE, CLIPPED, POISSON = range(5)
# Beyond this output the exponential of the Poisson loss is continued by its tangent: the square of e^300 is a number.
LARGEST_EXPONENT = 300.0


class CompiledLoss(NamedTuple):
    """A loss in compiled functions: its code, and the parameters of the code CLIPPED."""

    code: int
    width: float
    low: float
    high: float

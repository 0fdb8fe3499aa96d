"""The integer codes of the losses whose derivatives are compiled; importing them does not import numba."""

from typing import NamedTuple

# Names of losses for compiled code; their order means nothing.
SQUARED = 0
LOGISTIC = 1
SQUARED_HINGE = 2
CLIPPED = 3
POISSON = 4
# Beyond this output the exponential of the Poisson loss is continued by its tangent: the square of e^300 is finite.
LARGEST_EXPONENT = 300.0


class CompiledLoss(NamedTuple):
    """A loss in compiled functions: its code, and the parameters of the code CLIPPED."""

    code: int
    width: float
    low: float
    high: float

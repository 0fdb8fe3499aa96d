"""The integer codes of the losses whose derivatives are compiled; apart from these, so that asking needs no numba."""

__all__ = ["LOGISTIC", "SQUARED", "SQUARED_HINGE"]

SQUARED, LOGISTIC, SQUARED_HINGE = 0, 1, 2

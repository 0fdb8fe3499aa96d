"""The integer codes of the losses whose derivatives are compiled; importing them does not import numba."""

__all__ = ["LOGISTIC", "SQUARED", "SQUARED_HINGE"]

SQUARED, LOGISTIC, SQUARED_HINGE = 0, 1, 2

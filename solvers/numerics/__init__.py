"""Numerical routines that several algorithms share; they are independent of the oracles."""

"""Fits that are proven optimal, and the cost of the proofs and of the choice of units."""

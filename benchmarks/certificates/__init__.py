"""Fits that are proven optimal, and what the proofs and the choice of units cost."""

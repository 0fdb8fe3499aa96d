"""Implicit feedback: the convex problem behind alternating least squares, and the proof of its gap."""

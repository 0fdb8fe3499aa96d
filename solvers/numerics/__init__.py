"""Numerical parts that several algorithms share: nothing here knows an oracle."""

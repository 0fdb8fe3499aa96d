"""Epochs of coordinate descent, against other tools."""

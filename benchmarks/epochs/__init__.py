"""Epochs of coordinate descent, beside other tools."""

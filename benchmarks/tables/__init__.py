"""Estimators of tables against their alternatives, each at its defaults, over classes and numbers."""

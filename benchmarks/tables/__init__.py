"""Estimators of tables beside what a user would pick instead, each at its defaults, over classes and numbers."""

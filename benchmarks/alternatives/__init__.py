"""Accuracy, times and sizes, against SVMs, boosting and linear models."""

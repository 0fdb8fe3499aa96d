"""Accuracy, times and sizes, beside what a user would pick instead."""

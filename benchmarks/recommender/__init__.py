"""Recommender systems: ordinal models, kernels of one output, and a Bayesian peer."""

"""Helpers of the solvers: units drawn at random, and runs of mopn that benchopt watches."""

import sys

import numpy as np


def random_units(n_units, n_features, seed):
    """Return unit vectors (k, d)."""
    H = np.random.default_rng(seed).standard_normal((n_units, n_features))
    return H / np.linalg.norm(H, axis=1, keepdims=True)


def follow(problem, solver, callback, keep):
    """Run a solver of mopn until benchopt's callback says no more; ``keep`` takes every result."""
    import mopn

    def record(intermediate_result):
        keep(intermediate_result)
        if not callback():
            raise StopIteration

    mopn.minimize(problem, solver, tol=0, max_iter=sys.maxsize, callback=record)

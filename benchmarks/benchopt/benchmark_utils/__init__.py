"""What solvers share: units drawn at random."""

import numpy as np


def random_units(n_units, n_features, seed):
    """Return unit vectors (k, d)."""
    H = np.random.default_rng(seed).standard_normal((n_units, n_features))
    return H / np.linalg.norm(H, axis=1, keepdims=True)

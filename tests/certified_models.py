"""Networks at random for certificates of predictions, and numbers as fractions."""

from fractions import Fraction

import numpy as np

import mopn


def random_model(rng, d, m=3, k=4, **fields):
    """Return a network with a linear term whose classes meet near the origin."""
    H, V, W = rng.standard_normal((k, d)), rng.standard_normal((k, m)), rng.standard_normal((m, 1 + d))
    return mopn.Model(H, V, linear=W, classes=np.arange(max(m, 2)), **fields)


def rational(values):
    return np.vectorize(Fraction, otypes=[object])(values)

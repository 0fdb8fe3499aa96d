"""Models of tables with random numbers."""

import numpy as np

import mopn
from mopn.models.table import TableModel
from mopn.tables.learning import learn_encoding
from mopn.tables.reading import read_table


def table(n, seed):
    """Numbers, categories, a column without features, and numbers with missing values; columns depend on each other."""
    rng = np.random.default_rng(seed)
    size = rng.standard_normal(n)
    color = np.where(size > 0.5, "red", rng.choice(["red", "green", "blue"], n))
    age = np.where(rng.uniform(size=n) < 0.3, np.nan, rng.integers(0, 9, n) + size)
    return {"size": size, "color": color, "flat": np.full(n, 7.0), "age": age}


def network(X, *, kernel="homogeneous", outputs=3, augment=True, linear=True, **fields):
    """Return a model of tables such as X."""
    rng, encoding = np.random.default_rng(1), learn_encoding(read_table(X), curves=3, smoothness=1.0)
    d, dummies = encoding.n_features, {"homogeneous": 1, "anova": 2}[kernel] if augment else 0
    W = rng.standard_normal((outputs, 1 + d)) if linear else None
    H, V = rng.standard_normal((4, dummies + d)), rng.standard_normal((4, outputs))
    model = mopn.Model(H, V, kernel=kernel, augment=augment, offset=0.3, linear=W, **fields)
    return TableModel(model, encoding)

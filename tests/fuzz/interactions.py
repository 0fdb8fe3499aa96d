"""The strongest interactions of a model, beside the weights of all products of features."""

from __future__ import annotations

import itertools

import numpy as np

import mopn
from tests.fuzz.checks import require
from tests.fuzz.trial import Trial, pick

__all__ = ["all_interactions"]


def all_interactions(rng: np.random.Generator) -> Trial:
    """Return a search in a model, some or all of whose units may have no weight."""
    d, k, degree = int(rng.integers(3, 7)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    model = mopn.FactorizationModel(
        factors=rng.standard_normal((1, k, d)),
        degree=degree,
        kernel=pick(rng, ("anova", "homogeneous", "all-subsets")),
        lams=rng.standard_normal(k) * pick(rng, (1.0, 0.0, rng.integers(0, 2, k))),
    )
    count = int(rng.integers(1, 8))

    def run() -> None:
        groups = list(itertools.combinations(range(d), degree))
        weights = np.abs(mopn.interaction_weights(model, groups))
        found = mopn.strongest_interactions(model, count, degree)
        expected = sorted((weight for weight in weights if weight), reverse=True)[:count]
        close = len(found) == len(expected) and np.allclose([abs(item.weight) for item in found], expected, rtol=1e-9)
        require(close, f"{len(found)} interactions that are not the strongest")

    name = f"{model.kernel}, degree {degree}"
    return Trial("strongest_interactions", name, run, frozenset({"model", "degree"}), ())

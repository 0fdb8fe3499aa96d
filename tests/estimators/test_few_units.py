"""Classifiers of few units, whose refits end in poor local minima unless more units enter for a while.

Which of the good ones they end in, rounding errors do not choose.
"""

import numpy as np
import pytest

from mopn.estimators import MultiOutputPNClassifier


@pytest.mark.parametrize("seed", [3, 6, 8])
@pytest.mark.slow
def test_five_units_find_the_five_forms_that_made_the_classes(seed):
    """Exchanges of one unit alone end at half of the accuracy."""
    rng, H = np.random.default_rng(10 + seed), np.random.default_rng(1000 + seed).standard_normal((20, 5))
    X = rng.uniform(-1.0, 1.0, (13_000, 20)).astype(np.float32)
    made = np.argmax((X @ H) ** 2, axis=1)
    y = np.where(rng.random(len(X)) < 0.1, rng.integers(5, size=len(X)), made)
    classifier = MultiOutputPNClassifier(max_units=5, random_state=seed).fit(X, y)
    assert len(classifier.basis_) == 5
    assert classifier.score(X, y) > np.mean(made == y) - 0.05


@pytest.mark.parametrize(("norm", "units", "shape", "seed"), [("l1/l2", 10, (150, 8), 4), ("l1/linf", 3, (120, 5), 1)])
@pytest.mark.slow
def test_rounding_errors_do_not_choose_the_minimum(norm, units, shape, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    made = np.argmax((X @ rng.standard_normal((shape[1], 4))) ** 2, axis=1)
    y = np.where(rng.random(len(X)) < 0.3, rng.integers(4, size=len(X)), made)
    noise = 1.0 + 1e-13 * rng.standard_normal((4, *X.shape))
    found = [MultiOutputPNClassifier(max_units=units, norm=norm).fit(X * draw, y).objective_ for draw in noise]
    assert max(found) <= (1.0 + 1e-6) * min(found)

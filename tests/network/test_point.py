"""Networks as points of the convex problem."""

import numpy as np
import pytest
from networks import problem_of


def test_merging_parallel_units():
    problem = problem_of("l1/l2")
    rng = np.random.default_rng(4)
    h = rng.standard_normal((2, 5))
    basis = np.vstack([h, -h[0], h[1] + 1e-6 * rng.standard_normal(5)])
    weights = rng.standard_normal((4, 3))
    network = problem.start((basis, weights))
    merged = network.merge_parallel_units()
    assert merged.n_units == 2
    assert merged.outputs == pytest.approx(network.outputs, rel=1e-4, abs=1e-4)
    assert problem.norm.value(merged.weights) <= problem.norm.value(network.weights) * (1 + 1e-12)
    assert merged.features == pytest.approx(problem.maps.features(merged.basis))
    assert merged.merge_parallel_units() is merged

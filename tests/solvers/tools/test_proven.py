"""NaN proves nothing, whatever form a condition has."""

import math

import numpy as np
import pytest

from mopn.solvers.interface import Measure
from mopn.solvers.tools.proven import proven_lower, proven_upper


@pytest.mark.parametrize("value", [-math.inf, -1.0, 0.0, math.inf])
def test_numbers_stay_and_nan_is_the_worst(value):
    assert proven_lower(value) == proven_upper(value) == value
    bounds = np.array([value, np.nan])
    np.testing.assert_array_equal(proven_lower(bounds), [value, -np.inf])
    np.testing.assert_array_equal(proven_upper(bounds), [value, np.inf])


@pytest.mark.parametrize(
    "numbers", [(math.nan, 0.0, 0.0), (1.0, math.nan, 0.0), (1.0, 1.0, math.nan), (math.inf, 0.0, 0.0)]
)
def test_gaps_of_nan_are_not_proven(numbers):
    measure = Measure(*numbers)
    assert measure.gap == math.inf
    assert measure.proof == "none"

"""NaN proves nothing: neither as a bound nor in what is made of one."""

import math
from itertools import product

import numpy as np
import pytest

from mopn.solvers.interface import Measure
from mopn.solvers.tools.proven import proven_lower, proven_upper

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("as_given", [np.array, list, lambda values: np.array(values)[:, None]])
def test_nan_becomes_the_bound_that_says_nothing(as_given):
    given = as_given([1.0, NAN, -INF, INF])
    shape = np.shape(given)
    np.testing.assert_array_equal(proven_upper(given), np.reshape([1.0, INF, -INF, INF], shape))
    np.testing.assert_array_equal(proven_lower(given), np.reshape([1.0, -INF, -INF, INF], shape))
    assert (proven_upper(NAN), proven_lower(NAN), proven_upper(2.0), proven_lower(2.0)) == (INF, -INF, 2.0, 2.0)


@pytest.mark.parametrize("values", list(product([3.0, NAN], [1.0, NAN], [1e-9, NAN], [2.0, NAN])))
def test_gaps_are_known_only_if_all_that_they_are_made_of_is(values):
    fun, lower, rounding, restricted = values
    measure = Measure(fun, lower, rounding, restricted)
    assert math.isfinite(measure.gap) == (not any(map(math.isnan, values[:3])))
    assert measure.restricted_gap <= measure.gap
    assert not math.isnan(measure.restricted_gap)
    assert (measure.proof == "none") == math.isinf(measure.gap)

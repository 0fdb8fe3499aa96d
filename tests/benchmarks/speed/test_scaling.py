"""Growth with the data, on small fits."""

import numpy as np
import pytest

from benchmarks.speed import scaling


def test_exponents_are_slopes_of_the_largest_values():
    rows = [{"n": n, "seconds": 1e-3 * max(n, 100) ** 1.5} for n in (1, 100, 1000, 10_000)]
    assert scaling.exponent(rows, "n", "seconds") == pytest.approx(1.5)


def test_synthetic_data_have_all_classes_and_do_not_depend_on_the_number_of_rows():
    X, y = scaling.data(2500, 4, 5)
    np.testing.assert_array_equal(scaling.data(1000, 4, 5)[0], X[:1000])
    assert set(y) == set(range(5))

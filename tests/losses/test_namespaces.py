"""Arrays of other namespaces, moved and multiplied, against NumPy."""

import numpy as np
import pytest
from devices import LIBRARIES, on_device

from mopn.losses.namespaces import crossed, is_device_array, namespace, to_device, to_host, without_diagonal

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_arrays_move_there_and_back(library, dtype):
    array = RNG.integers(-9, 9, (4, 3)).astype(dtype)
    moved = on_device(library)(array)
    assert is_device_array(moved)
    for again in (moved, to_device(array, moved), to_device(np.broadcast_to(array, (4, 3)), moved)):
        np.testing.assert_array_equal(to_host(again), array)
        assert to_host(again).dtype == dtype
        assert str(again.device) == str(moved.device)
    # PyTorch knows no negative strides.
    np.testing.assert_array_equal(to_host(to_device(array[::-1], moved)), array[::-1])


def test_all_else_is_left_as_it_is():
    for value in (np.ones(2), [1.0, 2.0], None, 1.0, np.float64(1.0)):
        assert not is_device_array(value)
        assert to_host(value) is value
    assert namespace(np.ones(2)) is np


@pytest.mark.parametrize("library", LIBRARIES)
def test_strict_arrays_are_not_read_by_numpy(library):
    """Else the tests of this folder would not notice an array that is moved in passing."""
    moved = on_device(library)(np.ones(2))
    if library == "array_api_strict":
        with pytest.raises(RuntimeError, match="device1"):
            np.asarray(moved)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 10_000])
@pytest.mark.parametrize("k", [0, 2])
def test_crossed_products(library, n, k):
    A, B = RNG.standard_normal((n, k)), RNG.standard_normal((n, 3))
    move = on_device(library)
    np.testing.assert_allclose(to_host(crossed(move(A), move(B))), A.T @ B, rtol=1e-12, atol=1e-12 * n)
    np.testing.assert_array_equal(crossed(A, B), A.T @ B)


@pytest.mark.parametrize("library", LIBRARIES)
def test_sums_of_many_rows_in_single_precision_are_in_double(library):
    """A sum of float32 numbers near 1 ends at 2^24."""
    n = (1 << 24) + 8192
    ones = on_device(library)(np.ones((n, 1), np.float32))
    assert float(crossed(ones, ones)[0, 0]) == n


@pytest.mark.parametrize("library", [*LIBRARIES, "numpy"])
def test_without_diagonal(library):
    stack = RNG.standard_normal((2, 3, 3))
    found = without_diagonal(stack.copy() if library == "numpy" else on_device(library)(stack))
    np.testing.assert_array_equal(to_host(found), np.where(np.eye(3), 0.0, stack))

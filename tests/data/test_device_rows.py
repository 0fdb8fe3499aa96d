"""Rows on a device: sums, maps and designs against those of the same data in NumPy."""

import numpy as np
import pytest
from devices import LIBRARIES, on_device

from mopn.data import device_design
from mopn.data.designs import AugmentedDesign, DenseDesign, linear_design
from mopn.data.device_design import DeviceDesign
from mopn.data.device_rows import DeviceArray, DeviceRows
from mopn.data.feature_scaling import Coordinates
from mopn.data.losses_of_rows import Losses
from mopn.data.row_blocks import RowBlocks
from mopn.data.rows import ArrayRows
from mopn.data.rows_of_data import rows_of_data
from mopn.losses.namespaces import any_namespace, to_host

RNG = np.random.default_rng(0)
N, D, M = 23, 4, 3
X, Y, A = RNG.standard_normal((N, D)), RNG.standard_normal((N, M)), RNG.standard_normal((N, 2))
X[3:6, 1] = 0.0
WEIGHTS = RNG.uniform(0.5, 2.0, N)
COORDINATES = {
    "own": None,
    "scaled": Coordinates(None, np.array([1.0, 2.0, np.inf, 0.5])),
    "centered": Coordinates(X.mean(axis=0), np.ones(D)),
}
every_library = pytest.mark.parametrize("library", LIBRARIES)


def both(library, size=None, dtype=np.float64, coordinates=None, dummies=0):
    fit, data = Losses.of_data("squared", Y, N, WEIGHTS), X.astype(dtype)
    host = ArrayRows(DenseDesign(data), fit).in_coordinates(coordinates, dummies)
    device = DeviceRows(DeviceDesign(on_device(library)(data)), fit, size).in_coordinates(coordinates, dummies)
    return device, host


@any_namespace
def squares(block, array, H):
    return array.T @ block.design.project(H), float((array * array)[0, 0])


def host_squares(block, array, H):
    assert isinstance(array, np.ndarray)
    return array.T @ block.design.project(H), float((array * array)[0, 0])


@any_namespace
def projected(block, H):
    return block.design.project(H)


def host_projected(block, H):
    return block.design.project(H)


@every_library
def test_targets_and_weights_on_a_device_beside_rows_on_the_host(library):
    move = on_device(library)
    rows = rows_of_data(X, move(Y), "squared", move(WEIGHTS), move(A[:1, [0, 0, 1]]))
    np.testing.assert_array_equal(rows.losses.y, Y)
    np.testing.assert_array_equal(rows.losses.weights, WEIGHTS)
    with pytest.raises(TypeError, match=r"block 1 is a \w+\.\w+, and blocks are NumPy's"):
        RowBlocks([X, move(X)], np.vstack([Y, Y]))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_tensors_without_entries_are_refused(which):
    torch = pytest.importorskip("torch")
    parts = [torch.asarray(part) for part in (X, Y, WEIGHTS)]
    parts[which] = parts[which].to("meta")
    with pytest.raises(ValueError, match="has a shape and no entries"):
        rows_of_data(*parts[:2], "squared", parts[2], None)


@every_library
@pytest.mark.parametrize("size", [1, 5, 22, 23, 100])
@pytest.mark.parametrize("dummies", [0, 2])
@pytest.mark.parametrize("place", ["device", "host"])
def test_sums_and_maps(library, size, dummies, place):
    device, host = both(library, size, dummies=dummies)
    assert [block.rows.start for block in device.blocks] == list(range(0, N, size))
    H = RNG.standard_normal((5, D + dummies))
    along = DeviceArray(on_device(library)(A))
    function, mapped = (squares, projected) if place == "device" else (host_squares, host_projected)
    found, _ = device.sum(function, H, along=(along,))
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, host.sum(squares, H, along=(A,))[0], rtol=1e-12)
    array = device.map(mapped, H)
    assert array.shape == (N, 5)
    np.testing.assert_allclose(to_host(array.values), host.map(projected, H), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(device.crossed(along, array), A.T @ host.map(projected, H), rtol=1e-12, atol=1e-12)
    assert device.inner(along, along) == pytest.approx(np.sum(A**2), rel=1e-13)


@every_library
def test_what_is_kept_is_passed_along(library):
    device, _ = both(library, 7)
    device._host_size = 4
    kept = device.keep(lambda block, array: array.sum(), along=(DeviceArray(on_device(library)(A)),))
    assert len(kept) == 6
    assert device.sum(lambda block, part: part, along=(kept,)) == pytest.approx(A.sum())


@every_library
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dummies", [0, 2])
@pytest.mark.parametrize("coordinates", COORDINATES.values(), ids=COORDINATES)
def test_designs(library, dtype, dummies, coordinates):
    """Also of the rows of a block, and as the host gets it."""
    move = on_device(library)
    base = DenseDesign(X.astype(dtype))
    host = AugmentedDesign(base if coordinates is None else coordinates.view(base), dummies)
    device = DeviceDesign(move(X.astype(dtype)), coordinates, dummies)
    H, R, g = RNG.standard_normal((2, D + dummies)), RNG.standard_normal((N, 2)), RNG.standard_normal((N, 2))
    W = RNG.standard_normal((2, D + 1))
    for found, expected in (
        (device.project(move(H)), host.project(H)),
        (device.project_squares(move(H)), host.project_squares(H)),
        (device.adjoint(move(R)), host.adjoint(R)),
        (device.adjoint_squares(move(R)), host.adjoint_squares(R)),
        (device.grams(move(g)), host.grams(g)),
        (device.squared_norms, host.squared_norms),
        (device.squared_sizes, host.squared_sizes),
        (device.occurrences(move(WEIGHTS)), host.occurrences(WEIGHTS)),
        (device.largest, host.largest),
        (device.linear.project(move(W)), linear_design(host).project(W)),
        (device.rows(slice(3, 9)).project(move(H)), host.project(H)[3:9]),
        (device.taken(np.array([1, 7])).project(move(H)), host.project(H)[[1, 7]]),
        (device.host(slice(3, 9)).project(H), host.project(H)[3:9]),
        (device.linear.host(slice(3, 9)).adjoint(R[3:9]), linear_design(host).rows(slice(3, 9)).adjoint(R[3:9])),
    ):
        np.testing.assert_allclose(to_host(found), expected, rtol=1e-12, atol=1e-11)
    single = device.single()
    assert to_host(single.project(move(H.astype(np.float32)))).dtype == np.float32
    np.testing.assert_allclose(to_host(single.adjoint(move(R.astype(np.float32)))), host.adjoint(R), rtol=0, atol=1e-4)
    np.testing.assert_array_equal(single.host(slice(None)).matrix(), host.single().matrix())


@every_library
def test_numbers_of_the_data(library):
    device, host = both(library, 5, dummies=1)
    assert device.largest == host.largest
    assert device.largest_square == pytest.approx(host.largest_square, rel=1e-13)
    np.testing.assert_allclose(device.scales, host.scales, rtol=1e-12)
    np.testing.assert_allclose(device.squares, host.squares, rtol=1e-12)
    assert device.target_sums == pytest.approx(host.target_sums, rel=1e-12)


@every_library
def test_views(library):
    """A part, other precision and fixed outputs; those of all rows count passes together."""
    device, host = both(library, 5)
    H, O = RNG.standard_normal((2, D)), RNG.standard_normal((N, M))  # noqa: E741
    np.testing.assert_allclose(
        to_host(device.sample(0.5, 0).map(projected, H).values), host.sample(0.5, 0).map(projected, H), rtol=1e-12
    )
    fixed = DeviceArray(on_device(library)(O))
    zeros = np.zeros((N, M))
    expected = host.beside(O).sum(loss, along=(zeros,))
    for function in (loss, host_loss):
        assert device.beside(fixed).sum(function, along=(0.0 * fixed,)) == pytest.approx(expected, rel=1e-12)
    single = device.single().map(projected, H.astype(np.float32))
    assert to_host(single.values).dtype == np.float32
    assert device.passes == 3


@any_namespace
def loss(block, outputs):
    return block.losses.value(outputs)


def host_loss(block, outputs):
    return block.losses.value(outputs)


@every_library
def test_arithmetic_of_arrays_of_rows(library):
    array, other = DeviceArray(on_device(library)(A)), DeviceArray(on_device(library)(2.0 * A))
    matrix = RNG.standard_normal((2, 3))
    moved = array
    moved += 1.0
    for found, expected in (
        (array + other, 3.0 * A),
        (np.float64(2.0) * array - other, 0.0 * A),
        (-array / 4.0, -A / 4.0),
        (array @ matrix, A @ matrix),
        (moved, A + 1.0),
        (array[:, [1]], A[:, [1]]),
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(to_host(found.values), expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(to_host(array[3:5]), A[3:5])
    with pytest.raises(TypeError, match="on a device"):
        np.asarray(array)
    with pytest.raises(IndexError, match="columns alone"):
        array[3:5, [0]]
    with pytest.raises(TypeError):
        np.add.reduce(array)


@every_library
def test_no_more_than_small_blocks_are_fetched_and_only_if_they_are_read(library, monkeypatch):
    device, _ = both(library, 20)
    device._host_size, fetched = 4, []
    monkeypatch.setattr(device_design, "to_host", lambda array: fetched.append(array.shape[0]) or to_host(array))
    device.sum(lambda block: 1.0)
    assert fetched == []
    device.sum(lambda block: block.design.largest + block.design.squared_norms.sum())
    assert fetched == [4, 4, 4, 4, 4, 3]


@every_library
def test_an_error_in_a_block_ends_the_sum(library):
    device, _ = both(library, 5)
    with pytest.raises(ZeroDivisionError):
        device.sum(any_namespace(lambda block: 1 / 0))
    assert device.sum(lambda block: 1.0) == 1.0

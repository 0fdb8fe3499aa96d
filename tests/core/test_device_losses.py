"""Losses on a device against those of NumPy: every function that sums over the rows call."""

import numpy as np
import pytest
from devices import LIBRARIES, on_device
from own_losses import Huber

from mopn.core.datafit import DataFit
from mopn.core.device_fit import DeviceFit
from mopn.core.losses import LOSSES, Logistic
from mopn.core.namespaces import to_host

RNG = np.random.default_rng(0)
N, M = 30, 4
WEIGHTS = RNG.uniform(0.5, 2.0, N)
WEIGHTS[3] = 0.0
OFFSET = RNG.standard_normal((N, M))


class Doubled(Logistic):
    """A known class with another gradient."""

    def value_gradient(self, y, O):  # noqa: E741
        values, G = super().value_gradient(y, O)
        return 2.0 * values, 2.0 * G

    def smoothness(self, m):
        return 1.0

    def conjugate(self, y, G):
        return 2.0 * Logistic().conjugate(y, 0.5 * G)


ALL = [*LOSSES.values(), Huber(), Doubled()]


def targets(loss):
    if loss.targets == "labels":
        return np.concatenate([np.arange(M), RNG.integers(0, M, N - M)])
    if loss.targets == "counts":
        return RNG.integers(0, 5, (N, M))
    return RNG.standard_normal((N, M)) if loss.targets == "numbers" else np.sign(RNG.standard_normal((N, M)))


def close(found, expected, rtol=1e-12):
    found, expected = np.asarray(to_host(found)), np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * max(1.0, float(np.abs(expected).max())))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("size", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("parts", [(None, None), (WEIGHTS, OFFSET)], ids=["plain", "weights and offset"])
@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_all_functions_are_those_of_numpy(library, size, parts, loss):
    move = on_device(library)
    host = DataFit(loss, targets(loss), N, *parts)
    device = DeviceFit(host, move(np.zeros(1)))
    # Poisson's loss is an exponential of the outputs.
    size = min(size, 10.0) if loss.targets == "counts" else size
    O, D = size * RNG.standard_normal((N, M)), RNG.standard_normal((N, M))  # noqa: E741
    value, G = host.value_gradient(O)
    found, found_G = device.value_gradient(move(O))
    close(found, value)
    close(device.value(move(O)), value)
    close(found_G, G)
    scales = np.array([0.0, 0.3, 1.0])
    for of_device, of_host in zip(
        device.conjugates_and_sizes(move(G), move(scales)), host.conjugates_and_sizes(G, scales), strict=True
    ):
        # (1 - q) log(1 - q) near 0 and 1 errs by a few eps of what it is added to.
        close(of_device, of_host, 1e-11)
    assert device.max_scale(move(G)) == pytest.approx(host.max_scale(G), rel=1e-12)
    close(device.slope_size(move(G)), host.slope_size(G))
    close(device.squared_length(move(D)), host.squared_length(D))
    close(device.sample_weights, host.sample_weights)


@pytest.mark.parametrize("library", LIBRARIES)
def test_small_losses_keep_their_digits(library):
    """log(1 + e) for tiny e, in the classes' and in the binary logistic loss."""
    move = on_device(library)
    near, far = np.array([[50.0, 0.0], [0.0, 50.0]]), np.full((2, 1), 50.0)
    for name, y, outputs in (("logistic", [0, 1], near), ("binary-logistic", [1, 1], far)):
        host = DataFit(name, y, 2)
        value = host.value(outputs)
        assert 0 < value < 1e-20
        found = DeviceFit(host, move(np.zeros(1))).value(move(outputs))
        assert float(found) == pytest.approx(value, rel=1e-12)

"""Sums of losses over rows, on a device against those of NumPy."""

import numpy as np
import pytest
from devices import LIBRARIES, on_device
from own_losses import Huber

import mopn
from mopn.data.losses_of_rows import Losses
from mopn.losses.losses import LOSSES, Logistic
from mopn.losses.namespaces import to_host

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
    host = Losses.of_data(loss, targets(loss), N, *parts)
    device = host.on_device(move(np.zeros(1)))
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


def test_sums_over_blocks_have_what_sums_can_tell():
    """Nothing is inherited that would need the targets of all rows, and no Hessian."""
    X = RNG.standard_normal((N, 2))
    losses = mopn.NetworkProblem(mopn.RowBlocks(X, X[:, 0]), loss="squared", strength=1.0).losses
    assert not hasattr(losses, "hessian")
    assert not hasattr(losses, "y")
    with pytest.raises(TypeError, match="data in blocks is not held in memory"):
        _ = losses.in_memory

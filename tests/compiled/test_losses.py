"""Compiled derivatives are those of the losses, parameters included."""

import numpy as np
import pytest
from numba import njit

import mopn
from mopn.compiled.losses import derivative
from mopn.losses.losses import LOSSES

CODED = [loss for loss in LOSSES.values() if loss.code is not None]
# Compiled, as in the loops of which it is a part.
compiled_derivative = njit(lambda loss, y, output: derivative(loss, y, output))


@pytest.mark.parametrize("loss", [*CODED, mopn.Huber(0.3), mopn.Quantile(0.9, width=2.0)], ids=repr)
def test_derivatives_are_the_gradients(loss):
    rng = np.random.default_rng(0)
    outputs = np.append(4.0 * rng.standard_normal(40), [400.0, -400.0])
    y = rng.integers(4, size=42).astype(float) if loss.targets != "signs" else rng.choice([-1.0, 1.0], 42)
    expected = loss.value_gradient(y[:, None], outputs[:, None])[1][:, 0]
    found = [compiled_derivative(loss.compiled, *pair) for pair in zip(y, outputs, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)

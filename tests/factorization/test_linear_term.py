"""The linear term as a kernel of a higher degree: the same coefficients, by compiled functions of other terms."""

import numpy as np
import pytest
from scipy import sparse

import mopn.factorization.sweep_state as sweep_state
from mopn.data.designs import make_design
from mopn.data.losses_of_rows import Losses
from mopn.data.rows import ArrayRows
from mopn.data.sum_of_losses import SumOfLosses
from mopn.factorization.terms.linear import Linear


def make_data(dense, signs=False):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (60, 5)) * rng.integers(2, size=(60, 5)), rng.standard_normal(60)
    return X if dense else sparse.csr_array(X), np.sign(y) if signs else y


def coefficients(X, y, loss, degree):
    """w after three sweeps of the linear term alone."""
    design = make_design(X)
    losses = SumOfLosses(ArrayRows(design, Losses.of_data(loss, y, len(y), np.linspace(0.5, 2.0, len(y)))))
    term = Linear(design, 0.3, degree)
    at = term.start(np.random.default_rng(0))
    state = sweep_state.SweepState(losses, term.outputs(at), term.designs)
    for _ in range(3):
        for update in term.updates(at, state):
            update()
    return at["w"]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("loss", ["squared", "binary-logistic"])
@pytest.mark.parametrize("degree", [2, 3, 12])
def test_as_a_kernel_of_any_degree_it_has_the_same_coefficients(dense, loss, degree):
    data = make_data(dense, signs=loss != "squared")
    np.testing.assert_allclose(coefficients(*data, loss, degree), coefficients(*data, loss, 1), rtol=1e-14)

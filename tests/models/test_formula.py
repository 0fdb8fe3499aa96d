"""What models compute, against the definitions of the kernels: every kind, storage and size of blocks."""

import numpy as np
import pytest
from definitions import outputs_by_definition
from fitted_models import KINDS
from numpy.testing import assert_allclose
from scipy import sparse

import mopn
from mopn.data import designs
from mopn.data.designs import make_design

X = np.random.default_rng(0).uniform(-1, 1, (23, 4)) * (np.random.default_rng(1).uniform(size=(23, 4)) < 0.7)
STORAGES = (np.array, sparse.csr_array, sparse.csc_array, np.float32)
every_model = pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)


@every_model
def test_outputs_are_those_of_the_definition(model, monkeypatch):
    """Of many rows, in one block and in several, of single rows, and of rows of zeros but for one, in every storage."""
    many = X[:, : model.n_features].astype(np.float32).astype(float)
    zeros = np.zeros_like(many[:3])
    some = np.vstack([zeros[:1], 2.0 * np.eye(len(many[0]))[:1], zeros[:1]])
    for rows in (many, many[:1], many[1:2], zeros[:1], zeros, some):
        expected = [outputs_by_definition(model, x) for x in rows]
        for storage in STORAGES:
            assert_allclose(model.outputs(storage(rows)), expected, rtol=1e-11, atol=1e-11)
            assert_allclose(model._formula().outputs(make_design(storage(rows))), expected, rtol=1e-11, atol=1e-11)
    monkeypatch.setattr(designs, "CACHE_ENTRIES", 40)
    expected = [outputs_by_definition(model, x) for x in many]
    for storage in STORAGES:
        assert_allclose(model.outputs(storage(many)), expected, rtol=1e-11, atol=1e-11)


def test_the_kernel_of_higher_degree_does_not_cancel():
    """One large entry: A^3 is the product of three factors, of which sums of powers would leave nothing."""
    model = mopn.FactorizationModel(np.ones((1, 1, 3)), degree=3, lams=np.ones(1))
    assert_allclose(model.predict([[1e9, 1e-9, 1.0]]), [1.0], rtol=1e-14)

"""What models compute, against the definitions of the kernels: every kind, storage and size of blocks."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
from fitted_models import KINDS
from numpy.testing import assert_allclose
from scipy import sparse

import mopn
from mopn.data import designs
from mopn.data.designs import make_design

X = np.random.default_rng(0).uniform(-1, 1, (23, 4)) * (np.random.default_rng(1).uniform(size=(23, 4)) < 0.7)
STORAGES = (np.array, sparse.csr_array, sparse.csc_array, np.float32)
every_model = pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)


def subsets(z, degree):
    """The sum, over all sets of a number of entries, of their products."""
    return sum(prod(entries) for entries in combinations(z, degree))


def kernel_by_definition(model, degree, p, x):
    if model.kernel == "homogeneous":
        return (p @ x) ** degree
    if model.kernel == "all-subsets":
        return sum(subsets(p * x, t) for t in range(len(x) + 1))
    if model.theta is not None:
        return sum(theta * subsets(p * x, t) for t, theta in enumerate(model.theta, 1))
    return subsets(p * x, degree)


def lifted_by_definition(model, x):
    units = range(model.factors.shape[1])
    if model.kernel == "homogeneous":
        return sum(prod(U[s] @ x for U in model.factors) for s in units)
    A, B = model.factors
    pairs = list(combinations(range(len(x)), 2))
    return sum(0.5 * (A[s, i] * B[s, j] + A[s, j] * B[s, i]) * x[i] * x[j] for s in units for i, j in pairs)


def outputs_by_definition(model, x):
    """The outputs of a network or a factorization machine for one row, before any link."""
    if isinstance(model, mopn.Model):
        dummies = model.basis.shape[1] - model.n_features
        z, W = np.append(np.ones(dummies), x), model.linear
        values = [(h @ z) ** 2 if model.kernel == "homogeneous" else subsets(h * z, 2) for h in model.basis]
        linear = 0.0 if W is None else W @ np.append(1.0, x)
        return np.array(values) @ model.weights + linear + model.offset
    z = np.append(np.ones(model.dummies), x)
    if model.form == "lifted":
        units = lifted_by_definition(model, z)
    else:
        units = sum(
            lam * kernel_by_definition(model, model.degree - order, p, z)
            for order, P in enumerate(model.factors)
            for lam, p in zip(model.lams, P, strict=True)
        )
    return np.array([units + (0.0 if model.w is None else model.w @ x) + model.intercept])


@every_model
def test_outputs_are_those_of_the_definition(model, monkeypatch):
    """Many rows, in one block and in several, single rows, and rows of zeros except for one, in every storage."""
    many = X[:, : model.n_features].astype(np.float32).astype(float)
    zeros = np.zeros_like(many[:3])
    some = np.vstack([zeros[:1], 2.0 * np.eye(len(many[0]))[:1], zeros[:1]])
    for rows in (many, many[:1], many[1:2], zeros[:1], zeros, some):
        expected = [outputs_by_definition(model, x) for x in rows]
        for storage in STORAGES:
            assert_allclose(model.outputs(storage(rows)), expected, rtol=1e-11, atol=1e-11)
            assert_allclose(model.formula().outputs(make_design(storage(rows))), expected, rtol=1e-11, atol=1e-11)
    monkeypatch.setattr(designs, "CACHE_ENTRIES", 40)
    expected = [outputs_by_definition(model, x) for x in many]
    for storage in STORAGES:
        assert_allclose(model.outputs(storage(many)), expected, rtol=1e-11, atol=1e-11)


def test_the_kernel_of_higher_degree_does_not_cancel():
    """One large entry: A^3 is the product of three factors, of which sums of powers would leave nothing."""
    model = mopn.FactorizationModel(np.ones((1, 1, 3)), degree=3, lams=np.ones(1))
    assert_allclose(model.predict([[1e9, 1e-9, 1.0]]), [1.0], rtol=1e-14)

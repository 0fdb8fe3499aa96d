"""The outputs of models by the definitions of their kernels: products of features one by one."""

from itertools import combinations
from math import prod

import numpy as np

import mopn


def subsets(z, degree):
    """The sum over all sets of so many entries of their products."""
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
    pairs = [(i, j) for i in range(len(x)) for j in range(len(x)) if i < j]
    return sum(0.5 * (A[s, i] * B[s, j] + A[s, j] * B[s, i]) * x[i] * x[j] for s in units for i, j in pairs)


def products_of_pairs(z):
    """The sum of the products of all pairs of entries."""
    return sum(a * b for a, b in combinations(z, 2))


def outputs_by_definition(model, x):
    """The outputs of a network or a factorization machine for one row, before any link."""
    if isinstance(model, mopn.Model):
        dummies = model.basis.shape[1] - model.n_features
        z, W = np.append(np.ones(dummies), x), model.linear
        values = [(h @ z) ** 2 if model.kernel == "homogeneous" else products_of_pairs(h * z) for h in model.basis]
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

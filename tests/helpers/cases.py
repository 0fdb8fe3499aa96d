"""Every solver, with a problem that it solves."""

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.solvers import (
    FISTA,
    LBFGS,
    SGD,
    AdaGrad,
    AlternatingLeastSquares,
    ConditionalGradient,
    CoordinateDescent,
    FullRefit,
    InteriorPoint,
    PlainStep,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (50, 4))
Y = np.arange(50) % 3
X[np.arange(50), Y] *= 2.0


def network():
    return mopn.NetworkProblem(X, Y, strength=0.5)


def layer(norm="l1/l2"):
    return mopn.OutputLayerProblem(X**2, Y, norm=norm, strength=0.5)


def factorization():
    return mopn.FactorizationProblem(X, X[:, 0] * X[:, 1] + X[:, 2], n_components=2, fit_linear=True)


def implicit():
    return mopn.ImplicitProblem(sparse.csr_array(np.maximum(X, 0.0)), 0.5)


SOLVERS = {
    "conditional gradient": (network, ConditionalGradient()),
    "plain conditional gradient": (network, ConditionalGradient(refit="none")),
    "full conditional gradient": (network, ConditionalGradient(FullRefit(polish_iter=40))),
    "away steps": (network, ConditionalGradient(PlainStep(direction="away"))),
    "interior point": (layer, InteriorPoint()),
    "FISTA": (layer, FISTA()),
    "L-BFGS": (lambda: layer("squared-l2"), LBFGS()),
    "coordinate descent": (factorization, CoordinateDescent()),
    "SGD": (factorization, SGD()),
    "AdaGrad": (factorization, AdaGrad()),
    "alternating least squares": (implicit, AlternatingLeastSquares()),
}
every_solver = pytest.mark.parametrize(("make", "solver"), SOLVERS.values(), ids=SOLVERS)

"""Each type of the arguments of a compiled function is compiled anew, for seconds: arrays of the user have few."""

import importlib
import pkgutil

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from scipy import sparse

import mopn
import mopn.compiled
from mopn.compiled.coordinates import derivative
from mopn.compiled.jit import jit
from mopn.losses.losses import LOSSES
from mopn.solvers import LBFGS, SGD, ConditionalGradient, CoordinateDescent, FullRefit

RNG = np.random.default_rng(0)
DENSE = RNG.uniform(-1, 1, (40, 4))
SPARSE = sparse.random_array((40, 4), density=0.5, format="csr", random_state=RNG)
Y = RNG.standard_normal(40)
WEIGHTS = RNG.uniform(0.5, 2.0, 40)


def read_only(array):
    array = array.copy()
    for part in (array.data, array.indices, array.indptr) if sparse.issparse(array) else (array,):
        part.setflags(write=False)
    return array


def strided(array):
    return np.repeat(array, 2, axis=0)[::2]


def single(array):
    return array.astype(np.float32)


VECTORS = [read_only, strided, single, np.ndarray.tolist]
MATRICES = [
    (DENSE, [read_only, strided, np.asfortranarray, single]),
    (SPARSE, [read_only, sparse.csc_array, lambda X: read_only(sparse.csc_array(X)), sparse.coo_array, single]),
]


def compiled():
    """The number of types that each function called from Python has met."""
    modules = [module.name for module in pkgutil.iter_modules(mopn.compiled.__path__)]
    members = [vars(importlib.import_module(f"mopn.compiled.{name}")) for name in modules]
    return {
        (function.__module__, function.__name__): len(function.signatures)
        for names in members
        for function in names.values()
        if isinstance(function, Dispatcher) and "no_cpython_wrapper" not in function.targetoptions
    }


@pytest.mark.parametrize(("X", "forms"), MATRICES, ids=["dense", "sparse"])
@pytest.mark.parametrize("solver", [CoordinateDescent(), SGD(), LBFGS()], ids=["cd", "sgd", "lbfgs"])
def test_all_kinds_of_arrays_are_one(solver, X, forms):
    def fit(X, y=Y, sample_weight=WEIGHTS, offset=0.5 * Y):
        problem = mopn.FactorizationProblem(
            X, y, degree=2, n_components=2, fit_linear=True, sample_weight=sample_weight, offset=offset
        )
        mopn.minimize(problem, solver, tol=0, max_iter=1)

    fit(X)
    first = compiled()
    assert sum(first.values()) > 0
    for form in forms:
        fit(form(X))
    for form in VECTORS:
        fit(X, y=form(Y))
        fit(X, sample_weight=form(WEIGHTS))
        fit(X, offset=form(Y))
    fit(X, offset=0.5 * np.ones(1))
    assert compiled() == first


def test_networks_and_predictions():
    def fit(X, sample_weight=None):
        problem = mopn.NetworkProblem(X, np.arange(40) % 3, strength=1.0, sample_weight=sample_weight)
        mopn.minimize(problem, ConditionalGradient(refit=FullRefit(), max_units=2), max_iter=1)

    fit(SPARSE)
    first = compiled()
    for form in MATRICES[1][1]:
        fit(form(SPARSE))
    for form in VECTORS:
        fit(SPARSE, form(WEIGHTS))
    assert compiled() == first
    model = mopn.FactorizationModel(factors=np.ones((1, 2, 4)), degree=2, lams=np.ones(2), w=np.zeros(4))
    for X, forms in MATRICES:
        model.predict(X)
        first = compiled()
        for form in forms:
            model.predict(form(X))
        assert compiled() == first


@pytest.mark.parametrize(("X", "degree"), [(DENSE, 3), (SPARSE, 2)], ids=["dense", "sparse"])
def test_a_first_fit_compiles_a_sweep_for_each_degree_and_nothing_for_threads(X, degree):
    """A signature takes a second or two, which a new user waits for."""

    before = compiled()
    problem = mopn.FactorizationProblem(X, Y, degree=degree, n_components=2, fit_linear=True)
    mopn.minimize(problem, CoordinateDescent(), tol=0, max_iter=1)
    new = {name: count - before[key] for key, count in compiled().items() if (name := key[1]) and count > before[key]}
    assert new.pop("sweep_units", 0) <= 2
    assert all(count == 1 for count in new.values()), new
    assert not any(name.startswith("parallel") for name in new)


CODED = [loss for loss in LOSSES.values() if loss.code is not None]


@jit()
def compiled_derivative(loss, y, output):
    """As in the loops that contain it."""
    return derivative(loss, y, output)


@pytest.mark.parametrize("loss", [*CODED, mopn.Huber(0.3), mopn.Quantile(0.9, width=2.0)], ids=repr)
def test_derivatives_are_the_gradients(loss):
    rng = np.random.default_rng(0)
    outputs = np.append(4.0 * rng.standard_normal(40), [400.0, -400.0])
    y = rng.integers(4, size=42).astype(float) if loss.targets != "signs" else rng.choice([-1.0, 1.0], 42)
    expected = loss.value_gradient(y[:, None], outputs[:, None])[1][:, 0]
    found = [compiled_derivative(loss.compiled, *pair) for pair in zip(y, outputs, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)

"""The study of black-box optimisation: minima that are known, surrogates, searches, and the program."""

import itertools
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.blackbox.functions import FUNCTIONS
from benchmarks.blackbox.surrogates import SURROGATES


@pytest.mark.parametrize("name", FUNCTIONS)
def test_minima_are_known(name):
    function = FUNCTIONS[name](9)
    X = np.array(list(itertools.product([0.0, 1.0], repeat=function.d)))
    kept = np.all([X[:, group].sum(axis=1) == 1 for group in map(list, function.one_hot)], axis=0)
    X = X[kept] if function.one_hot else X
    assert function.minimum == pytest.approx(function(X).min(), rel=1e-12)
    x = function.draw(np.random.default_rng(0))
    assert (x == X).all(axis=1).any()


@pytest.mark.parametrize("method", [name for name, kind in SURROGATES.items() if kind is not None])
def test_surrogates_are_what_they_predict(method):
    if method == "adam" and find_spec("torch") is None:
        pytest.skip("the machine needs torch, which no extra has")
    X = np.random.default_rng(0).integers(0, 2, (60, 6)).astype(float)
    surrogate = SURROGATES[method](0)
    for count in (40, 60):
        surrogate.fit(X[:count], X[:count, 0] * X[:count, 1] - X[:count, 2])
    weights, offset = surrogate.qubo([])
    values = offset + sum(weight * X[:, i] * X[:, j] for (i, j), weight in weights.items())
    np.testing.assert_allclose(values, surrogate.predict(X), rtol=1e-4, atol=1e-4)

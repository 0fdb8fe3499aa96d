"""Outputs as QUBO problems: against the model on all rows of 0 and 1, against dimod, and constraints by enumeration."""

import itertools

import dimod
import fitted_models
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mopn
from mopn.estimators import FactorizationMachineRegressor, MultiOutputFMRegressor, MultiOutputPNRegressor
from mopn.export import to_qubo

QUADRATIC = {name: model for name, model in fitted_models.KINDS.items() if getattr(model, "degree", 2) <= 2}
del QUADRATIC["all subsets"]
ALONE = {name: model for name, model in QUADRATIC.items() if model.link != "softmax"}


def rows(d):
    """All of {0, 1}^d."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=d)))


def values(qubo, X):
    """The function at some rows, term by term."""
    return qubo.offset + sum(weight * X[:, i] * X[:, j] for (i, j), weight in qubo.weights.items())


def from_parts(H, v, W):
    return mopn.Model(np.array(H, float), np.array(v, float)[:, None], linear=np.array([W], float))


@pytest.mark.parametrize("name", ALONE)
def test_the_function_is_the_output(name):
    model = ALONE[name]
    X = rows(model.n_features)
    outputs = model.outputs(X)
    for output in range(outputs.shape[1]):
        qubo = to_qubo(model, X, output=output)
        for found in (values(qubo, X), qubo.offset + ((X @ qubo.matrix()) * X).sum(axis=1)):
            np.testing.assert_allclose(found, outputs[:, output], rtol=1e-12, atol=1e-12 * np.abs(outputs).max())


@pytest.mark.parametrize("name", ALONE)
def test_it_is_in_the_convention_of_dimod(name):
    model = ALONE[name]
    weights, offset = qubo = to_qubo(model, output=0)
    bqm = dimod.BinaryQuadraticModel.from_qubo(*qubo)
    assert list(bqm.variables) == list(range(model.n_features))
    X = rows(model.n_features)
    np.testing.assert_allclose(bqm.energies(X.astype(np.int8)), values(qubo, X), rtol=1e-12, atol=1e-12)
    theirs, their_offset = bqm.to_qubo()
    assert {tuple(sorted(pair)): weight for pair, weight in theirs.items()} == weights
    assert their_offset == offset


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("estimator", [MultiOutputPNRegressor, MultiOutputFMRegressor, FactorizationMachineRegressor])
def test_estimators_have_it(estimator, storage):
    X = rows(6)
    y = 1.0 + X[:, 0] * X[:, 1] - 2.0 * X[:, 2] * X[:, 5] + X[:, 3]
    fitted = estimator().fit(storage(X), y)
    np.testing.assert_allclose(values(to_qubo(fitted, storage(X)), X), fitted.predict(X), rtol=1e-9, atol=1e-9)


def test_a_combination_of_outputs_of_a_softmax():
    model = QUADRATIC["labels"]
    X = rows(model.n_features)
    P = model.predict_proba(X)
    qubo = to_qubo(mopn.FactorizationModel.from_outputs(model, [1, -1, 0]))
    np.testing.assert_allclose(values(qubo, X), np.log(P[:, 0] / P[:, 1]), rtol=1e-9, atol=1e-9)


@settings(deadline=None)
@given(st.data())
def test_default_penalties_suffice_for_groups_apart(data):
    """Weights are whole numbers, so ties are frequent, and values are exact but for the margin of the penalty."""
    d, k = 6, data.draw(st.integers(0, 3))
    whole = st.integers(-3, 3)
    H, v = ([data.draw(st.lists(whole, min_size=size, max_size=size)) for _ in range(k)] for size in (d, 1))
    model = from_parts(np.reshape(H, (k, d)), np.reshape(v, k), data.draw(st.lists(whole, min_size=7, max_size=7)))
    order = data.draw(st.permutations(range(d)))
    groups = data.draw(st.sampled_from([[order], [order[:2], order[2:5]], [order[:1], order[1:3], order[3:]]]))
    check_minimum(model, groups)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("seed", range(5))
def test_default_penalties_suffice_for_assignments(seed, scale):
    """Every worker has one job and every job one worker: groups that share features."""
    rng = np.random.default_rng(seed)
    H = rng.integers(-3, 4, (4, 9))
    model = from_parts(H, scale * rng.integers(-3, 4, 4), scale * rng.integers(-5, 6, 10))
    cells = np.arange(9).reshape(3, 3)
    check_minimum(model, [*cells, *cells.T])


def check_minimum(model, groups):
    """All minimisers satisfy the constraints, and minimise the output among the rows that do."""
    X = rows(model.n_features)
    kept = np.all([X[:, list(group)].sum(axis=1) == 1 for group in groups], axis=0)
    outputs, found = model.outputs(X)[:, 0], values(to_qubo(model, one_hot=groups), X)
    assert found[kept].min() < found[~kept].min()
    size = 1e-12 * np.abs(found).max()
    np.testing.assert_allclose(found[kept], outputs[kept], rtol=0, atol=size)
    assert outputs[np.argmin(found)] <= outputs[kept].min() + size


def test_the_bound_of_the_default_penalty_is_attained():
    """Of -x_0 - x_1 breaking the constraint gains 1, so a penalty of 1 would leave a tie."""
    model = from_parts(np.zeros((0, 2)), [], [0.0, -1.0, -1.0])
    assert values(to_qubo(model, one_hot=[(0, 1)], penalty=1.0), rows(2)).tolist() == [1.0, -1.0, -1.0, -1.0]
    check_minimum(model, [(0, 1)])
    free = from_parts(np.zeros((0, 2)), [], np.zeros(3))  # nothing to gain, but a tie
    check_minimum(free, [(0, 1)])


def test_groups_of_names():
    X = pd.DataFrame(rows(3), columns=["a", "b", "c"])
    fitted = MultiOutputPNRegressor().fit(X, X["a"] - X["b"] * X["c"])
    assert to_qubo(fitted, X, one_hot=[("c", "a")]) == to_qubo(fitted, one_hot=[(0, 2)])
    with pytest.raises(ValueError, match=r"one_hot must be tuples of distinct indices below 3, or of names; got \['d'"):
        to_qubo(fitted, one_hot=[["d", "a"]])
    X.loc[4, "b"] = 0.5
    with pytest.raises(ValueError, match=r"feature 1 \('b'\) of X is 0.5: fit the model to indicators"):
        to_qubo(fitted, X)


@pytest.mark.parametrize("name", sorted(fitted_models.KINDS.keys() - QUADRATIC.keys() - {"no factors"}))
def test_higher_degrees_are_refused(name):
    with pytest.raises(ValueError, match="a QUBO is of degree 2, but the model has products of three features or more"):
        to_qubo(fitted_models.KINDS[name], output=0)


def test_errors():
    model, table = ALONE["several"], fitted_models.TABLES["categories"]
    with pytest.raises(ValueError, match="output must be an integer from 0 to 1, got None"):
        to_qubo(model)
    for output in (-1, 2, True, 1.0, "a"):
        with pytest.raises(ValueError, match=f"output must be an integer from 0 to 1, got {output!r}"):
            to_qubo(model, output=output)
    with pytest.raises(
        ValueError, match=r"model: its classes have 3 outputs, and to_qubo takes one; give .*\[1, -1, 0\]"
    ):
        to_qubo(QUADRATIC["labels"], output=0)
    with pytest.raises(TypeError, match="the features of a table's columns are curves and centered indicators"):
        to_qubo(table, output=0)
    for X in (np.full((1, 4), -1.0), sparse.csr_array(np.full((1, 4), 2.0))):
        with pytest.raises(ValueError, match="features that are 0 or 1, but feature 0 of X is"):
            to_qubo(model, X, output=0)
    stored_zero = sparse.csr_array(([1.0, 0.0], ([0, 0], [1, 2])), shape=(1, 4))
    assert to_qubo(model, stored_zero, output=0) == to_qubo(model, output=0)
    with pytest.raises(ValueError, match="X has 3 features, but the model was trained with 4"):
        to_qubo(model, np.zeros((1, 3)), output=0)
    for one_hot in (3, [0, 1], [(0, 0)], [(0, 4)], [()]):
        with pytest.raises(ValueError, match="one_hot must be tuples of distinct indices below 4, or of names"):
            to_qubo(model, output=0, one_hot=one_hot)
    with pytest.raises(ValueError, match="penalty must be a finite number > 0"):
        to_qubo(model, output=0, one_hot=[(0, 1)], penalty=0.0)
    with pytest.raises(ValueError, match="penalty is for the constraints in one_hot"):
        to_qubo(model, output=0, penalty=1.0)
    with pytest.raises(ValueError, match="the weights overflow"):
        to_qubo(from_parts([[1e200, 1.0]], [1.0], np.zeros(3)))

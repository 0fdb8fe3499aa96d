"""Models: what predict returns, fields that do not fit together, data that do not fit, and levels that cross."""

import doctest
from dataclasses import replace

import numpy as np
import pytest
from fitted_models import MODELS, network
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from properties import examples
from scipy import sparse
from scipy.special import expit, softmax
from table_models import network as table_network
from table_models import table

import mopn
from mopn.data import designs
from mopn.models import multi_output as model_module
from mopn.models.base import cumulative_targets, expected_level, level_probabilities

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (23, 4))


# -- what predict returns ---------------------------------------------------------------------------------------------


def test_predictions_of_every_target():
    outputs, single = network().outputs(X), network(1).outputs(X)[:, 0]
    labels = np.array(["a", "b", "c"])
    assert_array_equal(network(classes=labels).predict(X), labels[np.argmax(outputs, axis=1)])
    assert_array_equal(network().predict(X), outputs)
    indicator = network(target="indicator").predict(X)
    assert_array_equal(indicator, outputs > 0)
    assert indicator.dtype.kind == "i"
    assert set(np.sign(single)) == {-1.0, 1.0}
    assert_array_equal(network(1, target="vector").predict(X), single)
    assert_array_equal(network(1, classes=np.array([7, 5])).predict(X), np.where(single > 0, 5, 7))


def test_probabilities_of_every_target():
    outputs, single = network().outputs(X), network(1).outputs(X)[:, 0]
    labels = np.arange(3)
    assert_allclose(network(link="softmax", classes=labels).predict_proba(X), softmax(outputs, axis=1))
    assert_allclose(network(link="logistic", target="indicator").predict_proba(X), expit(outputs))
    rest = expit(outputs)
    normalised = network(link="logistic", classes=labels).predict_proba(X)
    assert_allclose(normalised, rest / rest.sum(axis=1, keepdims=True))
    two = network(1, link="logistic", classes=np.array([0, 1])).predict_proba(X)
    assert_allclose(two, np.column_stack([expit(-single), expit(single)]))


def test_probabilities_of_one_class_against_the_rest_survive_extreme_outputs():
    model = network(2, link="logistic", classes=np.array([0, 1]), offset=np.array([-2000.0, -2001.0]))
    model = mopn.Model(0 * model.basis, model.weights, link=model.link, classes=model.classes, offset=model.offset)
    assert_allclose(model.predict_proba(X), np.tile(expit([1.0, -1.0]), (23, 1)))


def test_without_a_link_there_are_no_probabilities():
    with pytest.raises(TypeError, match=r"no link .* not a probability model; use loss='logistic'"):
        network().predict_proba(X)


# -- from a result ----------------------------------------------------------------------------------------------------


def solve(**options):
    y = np.where(X[:, 0] * X[:, 1] > 0, 2.0, -1.0)
    problem = mopn.NetworkProblem(X, y, **{"norm": "l1", "strength": 0.5, "loss": "squared", **options})
    return problem, mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-2)


def test_from_result_keeps_kernel_offset_and_augmentation():
    problem, result = solve(kernel="anova", augment=True, offset=[0.25])
    model = mopn.Model.from_result(problem, result)
    assert_allclose(
        model.outputs(X), problem.network(result.basis, result.weights).features @ result.weights + 0.25, rtol=1e-12
    )
    assert (model.kernel, model.augment, model.link, model.target) == ("anova", True, None, "outputs")
    result.basis[:] = 0
    assert model.basis.any()


def test_from_result_has_the_classes_of_the_problem_or_those_given():
    model = mopn.Model.from_result(*solve(loss="logistic"))
    assert_array_equal(model.classes, [-1.0, 2.0])
    assert set(model.predict(X)) <= {-1.0, 2.0}
    model = mopn.Model.from_result(*solve(), classes=["no", "yes"], target="labels")
    assert_array_equal(model.predict(X) == "yes", model.outputs(X)[:, 0] > 0)


def test_an_offset_that_differs_between_samples_cannot_be_part_of_a_model():
    problem, result = solve(offset=np.arange(23.0)[:, None])
    with pytest.raises(ValueError, match="offset differs between samples"):
        mopn.Model.from_result(problem, result)


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": np.zeros((4, 3))}, r"basis must be \(k, d\) and weights \(k, m\)"),
        ({"basis": np.zeros(5)}, r"basis must be \(k, d\)"),
        ({"basis": np.zeros((5, 1)), "augment": True}, "no columns besides the dummies"),
        ({"offset": np.zeros(2)}, r"offset must be a number or of shape \(3,\)"),
        ({"target": "vector"}, "for a single output, got 3"),
        ({"target": "labels"}, r"need classes of shape \(3,\), got None"),
        ({"classes": np.arange(4)}, r"need classes of shape \(3,\), got \(4,\)"),
        ({"weights": np.zeros((5, 1)), "classes": np.arange(1)}, r"labels from 1 outputs need classes of shape \(2,\)"),
        ({"basis": [[1.0], [1.0, 2.0]]}, "basis must be an array"),
        ({"basis": np.full((5, 4), np.nan)}, "basis contains NaN or infinity"),
        ({"basis": np.full((5, 4), np.longdouble("1e4000"))}, "basis contains NaN or infinity"),
        ({"weights": np.ones((5, 0))}, "weights of shape .* have no output"),
        ({"linear": np.ones(5)}, r"linear must have shape \(3, 5\)"),
        ({"linear": np.full((3, 5), -np.inf)}, "linear contains NaN or infinity"),
        ({"feature_names": [1, 2, 3, 4]}, "feature_names must be strings, got 1"),
        ({"classes": np.ones((3, 1))}, "classes must be an array of labels of shape .*, got shape"),
        ({"classes": np.array([0.0, 1.0, np.nan])}, "classes contains NaN or infinity"),
        ({"classes": np.array(list("abcd")), "target": "ordinal"}, "ordered levels must be ascending numbers"),
        ({"classes": np.array([1.0, 1.0, 2.0, 3.0]), "target": "ordinal"}, "ordered levels must be ascending numbers"),
        ({"classes": np.arange(3.0), "target": "ordinal"}, r"3 outputs of ordered levels need classes of shape \(4,\)"),
    ],
)
def test_fields_that_do_not_fit_together_or_are_of_another_type(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mopn.Model(**{"basis": np.zeros((5, 4)), "weights": np.zeros((5, 3)), **options})


def test_numbers_of_another_type_are_the_same_model():
    """Squares of small integers would wrap round, and kernels take floats."""
    basis, weights = np.array([[100, 100], [3, -3]]), np.array([[1], [2]])
    expected = mopn.Model(basis.astype(float), weights.astype(float), kernel="anova").outputs(X[:, :2])
    for dtype in (np.int8, np.float32, ">f8", np.longdouble):
        model = mopn.Model(basis.astype(dtype), weights.astype(dtype), kernel="anova", offset=np.int8(0))
        assert model.basis.dtype == np.float64
        assert_array_equal(model.outputs(X[:, :2]), expected)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (X[:, :3], ValueError, "X has 3 features, but the model was trained with 4"),
        (sparse.coo_array(X[:, :3]), ValueError, "X has 3 features, but the model was trained with 4"),
        (X[:0], ValueError, "X is empty"),
        (np.where(X > 0.9, np.nan, X), ValueError, "X contains NaN or infinity"),
        (sparse.csc_array(np.where(X > 0.9, np.inf, X)), ValueError, "X contains NaN or infinity"),
        (X[0], ValueError, "X must be two-dimensional"),
        ([["a", "b", "c", "d"]], TypeError, "X must be numeric"),
        (X + 0j, TypeError, "X must hold real numbers, got dtype complex128"),
        (sparse.csr_array(X + 0j), TypeError, "X must hold real numbers, got dtype complex128"),
        (X.astype("M8[s]"), TypeError, "X must hold real numbers, got dtype datetime64"),
    ],
)
@pytest.mark.parametrize("model", [MODELS["labels"], MODELS["direct"], MODELS["lifted"]])
def test_data_that_do_not_fit_the_model(model, bad, error, message):
    with pytest.raises(error, match=message):
        model.predict(bad)


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array])
@pytest.mark.parametrize("model", [MODELS[name] for name in MODELS if name != "no units"])
def test_outputs_that_overflow_are_no_predictions(model, storage):
    """Else NaN is the first of the classes."""
    rows = RNG.uniform(-1, 1, (3, model.n_features))
    rows[1] *= 1e200
    for predict in (model.predict, model.outputs, model.predict_proba if model.link else model.predict):
        with pytest.raises(ValueError, match=r"outputs of row 1 of X overflow.*scale X as in training"):
            predict(storage(rows))
    rows[1] *= 1e-160
    assert np.isfinite(model.outputs(storage(rows))).all()


def test_probabilities_of_outputs_whose_differences_overflow():
    model = network(3, k=0, link="softmax", classes=np.arange(3), offset=np.array([-1.7e308, 1.7e308, 0.0]))
    assert_array_equal(model.predict_proba(X), np.tile([0.0, 1.0, 0.0], (23, 1)))


@pytest.mark.parametrize("model", [MODELS["labels"], MODELS["lifted"]])
def test_predictions_need_no_large_block_of_memory(model, monkeypatch):
    outputs, allocate = model.outputs(X), np.empty

    def refuse(shape, *args, **options):
        if np.prod(shape) > 1 << 20:
            raise MemoryError
        return allocate(shape, *args, **options)

    monkeypatch.setattr(np, "empty", refuse)
    monkeypatch.setattr(designs, "CACHE_ENTRIES", 50)
    assert_allclose(model.outputs(X), outputs, rtol=1e-13)


def test_examples():
    assert doctest.testmod(model_module).failed == 0


# -- ordinal McRank: targets of levels, log-odds and probabilities that cross ------------------------------------------


def test_targets_of_levels():
    np.testing.assert_array_equal(cumulative_targets(np.array([0, 1, 2]), 3), [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])


@examples(50)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8))
def test_probabilities_that_cross_are_put_in_order(seed, m, n):
    rng = np.random.default_rng(seed)
    cumulative, levels = rng.uniform(size=(n, m)), np.sort(rng.standard_normal(m + 1))
    P = level_probabilities(cumulative)
    assert P.min() >= 0.0
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.cumsum(P, axis=1)[:, :-1], np.sort(cumulative, axis=1), atol=1e-14)
    # Equally spaced levels: the paper's formula, whatever crosses.
    equal = 1.0 + np.arange(m + 1)
    raw = np.diff(cumulative, axis=1, prepend=0.0, append=1.0) if n else None
    np.testing.assert_allclose(expected_level(cumulative, equal), raw @ equal, rtol=1e-12)
    # Putting in order is never further from any increasing truth.
    truth = np.sort(rng.uniform(size=(n, m)), axis=1)
    before, after = (np.abs(C - truth).sum(axis=1) for C in (cumulative, np.sort(cumulative, axis=1)))
    assert np.all(after <= before + 1e-12)
    found = expected_level(cumulative, levels)
    assert np.all((found >= levels[0] - 1e-12) & (found <= levels[-1] + 1e-12))


def test_a_model_of_a_table_begins_with_its_rows_columns_and_classes():
    model = table_network(table(30, 0), link="softmax", classes=np.array(["a", "b", "c"]), target="labels")
    shown = "TableModel(rows=30, columns=4 (3 of numbers, 1 of categories), classes=['a', 'b', 'c'], "
    assert repr(model).startswith(shown)
    assert repr(model).count("classes=") == 1
    assert repr(replace(model, encoding=replace(model.encoding, training=None))).startswith("TableModel(columns=4 ")

"""ONNX graphs, run by onnxruntime, against the models."""

import json

import numpy as np
import pytest
from fitted_models import KINDS, NUMBER_ROWS, TABLE_ROWS, TABLES, factors, network, quietly
from numpy.testing import assert_allclose, assert_array_equal

from mopn.export import to_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

X = np.random.default_rng(0).uniform(-1, 1, (100, 4))
TOLERANCES = {"float32": 1e-4, "float64": 1e-11}
every_model = pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)
every_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


def run(graph, X):
    """Return the outputs of a graph by name, after a complete check."""
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.get_outputs()
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
    return dict(zip([output.name for output in outputs], session.run(None, {"X": X.astype(kind)}), strict=True))


@every_dtype
@every_model
def test_a_graph_returns_what_the_methods_return(model, dtype):
    rows, tolerance = X[:, : model.n_features].astype(np.float32).astype(float), TOLERANCES[dtype]
    found, expected = run(to_onnx(model, dtype=dtype), rows), model.predict(rows)
    assert found["prediction"].shape == expected.shape
    if model.target in ("labels", "indicator"):
        assert_array_equal(found["prediction"], expected)
    else:
        assert_allclose(found["prediction"], expected, rtol=tolerance, atol=tolerance)
    assert ("probabilities" in found) == model.has_probabilities
    assert ("outputs" in found) == (model.target in ("labels", "indicator", "ordinal") or model.predicts_means)
    for name, method in (("probabilities", model.predict_proba), ("outputs", model.outputs)):
        if name in found:
            assert_allclose(found[name], method(rows), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rows", [0, 1])
def test_any_number_of_rows(rows):
    assert run(to_onnx(KINDS["labels"]), X[:rows])["probabilities"].shape == (rows, 3)


@every_dtype
def test_probabilities_of_extreme_outputs(dtype):
    """One class against the rest, whose probabilities all underflow, and classes whose exponentials overflow."""
    for link, offset in (("logistic", [-2000.0, -2001.0]), ("softmax", [2001.0, 2000.0])):
        model = network(2, k=0, link=link, classes=np.array([0, 1]), offset=np.array(offset))
        P = run(to_onnx(model, dtype=dtype), X)["probabilities"]
        assert_allclose(P, model.predict_proba(X), rtol=1e-4)
        assert P.min() > 0.2


@pytest.mark.parametrize(
    "labels",
    [np.array(["2020-01-01", "2020-01-02", "1066-10-14"], dtype="M8[D]"), np.array([b"a", b"b", b"c"])],
    ids=["dates", "bytes"],
)
def test_labels_without_a_type_in_onnx(labels):
    with pytest.raises(TypeError, match=r"ONNX has no labels of dtype .*; use strings or integers"):
        to_onnx(network(classes=labels))


def test_numbers_beyond_float32():
    model = factors(degree=2, intercept=1e300)
    with pytest.raises(ValueError, match="numbers beyond float32; use dtype='float64'"):
        to_onnx(model)
    assert_allclose(run(to_onnx(model, dtype="float64"), X)["prediction"], 1e300)


def test_what_cannot_be_written():
    with pytest.raises(ValueError, match="dtype must be one of 'float32', 'float64', got 'float16'"):
        to_onnx(network(), dtype="float16")
    levels = network(2, target="ordinal", classes=np.arange(3.0))
    with pytest.raises(TypeError, match=r"ordered levels has no link.*link='logistic'"):
        to_onnx(levels)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-3), ("float64", 1e-6)])
def test_a_fitted_model_of_digits(digits_model, dtype, tolerance):
    model, rows = digits_model
    found = run(to_onnx(model, dtype=dtype), rows)
    assert_allclose(found["outputs"], model.outputs(rows), atol=tolerance)
    assert_allclose(found["probabilities"], model.predict_proba(rows), atol=tolerance)
    assert np.mean(found["prediction"] == model.predict(rows)) == 1.0


# -- tables ------------------------------------------------------------------------------------------------------------


def run_columns(graph, columns):
    """Return the outputs of a graph with an input for every column, missing texts as empty ones."""
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(string)": object}
    given = {}
    for value, cells in zip(session.get_inputs(), columns.values(), strict=True):
        kind = kinds[value.type]
        given[value.name] = np.array([[(cell or "") if kind is object else cell] for cell in cells], kind)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, given), strict=True)), list(given)


@every_dtype
def test_a_table_of_numbers_is_one_input(dtype):
    """float32 and float64 agree to the same digits as for features."""
    model, tolerance = TABLES["numbers"], TOLERANCES[dtype]
    rows = np.array(list(NUMBER_ROWS.values()), float).T
    found, expected = run(to_onnx(model, dtype=dtype), rows), model.outputs(rows)
    assert_allclose(found["outputs"], expected, atol=tolerance * np.abs(expected).max())
    assert_array_equal(found["prediction"], model.predict(rows))


@every_dtype
def test_columns_of_a_table_are_inputs_of_their_names(dtype):
    model, tolerance = TABLES["categories"], TOLERANCES[dtype]
    with pytest.warns(UserWarning, match="'prediction' is 'prediction_'"):
        graph = to_onnx(model, dtype=dtype)
    found, names = run_columns(graph, TABLE_ROWS)
    expected = quietly(model.outputs, TABLE_ROWS)
    assert_allclose(found["outputs"], expected, atol=tolerance * np.abs(expected).max())
    assert_array_equal(found["prediction"], quietly(model.predict, TABLE_ROWS))
    # The name of an output is taken; the metadata have the column's.
    assert names == ["prediction_" if column == "prediction" else column for column in TABLE_ROWS]
    assert json.loads(graph.metadata_props[0].value) == list(TABLE_ROWS)

"""SHAP values in exports: those of C and of ONNX are those of Python."""

import json

import numpy as np
import pytest
from c_library import COMPILER, REALS, c_rows, call, compiled
from fitted_models import KINDS, NUMBER_ROWS, SECOND, TABLE_ROWS, TABLES, quietly
from numpy.testing import assert_allclose

BACKGROUND = np.random.default_rng(1).uniform(-1, 1, (30, 4))
X = np.random.default_rng(0).uniform(-1, 1, (40, 4))
TOLERANCES = {"float32": 1e-4, "float64": 1e-11, "int16": 1e-2}
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
every_table = pytest.mark.parametrize(("kind", "columns"), [("numbers", NUMBER_ROWS), ("levels", TABLE_ROWS)])


def library(folder, model, dtype, background):
    """The functions of a header with SHAP values."""
    model.to_c(folder / "model.h", dtype=dtype, background=background)
    real = REALS[dtype][0]
    return compiled(
        folder,
        '#include "model.h"\n'
        f"void shap(const {real} *x, {real} *phi) {{ model_shap_values(x, phi); }}\n"
        f"void outputs(const {real} *x, {real} *out) {{ model_outputs(x, out); }}\n"
        f"void base(const {real} *x, {real} *out) {{ out[0] = x ? model_base_values[0] : 0; }}\n"
        "int test(void) { return model_self_test(); }\n",
    )


@needs_compiler
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("kind", SECOND)
def test_c(tmp_path, kind, dtype):
    model, real, tolerance = KINDS[kind], REALS[dtype][1], TOLERANCES[dtype]
    d = model.n_features
    rows, background = X[:, :d].astype(real), BACKGROUND[:, :d]
    functions, expected = library(tmp_path, model, dtype, background), model.shap_values(rows, background)
    assert functions.test() == 0
    found = np.array([call(functions.shap, x, expected[0].shape, real) for x in rows])
    assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    m = model.outputs(rows).shape[1]
    outputs = np.array([call(functions.outputs, x, m, real) for x in rows])
    base = call(functions.base, rows[0], 1, real)
    assert_allclose(
        found.reshape(len(X), d, m)[:, :, 0].sum(axis=1) + base, outputs[:, 0], rtol=tolerance, atol=tolerance
    )


def graph_values(graph, given):
    """The SHAP values of a graph, after a complete check."""
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["shap_values"], given)[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", SECOND)
def test_onnx(kind, dtype):
    model, tolerance = KINDS[kind], TOLERANCES[dtype]
    rows, background = X[:, : model.n_features].astype(dtype), BACKGROUND[:, : model.n_features]
    graph = model.to_onnx(dtype=dtype, background=background)
    found, expected = graph_values(graph, {"X": rows}), model.shap_values(rows, background)
    assert found.shape == expected.shape
    assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    metadata = {entry.key: json.loads(entry.value) for entry in graph.metadata_props}
    assert_allclose(metadata["base_values"], np.atleast_1d(model.base_values(background)))
    assert ("feature_names" in metadata) == (model.feature_names is not None)


@needs_compiler
@pytest.mark.parametrize("dtype", REALS)
@every_table
def test_tables_in_c(tmp_path, kind, columns, dtype):
    """By columns, against several rows and against one."""
    model, real, tolerance = TABLES[kind], REALS[dtype][1], TOLERANCES[dtype]
    for name, background in (("several", columns), ("one", {name: columns[name][:1] for name in columns})):
        (tmp_path / name).mkdir()
        functions = quietly(lambda rows, folder=tmp_path / name: library(folder, model, dtype, rows), background)
        expected = quietly(lambda rows, other=background: model.shap_values(rows, other), columns)
        found = [call(functions.shap, x, expected[0].shape, real) for x in c_rows(model, columns, real)]
        assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@every_table
def test_tables_in_onnx(kind, columns, dtype):
    model, tolerance = TABLES[kind], TOLERANCES[dtype]
    graph = quietly(lambda rows: model.to_onnx(dtype=dtype, background=rows), columns)
    expected = quietly(lambda rows: model.shap_values(rows, columns), columns)
    if kind == "numbers":
        given = {"X": np.array([[np.nan if v is None else v for v in row] for row in columns.values()], dtype).T}
    else:
        given = {
            value.name: np.array([["" if v is None else v] for v in rows])
            if any(isinstance(v, str) for v in rows)
            else np.array([[np.nan if v is None else v] for v in rows], dtype)
            for value, rows in zip(graph.graph.input, columns.values(), strict=True)
        }
    assert_allclose(graph_values(graph, given), expected, atol=tolerance * np.abs(expected).max())


def test_higher_degrees_are_refused(tmp_path):
    for kind in ("direct", "fourth", "all subsets", "fifth power", "lifted"):
        with pytest.raises(TypeError, match="SHAP values in exports are for models of degree 1 and 2 alone"):
            KINDS[kind].to_c(tmp_path / "model.h", background=BACKGROUND)
        with pytest.raises(TypeError, match="SHAP values in exports are for models of degree 1 and 2 alone"):
            KINDS[kind].to_onnx(background=BACKGROUND)
    with pytest.raises(ValueError, match="background has 2 features"):
        KINDS["several"].to_c(tmp_path / "model.h", background=BACKGROUND[:, :2])
    with pytest.raises(ValueError, match="background is for arithmetic='float'"):
        KINDS["several"].to_c(tmp_path / "model.h", arithmetic="integer", X=X, background=BACKGROUND)
    assert not list(tmp_path.iterdir())

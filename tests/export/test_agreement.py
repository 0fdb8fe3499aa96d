"""Exports of tables agree with Python, whatever their columns hold, or name their losses."""

import shutil
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fitted_models import network

from benchmarks.tables.exports import c_outputs, onnx_outputs
from mopn.estimators import MultiOutputPNRegressor
from mopn.export import to_c, to_onnx
from mopn.models.table import TableModel
from mopn.tables.learning import learn_encoding
from mopn.tables.reading import read_table

N = 200
RNG = np.random.default_rng(0)
STEPS = np.arange(N)
COLUMNS = {
    "noise": RNG.standard_normal(N),
    "milliseconds since 1970": 1_700_000_000_000 + 1000 * STEPS,
    "nanoseconds since 1970": 1_700_000_000_000_000_000 + 10**9 * STEPS,
    "half Julian days": 2_451_545.0 + STEPS / 2,
    "seconds since 1970, every 5 minutes": 1_700_000_000 + 300 * STEPS,
    "dates": np.datetime64("2024-01-01") + STEPS,
    "times": np.datetime64("2024-01-01T00:00:00") + STEPS * np.timedelta64(1, "m"),
    "two years": np.array([2023, 2024])[STEPS % 2],
    "differ by rounding": np.array([0.3, 0.1 + 0.2, 0.5])[STEPS % 3],
    "far outlier": np.where(STEPS == 7, 1e12, 1e-3 * STEPS),
    "two clusters": np.where(STEPS % 2 == 0, -1e9, 1e9) + STEPS,
    "beyond float32": np.where(STEPS < 5, 1e300, STEPS),
    "tiny": 1e-300 * STEPS,
    "missing": np.where(STEPS % 5 == 0, np.nan, 1e9 + STEPS),
    "bools": STEPS % 2 == 0,
    "texts": np.array(["a", "b", "", "ü"], object)[STEPS % 4],
    "texts and missing": np.array(["a", "b", None, "ü"], object)[STEPS % 4],
    "codes": pd.Categorical(STEPS % 4),
}
TOLERANCES = {"float32": 1e-3, "float64": 1e-9}
FORMATS = {
    "C": lambda model, X, dtype, folder: c_outputs(model, X, dtype, folder),
    "ONNX": lambda model, X, dtype, folder: onnx_outputs(model, X, dtype),
}
KINDS = {
    "numbers": {"target": "vector"},
    "classes": {"classes": np.array(["no", "yes"]), "link": "logistic"},
    "means": {"link": "log", "target": "vector"},
}


def model_of(frame, *, kind="numbers", scale=1.0, curves=5, y=None):
    """Return a model of a table with random units, whose outputs are of a moderate size."""
    encoding = learn_encoding(read_table(frame), None, y, curves=curves, smoothness=1.0)
    machine = network(1, d=encoding.n_features, augment=True, **KINDS[kind])
    return TableModel(replace(machine, weights=0.01 * scale * machine.weights), encoding)


def skip_without(form):
    if form == "C" and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    if form == "ONNX":
        pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", COLUMNS)
def test_no_column_loses_digits(tmp_path, column, kind, form, dtype):
    """Alone and with others: at the knots, next to them by rounding, and between them."""
    skip_without(form)
    frame = pd.DataFrame({"first": COLUMNS["noise"], column: COLUMNS[column]})
    model = model_of(frame, kind=kind)
    rows = frame
    if column in model.encoding.columns and frame[column].dtype.kind == "f":
        near = frame[column].to_numpy()
        values = [near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), near / 2 + np.roll(near, 1) / 2]
        # Numbers that differ by rounding are read in double, where float32 is enough they are other numbers of it.
        if model.encoding.input_type(np.dtype(dtype).type) == np.float64 or dtype == "float32":
            rows = pd.DataFrame({"first": np.tile(frame["first"], 4), column: np.concatenate(values)})
    if form == "C" and model.encoding.input_type(np.dtype(dtype).type) != np.dtype(dtype):
        with pytest.raises(ValueError, match=f"float32 loses digits of the column {column!r}"):
            to_c(model, tmp_path / "model.h", dtype=dtype)
        return
    expected = model.outputs(rows)
    found = FORMATS[form](model, rows, dtype, tmp_path)
    assert np.abs(found - expected).max() <= TOLERANCES[dtype] * np.ptp(expected)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("first", [0.0, 2000.0])
def test_hats_of_codes(tmp_path, form, first):
    """At the codes, between and beyond them, next to a column without hats and missing values."""
    skip_without(form)
    codes = first + np.arange(1600.0) % 16
    frame = pd.DataFrame(
        {"code": codes, "noise": np.sin(np.arange(1600.0)), "other": np.where(codes > first + 9, np.nan, codes)}
    )
    model = model_of(frame, curves=None, y=codes % 2)
    assert f"code near {first + 3:g}" in model.encoding.feature_names
    rows = frame[:200].assign(code=first + np.linspace(-2.0, 18.0, 200))
    found = FORMATS[form](model, rows, "float64", tmp_path)
    assert np.abs(found - model.outputs(rows)).max() <= 1e-9 * np.ptp(found)


@pytest.mark.parametrize("write", ["to_c", "to_onnx"])
def test_a_warning_says_what_float32_loses(tmp_path, write):
    """Weights that cancel, and features of 1e12; at the user's line, and never in double or for ordinary features."""
    if write == "to_onnx":
        pytest.importorskip("onnx")

    def written(model, **options):
        arguments = (tmp_path / "model.h",) if write == "to_c" else ()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            {"to_c": to_c, "to_onnx": to_onnx}[write](model, *arguments, **options)
        return said

    frame = pd.DataFrame({"x": COLUMNS["noise"]})
    ordinary = model_of(frame)
    cancelling = replace(
        ordinary.model,
        basis=np.vstack([ordinary.model.basis, 1e5 * ordinary.model.basis, 1e5 * ordinary.model.basis]),
        weights=np.vstack([ordinary.model.weights, np.full((5, 1), 1.1), np.full((5, 1), -1.1 + 1e-15)]),
    )
    y = STEPS.astype(float) ** 2
    large = MultiOutputPNRegressor(max_units=3).fit(COLUMNS["milliseconds since 1970"][:, None].astype(float), y)
    small = MultiOutputPNRegressor(max_units=3).fit(1900 + STEPS[:, None] / 4, y)
    for model in (TableModel(cancelling, ordinary.encoding), large):
        (warning,) = written(model)
        assert "in float32 the predictions of 256 rows like the training data change by" in str(warning.message)
        assert "take dtype='float64'" in str(warning.message)
        assert warning.filename == __file__
        assert not written(model, dtype="float64")
    for model in (ordinary, small):
        assert not written(model)


def test_onnx_says_that_empty_texts_are_missing_ones():
    pytest.importorskip("onnx")
    for texts, count in ((["a", "", "b"], 0), (["a", None, "b"], 0), (["a", "", None], 1)):
        model = model_of(pd.DataFrame({"x": COLUMNS["noise"][:60], "t": pd.Series(20 * texts, dtype=object)}))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            to_onnx(model)
        assert len(said) == count
        assert all("column 't' has the text '' and missing values" in str(one.message) for one in said)

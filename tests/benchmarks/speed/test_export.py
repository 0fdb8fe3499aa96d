"""Exported models, measured on small data."""

import re
import shutil

import numpy as np
import pytest

from benchmarks.speed import export

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(not (shutil.which("cc") and shutil.which("size")), reason="no C compiler")


def test_agreement_is_measured(folder, capsys):
    export.main(["--data", str(folder), "--parts", "agreement", "--sets", "vowel"])
    cells = capsys.readouterr().out.splitlines()[-1].split()
    assert cells[:2] == ["vowel", "600"]
    double, single, rounded = float(max(cells[2:4], key=float)), float(max(cells[4:6], key=float)), float(cells[6])
    assert double < 1e-12 < single < 1e-4
    assert single < rounded < 1e-2


def test_headers_beside_forests(folder, capsys, monkeypatch):
    monkeypatch.setattr(export, "_TREES", (3,))
    monkeypatch.setattr(export, "_LEAVES", (16,))
    export.main(["--data", str(folder), "--parts", "forests", "--forests", "digits"])
    printed = capsys.readouterr().out
    accuracies = [float(line.split()[-3]) for line in printed.splitlines() if "mopn" in line]
    assert len(accuracies) == 2
    assert min(accuracies) > 0.95
    if export.find_spec("emlearn"):
        assert len(re.findall("emlearn, (?:inline|loadable), 3 trees of 16 leaves", printed)) == 2
    else:
        assert "no forest, as emlearn is not installed" in printed


def test_the_smallest_forest_that_is_as_accurate(monkeypatch):
    monkeypatch.setattr(export, "_TREES", (1, 2, 9))
    monkeypatch.setattr(export, "_LEAVES", (2, None))
    X = np.random.default_rng(0).integers(0, 9, (300, 3))
    y = (X[:, 0] > 4).astype(int) + 2 * (X[:, 1] > 4)
    smallest = export._forest(X, y, X, y, 0.2)
    assert (smallest.n_estimators, smallest.max_leaf_nodes) == (1, 2)
    assert smallest.score(2 * X, y) < 0.8
    assert export._forest(X, y, X, y, 0.99).score(2 * X, y) >= 0.99
    # None reaches this, so it is the most accurate.
    assert export._forest(X, y, X, y, 2.0).score(2 * X, y) == 1.0

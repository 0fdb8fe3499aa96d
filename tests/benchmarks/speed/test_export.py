"""Exported models, measured on small data."""

import shutil

import pytest

from benchmarks.speed import export

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def test_agreement_is_measured(folder, capsys):
    export.main(["--data", str(folder), "--parts", "agreement", "--sets", "vowel"])
    cells = capsys.readouterr().out.splitlines()[-1].split()
    assert cells[:2] == ["vowel", "600"]
    double, single = (max(map(float, part)) for part in (cells[2:4], cells[4:6]))
    assert double < 1e-12 < single < 1e-4

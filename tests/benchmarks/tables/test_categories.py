"""Tables of categories with many levels."""

import numpy as np

from benchmarks.tables import categories


def test_fits_are_compared(capsys, monkeypatch):
    monkeypatch.setattr(categories, "TEST_ROWS", 300)
    assert categories.main(["--rows", "700", "--seconds", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if line.startswith(("mopn", "LightGBM"))]
    assert rows[0][0] == "mopn"
    assert 0.6 < float(rows[0][5]) <= 1.0
    assert float(rows[0][8]) >= 0.0


def test_three_quarters_stay_and_levels_are_as_frequent_as_zipf_says():
    X, y = categories.customers(4000)
    assert abs(np.mean(y == "stays") - 0.75) < 0.05
    counts = X["c5"].value_counts()
    assert counts["v0"] / counts["v4"] > 2.0
    assert X["c5000"].nunique() > 1000

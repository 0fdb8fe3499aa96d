"""The multi-class study, on small synthetic data."""

import pytest

from benchmarks.multiclass import report
from benchmarks.multiclass.fits import COLUMNS

# -- report ------------------------------------------------------------------------------------------------------------


def _fits(*rows):
    """Return fits of one cell from (split, strength, validation, test, units)."""
    fixed = {"set": "vowel", "method": "conditional-gradient", "norm": "l1", "loss": "logistic", "refit": "output"}
    fixed |= {"max_units": "3", "curve_units": "1 2"}
    records = []
    for row in rows:
        given = dict(zip(("split", "strength", "validation", "test", "units"), map(str, row), strict=True))
        curves = {f"curve_{part}": f"0.1 {given[part]}" for part in ("validation", "test")}
        records.append(dict.fromkeys(COLUMNS, "1") | fixed | given | curves)
    return report.frame(records)


def test_selection_never_looks_at_the_test_part():
    """The smallest of equally good models is chosen."""
    chosen = report.select(_fits((0, 1, 0.9, 0.5, 4), (0, 2, 0.8, 0.99, 2), (1, 1, 0.7, 0.6, 3)))
    assert list(chosen["test"]) == [0.5, 0.6]
    chosen = report.select(_fits((0, 1, 0.9, 0.5, 4), (0, 2, 0.9, 0.6, 2), (0, 3, 0.9, 0.7, 2)))
    assert list(chosen["strength"]) == [3.0]


def test_summary_has_mean_and_standard_error_beside_the_papers_figure():
    results = report.summary(_fits((0, 1, 0.9, 0.5, 4), (1, 1, 0.9, 0.7, 2)))
    row = results.iloc[0]
    assert (row["paper_test"], row["paper_units"], row["splits"]) == (80.00, 21, 2)
    assert row["test"] == pytest.approx(60)
    assert row["test_error"] == pytest.approx(10)
    assert row["units"] == 3
    text = report.tables(results)
    assert "80.00 (21)" in text
    assert "60.00 ± 10.00 (3.0)" in text
    assert "vowel: 2 splits a cell" in text

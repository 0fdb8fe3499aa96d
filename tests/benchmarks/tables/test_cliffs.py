"""Both sides of every threshold of tables."""

import numpy as np
import pytest

from benchmarks.tables import cliffs


def test_both_sides_are_fitted_and_compared(capsys, monkeypatch):
    monkeypatch.setattr(cliffs, "TEST_ROWS", 200)
    assert cliffs.main(["--cliffs", "values, a knot for each", "--seeds", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["threshold", "size", "score", "change", "error", "seconds", "units", "gap", "features"]
    below, above = (line.removeprefix("values, a knot for each").split() for line in lines[1:])
    assert [below[0], above[0]] == ["33", "34"]
    assert float(above[2]) == pytest.approx(float(above[1]) - float(below[1]), abs=2e-4)


@pytest.mark.parametrize("name", cliffs.CLIFFS)
def test_tables_have_rows_and_grow_by_columns_alone(name):
    cliff = cliffs.CLIFFS[name]
    X, y = cliff.make(np.random.default_rng(0), 2000, cliff.above)
    assert len(X) == len(y) == 2000
    assert cliff.below < cliff.above

"""The multi-class study, on small synthetic data."""

import numpy as np
import pytest

from benchmarks.common.store import Store
from benchmarks.multiclass import figure, plan, report
from benchmarks.multiclass.__main__ import main
from benchmarks.multiclass.fits import COLUMNS, KEY, METHODS, Task, run_task
from benchmarks.multiclass.paper_tables import TABLE_2, TABLE_4, Cell
from benchmarks.multiclass.plan import DEFAULT_SETS, QUICK_SETS, SETS, tasks

# -- plan and fits -----------------------------------------------------------------------------------------------------


def test_a_run_covers_both_tables():
    planned = list(tasks(DEFAULT_SETS))
    assert len({tuple(vars(task).values()) for task in planned}) == len(planned)
    assert (set(TABLE_2) | set(TABLE_4)) <= {task.cell for task in planned}
    assert [task.split for task in planned] == sorted(task.split for task in planned)
    assert {task.set: task.split + 1 for task in planned} == {name: SETS[name].splits for name in DEFAULT_SETS}


@pytest.mark.parametrize(("sets", "quick"), [(DEFAULT_SETS, False), (QUICK_SETS, True), (["letter"], False)])
def test_every_grid_has_values(sets, quick):
    planned = list(tasks(sets, quick=quick))
    assert {task.method for task in planned} == set(METHODS)
    assert all(task.strength > 0 for task in planned)


@pytest.mark.parametrize(
    ("method", "norm", "loss", "refit", "strength", "max_units"),
    [
        ("conditional-gradient", "l1/l2", "logistic", "output", 0.1, 6),
        ("conditional-gradient", "l1/linf", "squared-hinge", "full", 0.1, 6),
        ("conditional-gradient", "l1", "logistic", "output", 1e6, 6),
        ("projected-gradient", "squared-l2", "logistic", "full", 0.1, 6),
        ("projected-gradient", "l1", "logistic", "full", 0.1, 6),
        ("one-vs-rest", "l1", "binary-logistic", "output", 0.1, 4),
        ("linear", "-", "-", "-", 1.0, 0),
        ("svm", "-", "-", "-", 1.0, 0),
        ("nystrom", "-", "-", "-", 1.0, 8),
    ],
)
def test_a_fit_returns_a_full_row(folder, method, norm, loss, refit, strength, max_units):
    row = run_task(Task("vowel", 0, method, norm, loss, refit, strength, max_units), str(folder))
    assert list(row) == COLUMNS
    curves = [row[name].split() for name in ("curve_units", "curve_validation", "curve_test")]
    assert len({len(curve) for curve in curves}) == 1
    assert curves[1][row["k"] - 1] == row["validation"]
    assert curves[2][row["k"] - 1] == row["test"]
    assert max(curves[1]) == row["validation"]


def test_networks_beat_the_linear_model_where_classes_are_quadratic(folder):
    network = run_task(Task("vowel", 0, "conditional-gradient", "l1/l2", "logistic", "output", 0.3, 8), str(folder))
    linear = run_task(Task("vowel", 0, "linear", "-", "-", "-", 1.0, 0), str(folder))
    assert float(network["test"]) > float(linear["test"]) + 0.15


# -- report ------------------------------------------------------------------------------------------------------------


def _fits(*rows):
    """Return fits of one cell from (split, strength, validation, test, units)."""
    records = []
    for split_, strength, validation, test, units in rows:
        record = dict.fromkeys(COLUMNS, "1") | {
            "set": "vowel",
            "method": "conditional-gradient",
            "norm": "l1",
            "loss": "logistic",
            "refit": "output",
            "split": str(split_),
            "strength": str(strength),
            "validation": str(validation),
            "test": str(test),
            "units": str(units),
            "max_units": "3",
            "curve_units": "1 2",
            "curve_validation": f"0.1 {validation}",
            "curve_test": f"0.2 {test}",
        }
        records.append(record)
    return report.frame(records)


def test_selection_never_looks_at_the_test_part():
    chosen = report.select(_fits((0, 1, 0.9, 0.5, 4), (0, 2, 0.8, 0.99, 2), (1, 1, 0.7, 0.6, 3)))
    assert list(chosen["test"]) == [0.5, 0.6]


def test_of_equally_good_models_the_smallest_is_chosen():
    chosen = report.select(_fits((0, 1, 0.9, 0.5, 4), (0, 2, 0.9, 0.6, 2), (0, 3, 0.9, 0.7, 2)))
    assert list(chosen["strength"]) == [3.0]


def test_a_split_that_has_only_begun_is_left_out():
    fits = _fits(
        (0, 1, 0.9, 0.5, 4), (0, 2, 0.8, 0.5, 2), (1, 1, 0.9, 0.5, 2), (1, 2, 0.9, 0.5, 2), (2, 1, 0.9, 0.5, 2)
    )
    assert set(report.complete(fits)["split"]) == {0, 1}


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


def test_a_curve_takes_the_strength_of_each_number_of_units_and_keeps_its_last_value():
    fits = _fits((0, 1, 0.9, 0.5, 4), (0, 2, 0.8, 0.99, 2))
    units, mean, error = figure.unit_curve(fits)
    np.testing.assert_array_equal(units, [1, 2, 3])
    np.testing.assert_allclose(mean, [0.2, 0.5, 0.5])
    assert np.isnan(error).all()


def test_tables_name_every_cell_of_the_paper():
    assert all(len(figures) == 4 for figures in (TABLE_2 | TABLE_4).values())
    assert len(TABLE_2) == 13
    assert len(TABLE_4) == 12
    assert TABLE_4[Cell("conditional-gradient", "l1/linf", "squared-hinge", "output")]["letter"] == (91.20, 119)


# -- the program -------------------------------------------------------------------------------------------------------

_SMALL = ["--sets", "vowel", "--quick"]


@pytest.fixture
def small(monkeypatch):
    """Two baselines and networks of one norm, of at most six units."""
    kept = [cell for cell in plan._CELLS if cell.method in ("linear", "svm") or cell.norm == "l1/l2"]
    monkeypatch.setattr(plan, "_CELLS", kept)
    monkeypatch.setattr(plan, "_QUICK_UNITS", 6)


def test_program_fits_resumes_and_reports(folder, tmp_path, capsys, small, monkeypatch):
    out = tmp_path / "out"
    arguments = ["--data", str(folder), "--out", str(out), *_SMALL]
    monkeypatch.setattr(plan, "_QUICK_SPLITS", 1)
    assert main(arguments) == 0
    monkeypatch.setattr(plan, "_QUICK_SPLITS", 2)
    lines = (out / "fits.csv").read_text().splitlines()
    (out / "fits.csv").write_text("\n".join(lines)[:-5])
    assert main([*arguments, "--jobs", "2"]) == 0
    printed = capsys.readouterr().out
    assert f"{2 * (len(lines) - 1)} rows, {len(lines) - 2} of them done already" in printed
    again = Store(out / "fits.csv", COLUMNS, KEY)
    assert len(again.rows()) == len(again.keys()) == 2 * (len(lines) - 1)
    assert (out / "summary.csv").is_file()
    assert (out / "figure3.png").is_file()
    assert main(["--data", "nowhere", "--out", str(out), "--report"]) == 0
    assert "Table 2" in capsys.readouterr().out

"""The benchmarks' own code, on small synthetic data: no data folder is needed."""

import sys
import time
from dataclasses import replace

import numpy as np
import pytest

# Appended, so that an installed mopn is still the one that is tested.

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pytest.importorskip("joblib")

from benchmarks.certificates import __main__ as certificates
from benchmarks.certificates import oracles
from benchmarks.common.datasets import DATA_SETS, MissingDataError, check_data, load, scale, split
from benchmarks.common.store import Store, StoreError
from benchmarks.multiclass import __main__ as multiclass
from benchmarks.multiclass import figure as multiclass_figure
from benchmarks.multiclass import refits
from benchmarks.multiclass import report as multiclass_report
from benchmarks.multiclass.fits import COLUMNS, KEY, METHODS, Curve, Task, run_task
from benchmarks.multiclass.paper_tables import TABLE_2, TABLE_4, Cell
from benchmarks.multiclass.plan import SETS, Plan, default_plan, quick_plan, tasks
from benchmarks.speed import __main__ as speed
from benchmarks.speed import scaling


@pytest.fixture
def folder(tmp_path):
    """A data folder with a vowel file of three classes that a quadratic model separates."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (800, 10))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] ** 2 > 3)
    table = np.column_stack([np.arange(800) % 4 == 3, np.zeros((800, 2)), X, y])
    path = tmp_path / "data" / DATA_SETS["vowel"].file
    path.parent.mkdir(parents=True)
    np.savetxt(path, table, delimiter=", ", fmt=["%d"] * 3 + ["%.3f"] * 10 + ["%d"])
    return tmp_path / "data"


# -- data --------------------------------------------------------------------------------------------------------------


def test_vowel_reads_the_training_rows(folder):
    X, y = load("vowel", str(folder))
    assert X.shape == (600, 10)
    assert set(y) == {0, 1, 2}


def test_letter_reads_rows_between_arff_headers(tmp_path):
    path = tmp_path / "letter.arff"
    path.write_text("% a comment\n@attribute a real\n@data\n1,2,B\n3,4,A\n\n")
    X, labels = DATA_SETS["letter"].read(path)
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert list(labels) == ["B", "A"]


def test_split_takes_every_row_once_in_the_papers_shares():
    X = np.arange(101.0)[:, None]
    parts = split(X, np.arange(101), 3)
    sizes = [len(y) for y in (parts.y_train, parts.y_validation, parts.y_test)]
    assert sizes == [50, 25, 26]
    assert sorted(np.concatenate([parts.y_train, parts.y_validation, parts.y_test])) == list(range(101))


def test_split_is_a_function_of_its_index():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40)
    np.testing.assert_array_equal(split(X, y, 5).y_train, split(X, y, 5).y_train)
    assert not np.array_equal(split(X, y, 5).y_train, split(X, y, 6).y_train)


def test_features_are_scaled_on_the_training_part_alone():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40)
    parts = split(X, y, 0)
    np.testing.assert_allclose(parts.X_train.min(axis=0), -1, atol=1e-14)
    np.testing.assert_allclose(parts.X_train.max(axis=0), 1, atol=1e-14)
    moved = X.copy()
    moved[parts.y_test] *= 100
    np.testing.assert_array_equal(split(moved, y, 0).X_train, parts.X_train)


def test_constant_features_become_zero():
    np.testing.assert_array_equal(
        scale(np.array([[7.0, 0.0], [9.0, 2.0]]), np.array([[7.0, 0.0], [7.0, 4.0]]))[:, 0], 0
    )


def test_missing_data_says_what_the_file_is(tmp_path):
    with pytest.raises(MissingDataError, match=r"no data folder .*--data[\s\S]*sat\.trn: UCI"):
        check_data(tmp_path / "nowhere", ["satimage"])
    with pytest.raises(MissingDataError, match=r"lacks files[\s\S]*segment\.dat: UCI"):
        check_data(tmp_path, ["segment"])


# -- store -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "new" / "fits.csv", ["name", "split", "curve"], ["name", "split"])


def test_an_absent_file_is_an_empty_store(store):
    assert store.rows() == []
    assert store.keys() == set()


def test_rows_come_back_as_text(store):
    store.append({"name": "a", "split": 1, "curve": "0.5 0.6"})
    store.append({"name": "b, c", "split": 2, "curve": ""})
    again = Store(store.path, store.columns, store.key)
    assert again.rows()[1] == {"name": "b, c", "split": "2", "curve": ""}
    assert again.keys() == {("a", "1"), ("b, c", "2")}
    assert {again.key_of({"name": "a", "split": 1})} < again.keys()


@pytest.mark.parametrize("rest", ["b", "b,2", "b,2,0.5 0.", 'b,2,"0.5'])
def test_a_truncated_last_line_is_done_again(store, rest):
    store.append({"name": "a", "split": 1, "curve": "0.5"})
    with open(store.path, "a") as file:
        file.write(rest)
    again = Store(store.path, store.columns, store.key)
    assert again.keys() == {("a", "1")}
    again.append({"name": "b", "split": 2, "curve": "0.7"})
    assert store.path.read_text() == "name,split,curve\na,1,0.5\nb,2,0.7\n"


def test_a_truncated_header_is_written_again(store):
    store.path.parent.mkdir()
    store.path.write_text("name,sp")
    store.append({"name": "a", "split": 1, "curve": ""})
    assert store.path.read_text() == "name,split,curve\na,1,\n"


def test_a_file_with_other_columns_is_refused_and_kept(store):
    store.path.parent.mkdir()
    store.path.write_text("x,y\n1,2\n")
    with pytest.raises(StoreError, match="other columns"):
        Store(store.path, store.columns, store.key)
    assert store.path.read_text() == "x,y\n1,2\n"


# -- plan and fits -----------------------------------------------------------------------------------------------------


def test_the_default_plan_covers_both_tables():
    planned = list(tasks(default_plan()))
    assert len({tuple(vars(task).values()) for task in planned}) == len(planned)
    cells = {task.cell for task in planned}
    assert (set(TABLE_2) | set(TABLE_4)) <= cells
    assert [task.split for task in planned] == sorted(task.split for task in planned)
    assert {task.set: task.split + 1 for task in planned} == {name: SETS[name].splits for name in default_plan().sets}


def test_options_narrow_a_plan():
    plan = default_plan().with_options({"sets": ["vowel"], "methods": ["conditional-gradient"], "norms": ["l1"]})
    plan = plan.with_options({"losses": ["logistic"], "refits": ["output"], "splits": 2, "strengths": [0.5]})
    expected = [Task("vowel", i, "conditional-gradient", "l1", "logistic", "output", 0.5, 9) for i in range(2)]
    assert list(tasks(plan.with_options({"max_units": 9}))) == expected


@pytest.mark.parametrize("plan", [default_plan(), quick_plan(), Plan(sets=("letter",))])
def test_every_grid_has_values(plan):
    planned = list(tasks(plan))
    assert {task.method for task in planned} == set(METHODS)
    assert all(task.strength > 0 for task in planned)


def test_the_first_of_equally_good_rounds_is_chosen():
    assert Curve([1, 2, 3, 4], [0.5, 0.9, 0.8, 0.9], [0.0] * 4).best() == 1


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
    return multiclass_report.frame(records)


def test_selection_never_looks_at_the_test_part():
    chosen = multiclass_report.select(_fits((0, 1, 0.9, 0.5, 4), (0, 2, 0.8, 0.99, 2), (1, 1, 0.7, 0.6, 3)))
    assert list(chosen["test"]) == [0.5, 0.6]


def test_of_equally_good_models_the_smallest_is_chosen():
    chosen = multiclass_report.select(_fits((0, 1, 0.9, 0.5, 4), (0, 2, 0.9, 0.6, 2), (0, 3, 0.9, 0.7, 2)))
    assert list(chosen["strength"]) == [3.0]


def test_a_split_that_has_only_begun_is_left_out():
    fits = _fits(
        (0, 1, 0.9, 0.5, 4), (0, 2, 0.8, 0.5, 2), (1, 1, 0.9, 0.5, 2), (1, 2, 0.9, 0.5, 2), (2, 1, 0.9, 0.5, 2)
    )
    assert set(multiclass_report.complete(fits)["split"]) == {0, 1}


def test_summary_has_mean_and_standard_error_beside_the_papers_figure():
    results = multiclass_report.summary(_fits((0, 1, 0.9, 0.5, 4), (1, 1, 0.9, 0.7, 2)))
    row = results.iloc[0]
    assert (row["paper_test"], row["paper_units"], row["splits"]) == (80.00, 21, 2)
    assert row["test"] == pytest.approx(60)
    assert row["test_error"] == pytest.approx(10)
    assert row["units"] == 3
    text = multiclass_report.tables(results)
    assert "80.00 (21)" in text
    assert "60.00 ± 10.00 (3.0)" in text
    assert "vowel: 2 splits a cell" in text


def test_a_curve_takes_the_strength_of_each_number_of_units_and_keeps_its_last_value():
    fits = _fits((0, 1, 0.9, 0.5, 4), (0, 2, 0.8, 0.99, 2))
    units, mean, error = multiclass_figure.unit_curve(fits)
    np.testing.assert_array_equal(units, [1, 2, 3])
    np.testing.assert_allclose(mean, [0.2, 0.5, 0.5])
    assert np.isnan(error).all()


def test_tables_name_every_cell_of_the_paper():
    assert all(len(figures) == 4 for figures in (TABLE_2 | TABLE_4).values())
    assert len(TABLE_2) == 13
    assert len(TABLE_4) == 12
    assert TABLE_4[Cell("conditional-gradient", "l1/linf", "squared-hinge", "output")]["letter"] == (91.20, 119)


# -- the program -------------------------------------------------------------------------------------------------------

_SMALL = ["--sets", "vowel", "--quick", "--splits", "2", "--max-units", "6", "--norms", "l1/l2"]


def test_program_fits_resumes_and_reports(folder, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["--data", str(folder), "--out", str(out), *_SMALL]
    assert multiclass.main([*arguments, "--splits", "1"]) == 0
    lines = (out / "fits.csv").read_text().splitlines()
    (out / "fits.csv").write_text("\n".join(lines)[:-5])
    assert multiclass.main([*arguments, "--jobs", "2"]) == 0
    printed = capsys.readouterr().out
    assert f"{2 * (len(lines) - 1)} fits, {len(lines) - 2} of them done already" in printed
    again = Store(out / "fits.csv", COLUMNS, KEY)
    assert len(again.rows()) == len(again.keys()) == 2 * (len(lines) - 1)
    assert (out / "summary.csv").is_file()
    assert (out / "figure3.png").is_file()
    assert multiclass.main(["--data", "nowhere", "--out", str(out), "--report"]) == 0
    assert "Table 2" in capsys.readouterr().out


def test_program_without_data_ends_with_a_message(tmp_path, capsys):
    assert multiclass.main(["--data", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert "no data folder" in captured.err
    assert "Traceback" not in captured.err


def test_report_of_nothing(tmp_path, capsys):
    assert multiclass.main(["--out", str(tmp_path / "out"), "--report"]) == 0
    assert "no results yet" in capsys.readouterr().out


def test_a_failing_fit_stops_no_other(folder, tmp_path, capsys, monkeypatch):
    def fail(task, data):
        raise FloatingPointError("deliberate")

    monkeypatch.setitem(METHODS, "linear", fail)
    arguments = ["--data", str(folder), "--out", str(tmp_path / "out"), *_SMALL, "--methods", "linear", "svm"]
    assert multiclass.main(arguments) == 1
    captured = capsys.readouterr()
    assert "deliberate" in captured.err
    assert {row["method"] for row in Store(tmp_path / "out" / "fits.csv", COLUMNS, KEY).rows()} == {"svm"}


def test_proofs_are_printed_and_plotted(folder, tmp_path, capsys):
    arguments = ["--data", str(folder), "--out", str(tmp_path), "--sets", "vowel", "--max-time", "5"]
    certificates.main([*arguments, "--fractions", "0.5", "--tol", "1e-3"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("vowel")]
    assert [row[1] for row in rows] == ["l1", "l1/l2", "l1/linf"]
    assert all(float(row[3]) <= 1e-3 and row[-1] == "CONVERGED" for row in rows)
    assert (tmp_path / "certificates.png").stat().st_size > 10_000


def test_choices_of_units_are_compared_with_the_optimum(folder, tmp_path, capsys):
    arguments = ["--data", str(folder), "--out", str(tmp_path), "--sets", "vowel", "--max-time", "5", "--rounds", "3"]
    oracles.main([*arguments, "--norms", "l1/linf", "--fraction", "0.3"])
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.startswith(tuple(oracles.STARTS))]
    least = {" ".join(row[:-2]): float(row[-1].strip("()")) for row in rows}
    assert set(least) == set(oracles.STARTS)
    # No start exceeds the proven optimum; refinement never loses; ours has the starts of the others among its own.
    assert all(0 < value <= 1 for value in least.values())
    assert least["l1 + refine"] >= least["l1"]
    assert least["ours"] >= max(least["extremes + refine"], least["Gram + refine"])
    assert "median" in printed
    assert (tmp_path / "oracles.png").stat().st_size > 10_000


# -- speed, refits and scaling -----------------------------------------------------------------------------------------


def test_ratios_are_printed_beside_gaps_and_accuracies(folder, capsys, monkeypatch):
    monkeypatch.setattr(speed, "STRENGTHS", (10.0,))
    monkeypatch.setattr(speed, "PEERS", (*speed.PEERS[:1], replace(speed.PEERS[1], module="no_such_module")))
    speed.main(["--data", str(folder), "--sets", "vowel", "--cap", "5", "--splits", "2"])
    printed = capsys.readouterr().out
    refits_, peers, fits = printed.split("\n\n", 1)[1].split("\n\n", 1)[0], *printed.split("Peers on")[1].split("Fits ")
    rows = [line.split() for line in refits_.splitlines() if line.startswith("vowel")]
    assert [row[1] for row in rows] == ["l1", "l1/l2", "l1/linf"]
    assert all(float(row[5]) <= 1e-6 and float(row[8]) <= 1e-6 for row in rows)
    excesses = [float(line.split()[-1]) for line in peers.splitlines() if line.startswith("vowel")]
    assert [excess <= target for excess, target in zip(excesses, speed.TARGETS, strict=True)] == [True, True]
    assert "lightning, CD: not installed" in peers
    accuracies = {line.split()[1]: line.split()[2] for line in fits.splitlines() if line.startswith("vowel")}
    assert float(accuracies["mopn"]) > 60


def test_the_median_of_ratios_says_whether_it_is_a_bound():
    ratios = [speed.Ratio(1.0), speed.Ratio(3.0), speed.Ratio(5.0, True)]
    assert str(speed.median(ratios)) == "3"
    assert str(speed.median([speed.Ratio(2.0, True), *ratios[1:]])) == "> 3"


@pytest.mark.parametrize(("needed", "target"), [(1, 1e-3), (7, 1e-3), (8, 1e-4), (13, 1e-4)])
def test_the_least_effort_is_found(needed, target):
    search = speed._Search(lambda effort: np.array(float(effort)), lambda V: float(needed > V), cap=5.0)
    assert search(target)[1] == 0.0
    assert min(effort for effort, (_, excess) in search.tried.items() if excess == 0.0) == needed


def test_an_effort_beyond_the_cap_ends_the_search():
    search = speed._Search(lambda effort: time.sleep(100.0 if effort else 0.0) or np.ones(1), lambda V: 0.5, cap=0.5)
    assert search(1e-3) == (0.5, 0.5)
    assert list(search.tried) == [0, 4]


def test_refits_of_both_layers_are_better_with_few_units(folder, tmp_path, capsys):
    refits.main(["--data", str(folder), "--out", str(tmp_path), "--sets", "vowel", "--max-units", "5"])
    row = capsys.readouterr().out.split("time s\n")[-1].splitlines()[3].split()
    assert (row[1], row[6]) == ("5", "5")
    assert float(row[7]) < float(row[2])
    assert (tmp_path / "refits.png").stat().st_size > 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_scaling_is_measured_in_processes_and_plotted(tmp_path, capsys):
    scaling.main(["--quick", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed.count("exponents: time") == 2
    assert (tmp_path / "scaling.png").stat().st_size > 10_000


def test_exponents_are_slopes_of_the_largest_values():
    rows = [{"n": n, "seconds": 1e-3 * max(n, 100) ** 1.5} for n in (1, 100, 1000, 10_000)]
    assert scaling.exponent(rows, "n", "seconds") == pytest.approx(1.5)


def test_synthetic_data_have_all_classes_and_do_not_depend_on_the_number_of_rows():
    X, y = scaling.data(2500, 4, 5)
    np.testing.assert_array_equal(scaling.data(1000, 4, 5)[0], X[:1000])
    assert set(y) == set(range(5))

"""Studies of variants of the estimators of tables: bases, choices of the strength, and what is said of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import SplineTransformer, StandardScaler

from benchmarks.common.study import Task
from benchmarks.tables import basis, strength, variants
from mopn import Ratio
from mopn.estimators import TableEncoder

PROGRAMS = {"basis": basis, "strength": strength}


def _fits(scores, losses=None):
    """Return fits from lists of scores by variant, those of two splits of a set one after the other."""
    rows = [
        {"set": f"set {i // 2}", "split": i % 2, "method": name, "score": score, "loss": (losses or scores)[name][i]}
        for name, of_name in scores.items()
        for i, score in enumerate(of_name)
    ]
    return pd.DataFrame(rows).assign(fit=1.0)


def test_gains_are_over_sets_of_the_means_of_splits():
    fits = _fits({"first": [50, 52, 80, 80], "other": [52, 52, 79, 77]}, {"first": [1] * 4, "other": [2, 2, 8, 8]})
    row = variants.gains(fits).loc["other"]
    points = np.array([1.0, -2.0])
    assert row["points"] == pytest.approx(points.mean())
    assert row["error"] == pytest.approx(points.std(ddof=1) / np.sqrt(2))
    assert list(row[["wins", "ties", "losses"]]) == [1, 0, 1]
    assert row["loss"] == pytest.approx(4)
    assert row["loss_error"] == pytest.approx(np.std(np.log([2, 8]), ddof=1) / np.sqrt(2))
    assert "| other | -0.50 ± 1.50 | 1 | 0 | 1 | 4.000 ± 2.773 | 1.00 |" in variants.gains_table(fits)
    assert "| set 1 | 80.0 | 78.0 |" in variants.scores_table(fits)


def test_a_row_is_of_the_held_out_rows():
    row = variants.run_variant(Task("diabetes", 1, "mean"), {"mean": lambda classes: DummyRegressor()}, "nowhere")
    assert list(row) == variants.COLUMNS
    assert -0.2 < float(row["score"]) <= 0


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_fit_every_variant(program, monkeypatch, tmp_path, capsys):
    cheap = {name: lambda classes: DummyClassifier() if classes else DummyRegressor() for name in program.VARIANTS}
    monkeypatch.setattr(program, "VARIANTS", cheap)
    arguments = ["--data", "nowhere", "--quick", "--out", str(tmp_path)]
    assert program.main([*arguments, "--report"]) == 0
    assert "no results yet" in capsys.readouterr().out
    assert program.main(arguments) == 0
    assert program.main([*arguments, "--report"]) == 0
    text = capsys.readouterr().out
    assert all(f"| {name} | +0.00 ± 0.00 | 0 | 2 | 0 |" in text for name in list(cheap)[1:])


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("classes", [True, False])
def test_variants_are_estimators_of_tables(program, classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=90), "z": rng.integers(0, 2, 90).astype(float)})
    y = (X["x"] > 0).astype(int).to_numpy() if classes else X["x"].to_numpy(copy=True)
    X.loc[::40, "x"] = np.nan
    for name, make in program.VARIANTS.items():
        if name not in ("0.0003", "0.001"):  # these take longer, and are made as the other shares
            predicted = make(classes).fit(X, y).predict(X)
            assert (accuracy_score if classes else r2_score)(y, predicted) > 0.7, name


# -- bases -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def column():
    """Values of a column, skewed; the encoder's knots and functions."""
    x = np.exp(np.random.default_rng(0).normal(size=500))
    ((knots, functions),) = TableEncoder().fit(x[:, None]).encoding_.numbers.parts
    return x, knots, functions


def test_cosines_alone_are_the_encoders(column):
    knots, functions = basis.BASES["without the column itself"](*column)
    np.testing.assert_array_equal(knots, column[1])
    np.testing.assert_array_equal(functions, column[2][:, 1:])


def test_cosines_of_values_are_those_of_equal_distances(column):
    x, _, encoded = column
    knots, functions = basis.BASES["cosines of values"](*column)
    u = (knots - x.min()) / np.ptp(x)
    np.testing.assert_allclose(np.diff(knots), np.ptp(x) / 32)
    cut = ((column[1] - x.mean()) / x.std()).clip(-3, 3)
    np.testing.assert_allclose(functions[:, 0], np.interp(knots, column[1], cut), atol=1e-9)
    for k in range(1, encoded.shape[1]):
        np.testing.assert_allclose(functions[:, k], np.sqrt(2) * np.cos(np.pi * k * u) / k, atol=1e-12)


def test_the_column_itself_goes_to_its_ends(column):
    x, encoder_knots, encoded = column
    knots, functions = basis.BASES["the column itself to its ends"](*column)
    np.testing.assert_array_equal(knots, encoder_knots)
    np.testing.assert_allclose(functions[:, 0], (knots - x.mean()) / x.std(), atol=1e-9)
    np.testing.assert_array_equal(functions[:, 1:], encoded[:, 1:])
    assert functions[-1, 0] > encoded[-1, 0]


@pytest.mark.parametrize(("name", "place"), [("quantiles", "quantile"), ("equal distances", "uniform")])
def test_splines_are_scikit_learns_standardised(column, name, place):
    x, encoder_knots, encoded = column
    knots, functions = basis.BASES[f"splines, knots at {name}"](*column)
    assert functions.shape == (len(knots), encoded.shape[1])
    splines = SplineTransformer(encoded.shape[1] - 2, knots=place, include_bias=False)
    splines.fit((encoder_knots if place == "quantile" else x)[:, None])
    scaler = StandardScaler().fit(splines.transform(x[:, None]))
    np.testing.assert_allclose(functions[:, 1:], scaler.transform(splines.transform(knots[:, None])), atol=1e-9)


# -- strengths ---------------------------------------------------------------------------------------------------------


def test_hindsight_takes_the_best_share_of_every_split():
    scores = {"default": [90, 1], "0.1": [50, 70], "0.003": [60, 40]}
    found = strength.with_hindsight(_fits(scores, {"default": [0, 0], "0.1": [3, 1], "0.003": [2, 5]}))
    best = found[found["method"].str.contains("hindsight")]
    assert list(best["score"]) == [60, 70]
    assert list(best["loss"]) == [2, 1]
    assert list(best["fit"]) == [2, 2]


def test_shares_hold_those_of_the_default():
    assert strength.VARIANTS["0.1"](True).strength == Ratio(0.1)
    assert strength.VARIANTS["default"](False).strength == "auto"

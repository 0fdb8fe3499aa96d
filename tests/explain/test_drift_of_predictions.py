"""The drift of predictions: SciPy's statistic of both samples of answers, files, odd models."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

import mopn
from mopn.estimators import TableClassifier, TableRegressor
from mopn.explain import drift
from mopn.models.files import read
from mopn.plotting import plot_drift
from mopn.tables.fields import ANSWER_FIELDS

N = 400
# Between two of 33 knots at equal ranks there is this share of the training data, and a row more at each.
UNKNOWN = 1 / 32 + 2 / N


def table(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.standard_normal(n) + shift, "b": rng.choice(["u", "v", "w"], n)})


def targets(X):
    return np.sin(2 * X["a"].to_numpy()) + (X["b"] == "u").to_numpy() + np.random.default_rng(9).normal(size=len(X))


def signs(X):
    return np.where(targets(X) > 0.5, "yes", "no")


def grades(X):
    return np.array(["low", "middle", "high"])[np.digitize(targets(X), [0.0, 1.0])]


def probabilities(model, X):
    return model.predict_proba(X)


def second_probability(model, X):
    return model.predict_proba(X)[:, 1:]


def outputs(model, X):
    return model.decision_function(X)


def numbers(model, X):
    return model.predict(X).reshape(len(X), -1)


# An estimator, its targets, the answers, and their names.
KINDS = {
    "two classes": (TableClassifier(), signs, second_probability, ["P(yes)"]),
    "three classes": (
        TableClassifier(),
        grades,
        probabilities,
        ["P(high)", "P(low)", "P(middle)"],
    ),
    "labels": (
        TableClassifier(),
        lambda X: np.column_stack([targets(X) > 0.0, targets(X) > 1.0]).astype(int),
        probabilities,
        ["P(output 0)", "P(output 1)"],
    ),
    "no probabilities": (
        TableClassifier(loss="smoothed-hinge"),
        grades,
        outputs,
        ["prediction of high", "prediction of low", "prediction of middle"],
    ),
    "numbers": (TableRegressor(), lambda X: 1e6 + targets(X), numbers, ["prediction"]),
    "two numbers": (
        TableRegressor(),
        lambda X: pd.DataFrame({"s": targets(X), "t": 1e3 * targets(X) ** 2}),
        numbers,
        ["prediction of s", "prediction of t"],
    ),
    "counts": (TableRegressor(loss="poisson"), lambda X: np.floor(targets(X).clip(0.0)), numbers, ["prediction"]),
}


def fitted(kind, X):
    estimator, y_of, answers, names = KINDS[kind]
    model = clone(estimator).set_params(strength=mopn.Ratio(0.03), max_units=4).fit(X, y_of(X))
    return model, answers, names


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_distance_of_predictions_is_scipys(kind, shift):
    before, now = table(N, 0), table(300, 1, shift)
    model, answers, names = fitted(kind, before)
    report = drift(model, now)
    assert sorted(found.column for found in report.predictions) == sorted(names)
    for j, name in enumerate(names):
        was, is_now = answers(model, before)[:, j], answers(model, now)[:, j]
        statistic = stats.ks_2samp(was, is_now).statistic
        assert statistic - UNKNOWN <= report[name].distance <= statistic + 1e-6
        assert report[name].shift == pytest.approx(is_now.mean() - was.mean(), rel=1e-6, abs=1e-9 * np.abs(was).max())
        assert report[name].beyond == pytest.approx(np.mean((is_now < was.min()) | (is_now > was.max())), abs=2 / 300)
        is_constant = np.ptp(was) == 0.0
        assert report[name].stands_out == (shift > 0.0 and not is_constant)


@pytest.mark.parametrize("way", ["blocks", "weights", "merged rows"])
def test_the_distances_of_few_answers_are_scipys_however_rows_come(way):
    """With six different rows all answers are knots, and whether two are equal decides."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"b": rng.choice(["u", "v", "w"], N), "c": rng.choice(["x", "y"], N)})
    y = (X["b"] == "u") + 2.0 * (X["c"] == "x") + rng.normal(size=N)
    estimator = TableRegressor(strength=mopn.Ratio(0.01))
    counts = np.ones(N, int)
    if way == "blocks":
        parts = [X[first : first + 150] for first in range(0, N, 150)]
        model = estimator.fit(mopn.RowBlocks(parts), y.to_numpy())
    elif way == "weights":
        counts = rng.integers(0, 4, N)
        model = estimator.fit(X, y, counts)
    else:
        model = estimator.fit(X, y)
    now = X[X["b"] != "w"]
    answers = np.round(model.predict(X), 9), np.round(model.predict(now), 9)
    statistic = stats.ks_2samp(np.repeat(answers[0], counts), answers[1]).statistic
    found = drift(model, now)["prediction"]
    assert found.distance == pytest.approx(statistic, abs=1e-6)
    assert found.beyond == 0.0


@pytest.mark.filterwarnings("ignore:no unit has an effect")
def test_a_model_without_units_has_one_answer():
    X = table(N, 0)
    model = TableClassifier(strength=1e6).fit(X, signs(X))
    found = drift(model, table(9, 1))["P(yes)"]
    assert (found.distance, found.beyond, found.stands_out) == (0.0, 0.0, False)
    assert found.shift == pytest.approx(0.0, abs=1e-12)


def test_odd_rows_have_predictions_without_warnings():
    """New categories and words among numbers, which the columns report."""
    X = table(N, 0)
    model = TableRegressor().fit(X, targets(X))
    report = drift(model, {"a": [0.1, "x", None], "b": ["u", "new", None]})
    assert np.isfinite(report["prediction"].psi)
    assert report["a"].new_values == {"x": 1}


def test_report_frame_and_picture_have_the_predictions():
    X = table(N, 0)
    model = TableClassifier().fit(X, grades(X))
    report = drift(model, table(99, 1, 2.0))
    caption = str(report).splitlines()[0]
    assert "1 of 2 columns and 3 of 3 predictions stand out" in caption
    assert all(f"* {found.column}" in str(report) for found in report.predictions)
    frame = report.to_frame().set_index("column")
    for found in report.predictions:
        assert frame.loc[found.column, "shift of prediction"] == found.shift
        assert frame.loc[found.column, "kind"] == "predictions"
    assert frame["shift of prediction"].isna().sum() == 2
    titles = [ax.get_title() for ax in plot_drift(report)[1:]]
    assert titles == ["a", "b", report.predictions[0].column]


def test_files_keep_the_predictions_and_older_ones_have_none(tmp_path):
    X, later = table(N, 0), table(99, 1, 2.0)
    model = TableClassifier().fit(X, signs(X))
    model.save(tmp_path / "model.npz")
    expected = drift(model, later)
    assert str(drift(mopn.load(tmp_path / "model.npz"), later)) == str(expected)

    older = {name: value for name, value in read(tmp_path / "model.npz").items() if name not in ANSWER_FIELDS}
    np.savez(tmp_path / "old.npz", format=4, fields=list(older), **older)
    old = drift(mopn.load(tmp_path / "old.npz"), later)
    assert old.predictions == ()
    assert [found.column for found in old.columns] == [found.column for found in expected.columns]
    assert "predictions" not in str(old)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("answer_counts", lambda counts: counts + 1),
        ("answer_knots", lambda knots: knots[::-1]),
        ("answers_below", lambda shares: shares + 1.0),
        ("answers_up_to", lambda shares: shares[::-1]),
        ("answer_means", lambda means: np.append(means, 0.5)),
        ("answer_means", lambda means: means + np.nan),
        ("answer_knots", lambda knots: knots.astype(int)),
    ],
)
def test_damaged_distributions_are_refused(tmp_path, name, change):
    X = table(N, 0)
    TableClassifier().fit(X, signs(X)).save(tmp_path / "model.npz")
    values = read(tmp_path / "model.npz")
    values[name] = change(values[name])
    np.savez(tmp_path / "bad.npz", format=5, fields=list(values), **values)
    with pytest.raises(ValueError, match=r"bad.npz' is not a mopn model, or it is damaged"):
        mopn.load(tmp_path / "bad.npz")


def test_distributions_of_other_answers_are_refused():
    X = table(N, 0)
    two = TableRegressor().fit(X, np.column_stack([targets(X), targets(X)])).model_
    one = TableRegressor().fit(X, targets(X)).model_
    with pytest.raises(ValueError, match="answers must be of 1 answers of the model, got 2"):
        type(one)(one.model, one.encoding, two.answers)

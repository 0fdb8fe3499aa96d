"""Drift from the model alone: SciPy's statistics of both samples, the noise of samples without drift, odd tables."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from table_models import network

import mopn
from mopn.explain import drift, effects
from mopn.models.files import read
from mopn.tables.fields import TRAINING_FIELDS
from mopn.tables.learning import encoding_of, learn_encoding
from mopn.tables.reading import read_table
from mopn.tables.summaries import summarise


def samples(seed, n, kind, shift=0.0):
    """Return n numbers of a kind, with a distribution that may be moved."""
    rng = np.random.default_rng(seed)
    if kind == "few values":
        return np.floor(rng.gamma(2.0 + shift, 2.0, n)).clip(0, 12)
    if kind == "ties":
        return np.round(np.exp(rng.standard_normal(n) + shift), 1).clip(0.3)
    return rng.standard_t(3, n) * 1e-9 * (1.0 + shift) + 5.0


def model_of(**columns):
    return network(columns, outputs=1)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize(("kind", "unknown"), [("few values", 1e-6), ("ties", 1 / 32), ("tiny", 1 / 32)])
def test_the_distance_of_numbers_is_scipys(kind, unknown, shift, missing):
    before = samples(0, 900, kind)
    now = samples(1, 700, kind, shift)
    gone = np.random.default_rng(2).uniform(size=900) < missing
    column = drift(model_of(x=np.where(gone, np.nan, before)), {"x": np.append(now, np.full(99, np.nan))})["x"]
    statistic = stats.ks_2samp(before[~gone], now).statistic
    assert statistic - unknown <= column.distance <= statistic + 1e-6
    assert column.missing == pytest.approx(99 / 799)
    assert column.missing_before == pytest.approx(gone.mean())
    beyond = (now < before[~gone].min()) | (now > before[~gone].max())
    assert column.beyond == pytest.approx(beyond.sum() / 799)


def test_the_distances_of_categories_are_scipys():
    """With more categories than have classes of their own, rare ones, new ones and missing ones."""
    rng = np.random.default_rng(0)
    letters = np.array([*"abcdefghijklmnopqrstuvwxyz", None], object)
    p = np.arange(27, 0, -1.0) ** 2
    before = np.append(rng.choice(letters, 3000, p=p / p.sum()), ["only once", "and once"])
    now = np.append(rng.choice(letters[::-1], 500, p=p / p.sum()), ["new"] * 7)
    column = drift(model_of(x=before), {"x": now})["x"]

    names = [*letters[:26], "rest", None]
    p, q = (np.array([np.sum(x == name) for name in names], float) for x in (before, now))
    p[26] += 2
    q[26] += 7
    present = np.arange(27)
    distance = 0.5 * np.abs(p[present] / p[present].sum() - q[present] / q[present].sum()).sum()
    assert column.distance == pytest.approx(distance)
    assert column.new == pytest.approx(7 / 507)
    assert column.new_values == {"new": 7}

    order = np.argsort(-p[:26], kind="stable")
    classes = [*([k] for k in order[:20]), order[20:], [26], [27]]
    p, q = (np.array([counts[k].sum() + 0.5 for k in classes]) for counts in (p, q))
    p, q = p / p.sum(), q / q.sum()
    assert column.psi == pytest.approx(stats.entropy(p, q) + stats.entropy(q, p))
    assert column.stands_out


def test_the_index_of_numbers_is_the_sum_of_scipys_entropies():
    """Each of three values is a class, and so are the missing ones."""
    before = np.repeat([1.0, 2.0, 4.0, np.nan], [100, 200, 50, 30])
    now = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0, 9.0, np.nan], [3, 7, 50, 20, 19, 1, 5])
    p = np.array([100, 200, 50, 30]) + 0.5
    q = np.array([10, 70, 20, 5]) + 0.5  # other values join a neighbour
    expected = stats.entropy(p / p.sum(), q / q.sum()) + stats.entropy(q / q.sum(), p / p.sum())
    assert drift(model_of(x=before), {"x": now})["x"].psi == pytest.approx(expected)


@pytest.mark.parametrize("n", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_samples_without_drift_stay_below_the_noise(n):
    """In about 99 of 100 cases for each measure; a large part of the categories occur once."""
    rng = np.random.default_rng(5)

    def rows(count):
        return {
            "number": rng.standard_normal(count),
            "count": rng.poisson(2.0, count).astype(float),
            "city": np.floor(300.0 * rng.uniform(size=count) ** 3).astype(int).astype(str),
        }

    found = []
    for _ in range(6):
        model = model_of(**rows(800))
        for _ in range(4):
            report = drift(model, rows(n))
            for column in report.columns:
                found += [column.distance > column.distance_noise, column.psi > column.psi_noise]
    assert np.mean(found) <= 0.04
    # Kolmogorov's limit for continuous distributions, 1.628 at 99 %, is not exceeded, and nearly reached.
    noise = report["number"].distance_noise * np.sqrt(800 * n / (800 + n))
    assert 1.35 < noise < 1.7


def test_shifts_are_changes_of_mean_effects():
    rng = np.random.default_rng(0)
    X = {"a": rng.integers(0, 5, 2000).astype(float), "b": rng.choice(["u", "v", "w"], 2000)}
    X["a"][:300] = np.nan
    model = network(X, outputs=3)
    later = {"a": rng.integers(1, 6, 500).astype(float), "b": rng.choice(["u", "v", "new"], 500)}
    report = drift(model, later)
    background = effects(model)
    for name, values in {"a": later["a"], "b": later["b"][later["b"] != "new"]}.items():
        expected = background.main(name, values).mean(axis=0) - background.main(name, X[name]).mean(axis=0)
        size = np.abs(background.main(name, X[name])).max()
        np.testing.assert_allclose(report[name].shift, expected, atol=2e-3 * size)
    assert report.outputs == ("output 0", "output 1", "output 2")
    assert max(np.abs(column.shift).max() for column in drift(model, X).columns) < 2e-3 * size


DAYS = np.datetime64("2024-01-01") + np.arange(60)
ZONED = [datetime.datetime(2024, 1, 1 + i % 28, tzinfo=datetime.UTC) for i in range(60)]
# Training values, values now, and what the report says of them.
ODD = {
    "constant": (np.full(60, 7.0), np.full(9, 7.0), {"distance": 0.0, "beyond": 0.0}),
    "constant that moves": (np.full(60, 7.0), np.full(9, 8.0), {"distance": 1.0, "beyond": 1.0}),
    "never a value": (np.full(60, np.nan), np.full(9, np.nan), {"missing_before": 1.0, "missing": 1.0, "new": 0.0}),
    "first values": (np.full(60, np.nan), [1.0] * 3 + [np.nan] * 6, {"new": 1 / 3, "new_values": {"1.0": 3}}),
    "first words": ([None] * 60, ["a"] * 3 + [None] * 6, {"new": 1 / 3, "new_values": {"a": 3}}),
    "no value any more": (np.arange(60.0), np.full(9, np.nan), {"missing": 1.0, "beyond": 0.0, "new": 0.0}),
    "words": (np.arange(60.0), [1, 2, None, "x", "x", "?", "1e3", "4", 5], {"new": 2 / 9, "new_values": {"x": 2}}),
    "booleans": ([True, False] * 30, [True] * 9, {"new": 0.0, "distance": 0.5}),
    "written booleans": ([True, False] * 30, ["true"] * 9, {"new": 0.0, "distance": 0.5}),
    "one category": (["a"] * 60, ["a"] * 5 + ["b"] * 4, {"new": 4 / 9, "distance": 4 / 9}),
    "texts of numbers": ([str(i) for i in range(60)], np.arange(0, 90, 10), {"beyond": 1 / 3, "new": 0.0}),
    "whole numbers": (np.arange(60), np.arange(55, 64, dtype=np.int8), {"beyond": 4 / 9}),
    "dates": (DAYS, DAYS[-9:] + 5, {"beyond": 5 / 9, "range": (DAYS[0].item(), DAYS[-1].item())}),
    "dates with a zone": (ZONED, ZONED[:9], {"beyond": 0.0, "kind": "dates with a time zone"}),
    "durations": (DAYS - DAYS[0], DAYS[:9] - DAYS[2], {"beyond": 2 / 9, "kind": "durations"}),
    "rounding": (np.arange(60) * 0.1, np.array([59 * 0.1 * (1 + 4e-16)] * 9), {"beyond": 0.0}),
    "huge": (np.arange(60) * 1e300, np.arange(51, 60) * -1e300, {"beyond": 1.0, "distance": 1.0}),
}


@pytest.mark.filterwarnings("ignore:X has")
@pytest.mark.parametrize(("before", "now", "expected"), ODD.values(), ids=ODD)
def test_odd_columns(before, now, expected):
    other = np.arange(60.0)
    model = model_of(x=before, other=other)
    report = drift(model, {"x": now, "other": other[:9]})
    column = report["x"]
    for name, value in expected.items():
        found = getattr(column, name)
        if name == "range":
            assert [str(end)[:10] for end in found] == [str(end)[:10] for end in value]
        else:
            assert found == pytest.approx(value) if isinstance(value, float) else found == value
    assert np.isfinite([column.psi, column.psi_noise, float(column.shift)]).all()
    assert "x" in str(report)
    assert "nan" not in str(report)
    assert "<table>" in report._repr_html_()
    frame = report.to_frame()
    assert len(frame) == 2
    assert frame["psi"].is_monotonic_decreasing or len(set(frame["psi_noise"])) > 1


def test_rows_come_in_every_form_of_a_table():
    X = {"a": np.arange(60.0), "b": ["u", "v"] * 30}
    model = model_of(**X)
    expected = str(drift(model, X))
    frame = pd.DataFrame(X)
    for form in (frame[["b", "a"]], frame.to_records(index=False), frame.to_dict("records")):
        assert str(drift(model, form)) == expected
    assert drift(model, {"a": 99.0, "b": "u"})["a"].beyond == 1.0


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"a": [], "b": []}, "X has no rows; give at least one"),
        ({"a": [1.0]}, r"X lacks the columns \['b'\]"),
        ({"a": [1.0], "b": ["u"], "c": [1]}, r"X has the columns \['c'\]"),
        ({"a": DAYS, "b": ["u"] * 60}, "column 'a' of X holds dates .* but numbers in the training data"),
    ],
)
def test_tables_that_cannot_be_compared_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        drift(model_of(a=np.arange(60.0), b=["u", "v"] * 30), X)


def test_models_without_columns_are_refused():
    with pytest.raises(TypeError, match="model must be a model of tables"):
        drift(mopn.Model(np.eye(2), np.eye(2)), np.eye(2))


def test_a_file_holds_what_the_report_needs(tmp_path):
    X = {"a": np.arange(60.0), "b": ["u", "v"] * 30, "c": [None, 1.0] * 30}
    later = {"a": np.arange(40.0), "b": ["u", "w"] * 20, "c": np.ones(40)}
    model = model_of(**X)
    model.save(tmp_path / "model.npz")
    assert str(drift(mopn.load(tmp_path / "model.npz"), later)) == str(drift(model, later))


def test_an_older_file_is_read_and_says_what_it_lacks(tmp_path):
    """It predicts and has effects as before."""
    X = {"a": np.arange(60.0), "b": ["u", "v"] * 30}
    model = model_of(**X)
    model.save(tmp_path / "new.npz")
    older = {name: value for name, value in read(tmp_path / "new.npz").items() if name not in TRAINING_FIELDS}
    np.savez(tmp_path / "old.npz", format=3, fields=list(older), **older)
    old = mopn.load(tmp_path / "old.npz")
    np.testing.assert_array_equal(old.predict(X), model.predict(X))
    assert effects(old).constant == pytest.approx(effects(model).constant, rel=0.05)
    with pytest.raises(ValueError, match=r"saved before model files held the distributions.*; fit and save it again"):
        drift(old, X)


@pytest.mark.parametrize("way", ["blocks", "weights", "single precision"])
def test_the_distribution_of_the_training_data_is_kept(way):
    """In blocks as at once, and with weights as with repeated rows; knots that a dtype merges leave none."""
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, 1.0, 400)
    x[:50] = np.nan
    weights = rng.integers(0, 4, 400)

    def table(rows):
        return read_table({"x": rows})

    expected = learn_encoding(table(np.repeat(x, weights)), curves=3, smoothness=1.0)
    if way == "blocks":
        rows = np.repeat(x, weights)
        parts = [summarise(table(rows[i::3]), None, ()) for i in range(3)]
        found = encoding_of(parts[0] + parts[1] + parts[2], curves=3, smoothness=1.0)
        assert found.training.n == expected.training.n
    elif way == "weights":
        found = learn_encoding(table(x), weights.astype(float), curves=3, smoothness=1.0)
        assert found.training.n == np.count_nonzero(weights)
    else:
        assert expected.rounded(np.float32).training is None
        return
    assert found.training.missing == pytest.approx(expected.training.missing)
    np.testing.assert_array_equal(found.training.below[0], expected.training.below[0])
    np.testing.assert_array_equal(found.training.up_to[0], expected.training.up_to[0])
    present = np.sort(np.repeat(x, weights))[: -np.sum(weights[:50]) or None]
    knots = found.numbers.parts[0][0]
    shares = np.searchsorted(present, knots, "right") / len(present)
    np.testing.assert_allclose(found.training.up_to[0], shares, atol=1e-6)

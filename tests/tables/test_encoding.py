"""Encodings against the obvious: interpolation by NumPy, mid-ranks by SciPy, indicators by comparison."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from scipy.stats import rankdata

from mopn.tables.fields import FIELDS, TRAINING_FIELDS, from_fields, to_fields
from mopn.tables.functions import CURVES, KNOTS
from mopn.tables.learning import learn_encoding
from mopn.tables.reading import read_table, row_of

RNG = np.random.default_rng(0)
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(d)) for d in RNG.integers(0, 900, 60)]
COLUMNS = {
    "real": RNG.standard_normal(60).tolist(),
    "whole": RNG.integers(0, 4, 60).tolist(),
    "two": RNG.integers(0, 2, 60).tolist(),
    "constant": [7] * 60,
    "city": RNG.choice(["Bern", "Rome", "Oslo"], 60).tolist(),
    "truth": (RNG.random(60) < 0.5).tolist(),
    "day": DAYS,
}
MISSING = COLUMNS | {name: [None, *COLUMNS[name][1:]] for name in ("real", "city", "day", "truth")}


def learned(X, weights=None, **options):
    return learn_encoding(read_table(X), weights, **({"curves": 4, "smoothness": 1.5} | options))


def tables(columns):
    names = list(columns)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    frame = pd.DataFrame(columns)
    categories = frame.astype({"city": "category", "day": "datetime64[s]"})
    cells = np.array([list(row.values()) for row in rows], object)
    missing = cells == None  # noqa: E711
    return {
        "dict": columns,
        "rows": rows,
        "objects": cells,
        "masked": np.ma.masked_array(np.where(missing, "hidden", cells), missing),
        "pandas": frame,
        "pandas, its own types": frame.convert_dtypes(),
        "pandas, categories and dates": categories,
        "polars": polars.DataFrame(columns, strict=False),
        "polars, categories": polars.DataFrame(columns).with_columns(polars.col("city").cast(polars.Categorical)),
        "arrow": pyarrow.table(columns),
    }


@pytest.mark.parametrize("kind", tables(COLUMNS))
@pytest.mark.parametrize("columns", [COLUMNS, MISSING], ids=["whole", "missing"])
def test_tables_of_all_kinds_are_the_same(kind, columns):
    expected = learned(columns).encode(columns)
    assert np.array_equal(learned(tables(columns)[kind]).encode(tables(columns)[kind]), expected)
    assert np.array_equal(learned(columns).encode(tables(columns)[kind]), expected)


TIMES = [f"{kind}[{unit}]" for kind in ("M8", "m8") for unit in ("ns", "us", "s", "D")]


@pytest.mark.parametrize("dtype", [float, *TIMES])
def test_masked_numbers_and_dates_are_missing(dtype):
    """Dates and times in days."""
    days = np.array([[1, 2], [4, 9]]).astype("m8[D]")
    cells = days.astype(float) if dtype is float else days.astype(dtype.replace("M", "m")).view(dtype)
    table = read_table(np.ma.masked_array(cells, [[False, True], [False, False]]))
    assert np.array_equal(np.column_stack(table.columns), [[1.0, np.nan], [4.0, 9.0]], equal_nan=True)


def test_features_of_numbers():
    """Itself and the curves are interpolated between values, and constant beyond them."""
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0, np.nan, 2.0])
    known = x[~np.isnan(x)]
    encoding = learned({"x": x}, curves=2, smoothness=1.0)
    at = np.array([0.0, 1.0, 1.5, 4.9, 9.0, np.nan])
    ranks = np.interp(at, np.sort(known), (np.sort(rankdata(known)) - 0.5) / len(known))
    values = np.unique(known)
    curves = np.sqrt(2.0) * np.cos(np.pi * np.outer((rankdata(known) - 0.5) / len(known), [1, 2])) / [1, 2]
    expected = [(np.clip(at, 1.0, 5.0) - known.mean()) / known.std()]
    expected += [np.interp(at, values, [curves[known == v, k].mean() for v in values]) for k in range(2)]
    features = encoding.encode({"x": at})
    assert np.allclose(features[:-1, :3], np.array(expected).T[:-1], atol=1e-14)
    assert features[-1].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert not features[:-1, 3].any()
    assert np.all(np.diff(ranks[:-1]) >= 0)
    assert encoding.feature_names.tolist() == ["x", "x, curve 1", "x, curve 2", "x is missing"]


@pytest.mark.parametrize(("n", "columns"), [(500, 1), (10_000, 1), (10_000, 20)])
def test_every_column_has_as_many_curves(n, columns):
    x = RNG.standard_normal((n, columns))
    assert learned(x, curves=None).numbers.widths.tolist() == [1 + CURVES] * columns


def test_outliers_do_not_decide_the_slope_of_a_column():
    x = np.append(RNG.standard_normal(5000), [1e3, 1e6, -50.0])
    linear = learned({"x": x}, curves=0, smoothness=1.0).encode({"x": [1e3, 1e9, -50.0, -1.0, 1.0]})[:, 0]
    assert linear[0] == linear[1]
    assert np.abs(linear[:3]).max() <= 3.0
    assert linear[4] - linear[3] == pytest.approx(2.0, rel=0.05)


def test_many_values_have_few_knots_at_equal_distances_in_rank():
    x = np.exp(3.0 * RNG.standard_normal(5000))
    encoding = learned({"x": x}, curves=3, smoothness=1.0)
    assert encoding.numbers.knots.shape == (1, KNOTS + 2)  # and the ends of the linear function
    expected = np.sqrt(2.0) * np.cos(np.pi * (rankdata(x) - 0.5) / len(x))
    # Between knots, at equal distances in rank, the curve is a line; the values are of order 1.
    within = (rankdata(x) > 200) & (rankdata(x) < 4800)
    assert np.abs(encoding.encode({"x": x})[:, 1] - expected)[within].max() < 0.08
    assert np.array_equal(encoding.encode({"x": [x.max() * 10]}), encoding.encode({"x": [x.max()]}))


def test_features_of_categories():
    city = ["Rome"] * 5 + ["Bern"] * 3 + [None] * 2
    encoding = learned({"city": city, "two": ["a", "b"] * 5, "x": range(10)}, curves=0)
    with pytest.warns(UserWarning, match="'city' of X has 1 row with 1 new value, such as 'Oslo'"):
        features = encoding.encode({"city": ["Bern", "Rome", None, "Oslo"], "two": ["a", "b", "b", "a"], "x": [1] * 4})
    assert encoding.feature_names.tolist() == ["x", "city = Bern", "city = Rome", "city is missing", "two = b"]
    assert features[:, 1:4].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.3, 0.5, 0.2]]
    assert features[:, 4].tolist() == [0, 1, 1, 0]


def test_categories_that_sound_like_missing_values_have_names_of_their_own():
    encoding = learned({"k": ["missing", None, "a rare category", "z"] * 5})
    assert encoding.feature_names.tolist() == ["k = a rare category", "k = missing", "k = z", "k is missing"]


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pyarrow.Table.from_pandas,
        lambda frame: {name: frame[name] for name in frame},
        lambda frame: {name: frame[name].array for name in frame},
        lambda frame: {name: pyarrow.array(frame[name]) for name in frame},
    ],
    ids=["pandas", "arrow", "series", "categoricals", "arrays of arrow"],
)
def test_categories_are_categories_whatever_they_are(make):
    """Numbers of 64 bits, which floats do not tell apart, and dates too."""
    columns = {
        "number": [2**60 + 1, 2**60 + 2, None] * 3,
        "real": [1.5, 2.0, 4.0] * 3,
        "day": [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"), pd.Timestamp("2020-03-01")] * 3,
    }
    frame = pd.DataFrame({name: pd.Categorical(column) for name, column in columns.items()})
    table = read_table(make(frame))
    codes = {name: frame[name].cat.codes.to_numpy() for name in frame}
    for name, column in zip(table.names, table.columns, strict=True):
        assert {str(text) for text in column if text is not None} == {text for text in column if text is not None}
        assert np.array_equal(column == None, codes[name] < 0)  # noqa: E711
        assert len(set(column)) == len(set(codes[name]))
    assert table.columns[1].tolist()[:3] == ["1.5", "2", "4"]
    # Numbers have the texts of the categories that they were.
    encoding = learned(frame)
    expected = encoding.encode(frame)
    assert np.array_equal(encoding.encode(frame.assign(real=columns["real"])), expected)


def test_rare_categories_have_one_feature_together():
    names = ["often"] * 5000 + ["rare", "seldom"]
    encoding = learned({"name": names, "x": np.arange(5002)}, curves=0)
    assert encoding.feature_names.tolist()[1:] == ["name is a rare category"]
    assert encoding.encode({"name": ["rare", "often"], "x": [0, 0]})[:, 1].tolist() == [1.0, 0.0]


def test_indicators_of_many_categories_are_sparse():
    names = [f"name {i % 300}" for i in range(900)]
    table = {"name": names, "x": np.arange(900.0)}
    features = learned(table).encode(table)
    assert features.format == "csr"
    assert np.array_equal(features[:, 5:].toarray().sum(axis=1), np.ones(900))


@pytest.mark.parametrize("columns", [COLUMNS, MISSING, {"city": COLUMNS["city"]}, {"real": COLUMNS["real"]}])
def test_fields_bring_an_encoding_back(columns):
    encoding = learned(columns)
    again = from_fields(to_fields(encoding))
    assert list(to_fields(encoding)) == [*FIELDS, *TRAINING_FIELDS]
    assert again.training.n == encoding.training.n
    for name in ("missing", "below", "up_to"):
        before = np.concatenate([np.zeros(0), *map(np.atleast_1d, getattr(encoding.training, name))])
        assert (
            np.concatenate([np.zeros(0), *map(np.atleast_1d, getattr(again.training, name))]).tolist()
            == before.tolist()
        )
    assert np.array_equal(again.encode(columns), encoding.encode(columns))
    assert again.feature_names.tolist() == encoding.feature_names.tolist()


@pytest.mark.parametrize(
    "row", [{"real": 0.5, "city": "Bern"}, {"city": "Oslo", "real": 2}, {"real": None, "city": None}]
)
def test_a_row_of_plain_values_is_read_soon_and_like_any_other(row):
    encoding = learned({name: COLUMNS[name] for name in ("city", "real")})
    assert encoding._plain_row(row) is not None
    frame = pd.DataFrame([row])
    assert isinstance(row_of(frame, encoding.columns, named=True), dict)
    cells = [row[name] for name in encoding.columns]
    assert row_of([cells], encoding.columns, named=True) == row
    for one in (row, frame, cells, [cells]):
        assert np.array_equal(encoding.encode(one), encoding.encode(pd.concat([frame, frame]))[:1])


def test_columns_are_taken_by_name():
    encoding = learned(COLUMNS)
    turned = dict(reversed(COLUMNS.items()))
    assert np.array_equal(encoding.encode(turned), encoding.encode(COLUMNS))
    with pytest.raises(ValueError, match=r"X lacks the columns \['real'\] and has the columns \['reel'\]"):
        encoding.encode({"reel" if name == "real" else name: column for name, column in COLUMNS.items()})


def test_declared_categories_and_widths():
    encoding = learned({"code": [1, 2, 3, 1.0] * 2, "x": [1.0, 2.0, 3.0, 4.0] * 2}, categorical_features=["code"])
    assert "code = 2" in encoding.feature_names
    with pytest.raises(ValueError, match=r"'id' of X has codes of categories from 2\*\*53 on.*make texts of them"):
        learned({"id": [2.0**60, 2.0**61] * 5}, categorical_features=["id"])
    assert learned({"id": [2**60 + 1, 2**60 + 2, 5] * 5}, categorical_features=["id"]).n_features == 3
    assert learned(RNG.standard_normal((50, 200))).n_features == 200
    assert learned(RNG.standard_normal((50, 100))).n_features == 200


@pytest.mark.parametrize(
    "column",
    [
        RNG.uniform(-1.0, 1.0, 60) * 1.5e308,
        RNG.standard_normal(60) * 1e-323,
        RNG.integers(-(2**62), 2**62, 60),
        [Decimal(i) / 7 for i in range(60)],
        pd.cut(RNG.standard_normal(60), 4),
        pd.period_range("2020-01", periods=60, freq="M").repeat(2),
        pd.timedelta_range("1D", periods=60),
    ],
    ids=["huge", "tiny", "large integers", "decimals", "intervals", "periods", "times"],
)
@pytest.mark.filterwarnings("ignore:X has texts that are dates")
def test_features_of_any_column_are_finite_and_of_order_one(column):
    frame = pd.DataFrame({"x": column})
    features = learned(frame).encode(frame)
    assert np.abs(features).max() < 10.0
    assert np.ptp(features, axis=0).min() > 0.1

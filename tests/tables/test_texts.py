"""Texts that are numbers are these at every door; other columns that are not meant as they came are named, once."""

import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars
import pytest
from c_library import COMPILER, REALS, call, compiled
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import mopn
from mopn.estimators import TableClassifier, TableEncoder, TableRegressor
from mopn.tables import summaries
from mopn.tables.functions import KNOTS
from mopn.tables.texts import MISSING, numbers_of

mpl.use("Agg")
import matplotlib.pyplot as plt

from mopn.plotting import plot_effect, plot_model, plot_pair

RNG = np.random.default_rng(0)
N = 60
NUMBERS = RNG.uniform(-50.0, 50.0, N).round(2)
WORDS = RNG.choice(["red", "green", "blue"], N)
Y = np.sin(NUMBERS / 20.0) + (WORDS == "red")
FIXED = {"strength": mopn.Ratio(0.05), "curves": 3, "max_units": 3, "tol": 0.1}


def with_missing(sign):
    """Return texts of numbers in which every seventh is missing, and the numbers."""
    texts, numbers = np.array([f"{x:.2f}" for x in NUMBERS], object), NUMBERS.copy()
    texts[::7], numbers[::7] = sign, np.nan
    return texts, numbers


SIGNS = ["?", "", "-", ".", " NA ", "N/a", "nan", "<NA>", "NULL", None]
TEXTS = {f"missing {sign!r}": with_missing(sign) for sign in SIGNS} | {
    "texts alone": (np.array([str(x) for x in NUMBERS], object), NUMBERS),
    "exponents": (np.array([f"{x:+.3e}" for x in NUMBERS], object), NUMBERS),
    "whole": (np.array([f" {int(x)}" for x in NUMBERS], object), np.trunc(NUMBERS)),
    "a mixture": (np.array(["?" if i % 5 == 0 else x for i, x in enumerate(NUMBERS)], object), None),
}
DOORS = {
    "frame": lambda x: pd.DataFrame({"x": x, "word": WORDS}),
    "frame of objects": lambda x: pd.DataFrame({"x": x, "word": WORDS}, dtype=object),
    "polars": lambda x: polars.DataFrame({"x": [None if t is None else str(t) for t in x], "word": WORDS.tolist()}),
    "columns": lambda x: {"x": list(x), "word": list(WORDS)},
    "rows": lambda x: [{"x": a, "word": b} for a, b in zip(x, WORDS, strict=True)],
}


def numbers_of_kind(kind):
    texts, numbers = TEXTS[kind]
    return texts, pd.to_numeric(pd.Series(texts), errors="coerce").to_numpy() if numbers is None else numbers


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", TEXTS)
def test_texts_of_numbers_are_numbers_at_every_door(kind, door):
    texts, numbers = numbers_of_kind(kind)
    X, expected = DOORS[door](texts), TableEncoder(curves=3).fit(DOORS["columns"](numbers))
    found = TableEncoder(curves=3).fit(X)  # without a warning, as nothing is to be done
    assert "texts that are numbers: they are read as numbers" in str(found.encoding_)
    features = expected.transform(DOORS["columns"](numbers))
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    for encoder in (found, expected):
        for rows in (X, DOORS["columns"](numbers)):
            np.testing.assert_array_equal(encoder.transform(rows), features)


@pytest.mark.parametrize("cuts", [(), (30,), (1, 2, 30, 30)])
@pytest.mark.parametrize("kind", TEXTS)
def test_blocks_of_texts_and_of_numbers_are_those_of_the_table(kind, cuts):
    """All blocks decide the kind of a column: some are read as numbers, as from files, and others hold only signs."""
    texts, numbers = numbers_of_kind(kind)
    parts = [slice(a, b) for a, b in pairwise((0, *cuts, N))]
    blocks = [DOORS["frame"](texts)[part] for part in parts]
    if len(parts) > 1:
        blocks[-1] = DOORS["frame"](numbers)[parts[-1]]
    found = TableEncoder(curves=3).fit(mopn.RowBlocks(blocks))
    expected = TableEncoder(curves=3).fit(DOORS["frame"](numbers))
    np.testing.assert_array_equal(found.encoding_.numbers.knots, expected.encoding_.numbers.knots)
    features = expected.transform(DOORS["frame"](numbers)[parts[0]])
    np.testing.assert_allclose(found.transform(blocks[0]), features, atol=1e-12)


def test_a_word_in_one_block_makes_categories_of_all():
    blocks = [pd.DataFrame({"x": x}) for x in (["1", "2", "?"] * 2, ["3", "tall", "tall", "3"])]
    names = TableEncoder().fit(mopn.RowBlocks(blocks)).get_feature_names_out().tolist()
    assert names == ["x = 1", "x = 2", "x = 3", "x = ?", "x = tall"]
    with pytest.raises(ValueError, match="numbers in some blocks and categories, such as '3', in others"):
        TableEncoder().fit(mopn.RowBlocks([pd.DataFrame({"x": [1.0, 2.0]}), *blocks]))


def test_more_numbers_than_categories_may_be(monkeypatch):
    monkeypatch.setattr(summaries, "MAX_CATEGORIES", 500)
    x = RNG.permutation(3000) / 7.0
    texts = np.array([*map(str, x[:-1]), "?"], object)
    blocks = [pd.DataFrame({"x": part}) for part in np.array_split(texts, 3)]
    numbers = TableEncoder().fit({"x": [*x[:-1], None]})
    for X in (pd.DataFrame({"x": texts}), mopn.RowBlocks(blocks), mopn.RowBlocks([blocks[0][:9], *blocks])):
        found = TableEncoder().fit(X)
        np.testing.assert_allclose(found.transform({"x": x}), numbers.transform({"x": x}), atol=0.02)
    with pytest.raises(ValueError, match="column 'x' of X has more than 500 categories"):
        TableEncoder().fit({"x": [*texts, "tall"]})


@pytest.fixture(scope="module")
def fitted():
    """A model of texts of numbers, and the one of the numbers."""
    texts, numbers = with_missing("?")
    model = TableRegressor(**FIXED).fit(DOORS["frame"](texts), Y).model_
    return model, TableRegressor(**FIXED).fit(DOORS["frame"](numbers), Y).model_


ROWS = {"x": ["12.5", "?", "-3", "99"], "word": ["red", "blue", "red", "green"]}
ROW_NUMBERS = np.array([12.5, np.nan, -3.0, 99.0])


def in_python(model, folder):
    return model.predict(ROWS)


def of_a_file(model, folder):
    model.save(folder / "model.npz")
    return mopn.load(folder / "model.npz").predict(ROWS)


def of_onnx(model, folder):
    runtime = pytest.importorskip("onnxruntime")
    graph = mopn.export.to_onnx(model, dtype="float64").SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    given = {"x": ROW_NUMBERS[:, None], "word": np.array(ROWS["word"], object)[:, None]}
    return session.run(["prediction"], given)[0]


def of_c(model, folder):
    if COMPILER is None:
        pytest.skip("no C compiler")
    words = model.encoding.categories[0].categories
    rows = np.column_stack([ROW_NUMBERS, [words.index(word) for word in ROWS["word"]]])
    return in_c(model, folder, rows, "float64")


def in_c(model, folder, rows, dtype):
    """Return the outputs of a header."""
    real, numpy_type = REALS[dtype]
    mopn.export.to_c(model, folder / "model.h", dtype=dtype)
    text = f'#include "model.h"\nvoid f(const {real} *x, {real} *out) {{ model_outputs(x, out); }}\n'
    library = compiled(folder, text)
    return np.array([call(library.f, row, 1, numpy_type) for row in rows.astype(numpy_type)])[:, 0]


@pytest.mark.parametrize("door", [in_python, of_a_file, of_onnx, of_c])
def test_models_of_texts_are_those_of_numbers(fitted, tmp_path, door):
    model, expected = fitted
    found = door(model, tmp_path)
    np.testing.assert_allclose(found.ravel(), expected.predict(ROWS | {"x": ROW_NUMBERS}), rtol=1e-9)


def test_other_texts_in_place_of_numbers_are_refused(fitted):
    with pytest.raises(ValueError, match="column 'x' of X holds 'tall', but numbers"):
        fitted[0].predict(ROWS | {"x": ["1", "?", "tall", "2"]})


@pytest.mark.parametrize("text", ["007", "1_000", "inf", "1e999", "0x1A", "one", "1,5", "٣", "1 2", "+", "e5"])
def test_what_is_no_plain_number(text):
    assert numbers_of(["1.0", text]) is None


def test_signs_of_missing_numbers():
    assert np.isnan(numbers_of([*MISSING, None])).all()


# -- doubts ------------------------------------------------------------------------------------------------------------

DAYS = pd.date_range("1999-01-03", periods=N, freq="37D")
ROW = np.arange(1, N + 1)
# Values that share few patterns of digits and signs, in every form.
VALUES = {
    "weights": [f"{x:.1f} kg" for x in NUMBERS],
    "sizes": [f"{i} MB" if i % 3 else f"{i}.5 GB" for i in ROW],
    "heights": [f"{4 + i // 12}'{i % 12}\"" for i in ROW],
    "temperatures": [f"{i - 30}°C" for i in ROW],
    "coordinates": [f"{x:.3f}, {-x:.3f}" for x in NUMBERS],
    "blood pressures": [f"{90 + i}/{60 + i}" for i in ROW],
    "exponents with units": [f"{x:.2e} Pa" for x in NUMBERS],
    "times of day": [f"{i % 24:02d}:{i % 60:02d}:05" for i in ROW],
    "times before and after noon": [f"{i % 12 + 1}:{i % 60:02d} {'AP'[i % 2]}M" for i in ROW],
    "durations": [f"{i // 7}h {i}m" for i in ROW],
    "ISO durations": [f"PT{i // 7}H{i}M" for i in ROW],
    "long durations": [f"{i} days 03:00:00" for i in ROW],
    "weeks": [f"2014-W{i:02d}" for i in ROW],
    "basic ISO dates": DAYS.strftime("%Y%m%dT000000"),
    "dates in French": [f"{i} {'mars' if i % 2 else 'juin'} 2014" for i in ROW],
    "mixed with a few words": [*[f"{i} kg" for i in ROW[2:]], "heavy", "light"],
}
DOUBTS = {
    **{name: (texts, "texts that look like quantities or times") for name, texts in VALUES.items()},
    "dates of e-mails": (DAYS.strftime("%a, %d %b %Y 00:00:00 +0000"), "texts that are dates"),
    "dates of C": (DAYS.strftime("%a %b %d 00:00:00 %Y"), "texts that are dates"),
    "long dates": (DAYS.strftime("%A, %d. %B %Y"), "texts that are dates"),
    "negative numbers of accounts": ([f"({i})" if i % 2 else f"{i}" for i in ROW], "texts that are mostly numbers"),
    "codes of currencies": ([f"USD {i},000.50" for i in ROW], "texts that are mostly numbers"),
    "ISO dates": (DAYS.strftime("%Y-%m-%d"), "texts that are dates .*pandas.to_datetime"),
    "times": (DAYS.strftime("%Y-%m-%dT%H:%M:%SZ"), "texts that are dates"),
    "American dates": (DAYS.strftime("%m/%d/%Y 0:00:00"), "texts that are dates"),
    "German dates": (DAYS.strftime("%d.%m.%y"), "texts that are dates"),
    "months": ([f"{x} Sep" for x in range(1940, 1940 + N)], "texts that are dates"),
    "names of months": (DAYS.strftime("%b %d, %Y"), "texts that are dates"),
    "quarters": ([f"{1990 + i // 4}Q{1 + i % 4}" for i in range(N)], "texts that are dates"),
    "dates and missing": ([*DAYS[:-1].strftime("%Y-%m-%d"), "?"], "texts that are dates"),
    "decimal commas": ([f"{x:.2f}".replace(".", ",") for x in NUMBERS], "texts that are mostly numbers"),
    "thousands": ([f"{1000.5 * x:,.2f}" for x in NUMBERS], "texts that are mostly numbers"),
    "other thousands": ([f"{i}.234,5" for i in ROW], "texts that are mostly numbers"),
    "shares": ([f"{i} %" for i in ROW], "texts that are mostly numbers .*pandas.to_numeric"),
    "prices": ([f"${i}.50" for i in ROW], r"texts that are mostly numbers in column 'x' \(but '\$\d+.50'\)"),
    "a word among numbers": ([*map(str, NUMBERS[:-1]), "low"], r"mostly numbers in column 'x' \(but 'low'\)"),
    "sentences": ([f"the bird number {i} hit it" for i in ROW], "60 categories in 60 rows, .*encode its words"),
    "codes": ([f"{i:05d}" for i in ROW], "a category of its own for most rows in column 'x'"),
    "names and missing": ([f"n{i}" if i % 3 else None for i in ROW], "40 categories in 40 rows"),
}
MEANT = {
    "a few categories": WORDS,
    "codes of towns": RNG.choice(["01234", "20095", "10115"], N),
    "bands": RNG.choice(["10-19", "20-29", "30+"], N),
    "seasons": RNG.choice(["2019-20", "2020-21", "2021-22"], N),
    "booleans": WORDS == "red",
    "names that come again": [f"n{i % 25}" for i in range(N)],
    "numbered": [f"type {i % 25}" for i in range(N)],
    "lettered": [f"{'ABC'[i % 3]}{i // 3}" for i in range(N // 2)] * 2,
    "coded": [f"C-{i % 25 + 100}" for i in range(N)],
    "seats": [f"{i // 6 + 1}{'ABCDEF'[i % 6]}" for i in range(N // 2)] * 2,
    "versions": [f"v1.{i // 10}.{i % 10}" for i in range(N // 2)] * 2,
    "telephone numbers": [f"555-{i % 25 + 1000}" for i in range(N)],
    "five-year bands": [f"{5 * (i % 20)}-{5 * (i % 20) + 4}" for i in range(N)],
    "doses": [f"{(5, 10, 20, 40)[i % 4]} mg" for i in range(N)],
    "seasons of months": [("Aug2Dec", "Dec2Feb", "Feb2May")[i % 3] for i in range(N)],
    "two dates": np.where(WORDS == "red", "2020-01-01", "2021-01-01"),
    "categories of numbers": pd.Categorical(ROW % 7),
    "categories of all rows": pd.Categorical([f"n{i // 2}" for i in range(N)]),
    "numbers": NUMBERS,
    "times of numbers": ROW,
    "dates": DAYS,
}


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("kind", DOUBTS)
def test_columns_that_are_not_meant_so_are_named_at_fit(kind, blocks):
    values, said = DOUBTS[kind]
    X = pd.DataFrame({"x": np.array(values, object), "z": NUMBERS})
    with pytest.warns(UserWarning, match=f"^X has .*column 'x'.*{said.partition('.*')[2]}") as caught:
        TableEncoder().fit(mopn.RowBlocks([X[:20], X[20:]]) if blocks else X)
    assert [warning.filename for warning in caught] == [__file__]
    assert caught[0].message.args[0].count("column 'x'") == 1


@pytest.mark.parametrize("kind", DOUBTS)
def test_declared_categories_are_meant(kind):
    TableEncoder(categorical_features=["x"]).fit({"x": list(DOUBTS[kind][0]), "z": NUMBERS})


@pytest.mark.parametrize("kind", MEANT)
def test_ordinary_columns_are_not_named(kind):
    TableEncoder().fit(pd.DataFrame({"x": MEANT[kind], "z": NUMBERS}))


@pytest.mark.parametrize("name", ["rownames", "Unnamed: 0", "index", "row_number", "ID", "patient_id", "row.names"])
def test_row_numbers_are_named(name):
    """In any order, as in a part of the rows; not under other names, of times say, nor if they come again."""
    shuffled = RNG.permutation(3 * N)[:N]
    with pytest.warns(UserWarning, match=rf"^X has what looks like row numbers in column '{name}' \(\d+ to \d+, all"):
        TableEncoder().fit({name: shuffled, "z": NUMBERS})
    TableEncoder().fit({"year": shuffled, "grid": ROW, name: shuffled // 2})


def test_all_columns_are_named_in_one_warning_at_the_line_of_the_user():
    columns = {f"c{i}": [f"{x} kg" for x in NUMBERS + i] for i in range(7)}
    columns["texts"] = [f"{x}" for x in NUMBERS]
    columns |= {"day": DAYS.strftime("%Y-%m-%d"), "id": ROW, "word": WORDS, "a": None, "b": np.nan}
    model = make_pipeline(FunctionTransformer(), TableClassifier(**FIXED))
    with pytest.warns(UserWarning, match="^X has") as caught:
        model.fit(pd.DataFrame(columns), WORDS)
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    assert "quantities or times in columns 'c0', 'c1', 'c2', 'c3', 'c4' and 2 more (such as" in text
    assert "texts that are dates in column 'day'" in text
    assert "row numbers in column 'id'" in text
    assert "no value in columns 'a', 'b': " in text
    assert "'word'" not in text
    assert "'texts'" not in text


@pytest.mark.filterwarnings("ignore:X has:UserWarning")
def test_an_encoding_shows_its_columns(tmp_path):
    few = np.arange(N) < 1
    columns = {"x": np.where(few, np.nan, NUMBERS), "code": [f"{i % 4}" for i in ROW], "id": ROW, "day": DAYS}
    columns |= {"word": np.where(few, "<b>", "red"), "three": 3.0, "rare": np.where(few, 1.5, np.nan), "none": None}
    columns["town"] = ROW % 3
    model = TableRegressor(**FIXED, categorical_features=["town"]).fit(pd.DataFrame(columns), NUMBERS)
    caption, _, *lines = str(model.encoding_).splitlines()
    assert caption == f"{N} rows, {len(columns)} columns, {model.encoding_.n_features} features"
    holds = {
        "x": ["numbers", "1.7%"],
        "code": ["0 to 3", "texts that are numbers"],
        "id": ["1 to 60", "what looks like row numbers"],
        "day": ["dates", f"{DAYS[0]:%Y-%m-%d} to {DAYS[-1]:%Y-%m-%d}"],
        "word": ["2 categories: red 98%, <b> 2%", "one value nearly always"],
        "three": ["one value: it has no effect"],
        "rare": ["98.3%", "nearly all values missing"],
        "none": ["100.0%", "no value"],
        "town": ["categories", "3 categories: 0 33%, 1 33%, 2 33%"],
    }
    for line, (column, words) in zip(lines, holds.items(), strict=True):
        assert line.startswith(column)
        assert all(word in line for word in words), line
    html = model.encoding_._repr_html_()
    assert "&lt;b&gt;" in html
    assert html.count("<tr>") == 1 + len(columns)
    model.save(tmp_path / "model.npz")
    loaded = mopn.load(tmp_path / "model.npz").encoding
    assert loaded._repr_html_() == f"<code>{loaded}</code>"
    wide = TableEncoder().fit(RNG.normal(size=(4, 120))).encoding_
    assert "the first 100 of them below" in str(wide)
    assert str(wide).count("\n") == 101


def test_unknown_categories_of_all_columns_are_one_warning_at_the_line_of_the_user():
    X = pd.DataFrame({"word": WORDS, "other": WORDS[::-1]})
    model = make_pipeline(FunctionTransformer(), TableClassifier(**FIXED)).fit(X, WORDS)
    said = "'word' of X has 60 rows with 1 new value, such as 'pink'; column 'other' of X has 60 rows with 2 new values"
    with pytest.warns(UserWarning, match=f"{said}, such as 'grey'") as caught:
        model.predict(X.assign(word="pink", other=["grey", "grey", "beige"] * 20))
    assert [warning.filename for warning in caught] == [__file__]


NEW = pd.DataFrame({"word": ["pink"] * N, "other": ["grey", "beige"] * (N // 2), "z": NUMBERS})
CALLS = {
    "predict": lambda model: model.predict(NEW),
    "score": lambda model: model.score(NEW, WORDS),
    "effects": lambda model: mopn.explain.effects(model, NEW),
    "shap": lambda model: mopn.explain.shap_values(model, NEW),
    "plot_model": lambda model: plot_model(model, NEW),
    "plot_effect": lambda model: plot_effect(model, "word", NEW),
    "plot_pair": lambda model: plot_pair(model, "word", "z", NEW),
}


@pytest.fixture(scope="module")
def of_words():
    X = pd.DataFrame({"word": WORDS, "other": WORDS[::-1], "z": NUMBERS})
    return TableClassifier(**FIXED).fit(X, WORDS)


@pytest.mark.parametrize("call", CALLS)
def test_unknown_categories_are_named_once_a_call(of_words, call):
    with pytest.warns(UserWarning, match="'word' of X has 60 rows with 1 new value, such as 'pink'") as caught:
        CALLS[call](of_words)
    plt.close("all")
    assert len(caught) == 1


def test_effects_do_not_repeat_the_warning_of_their_background(of_words):
    with pytest.warns(UserWarning, match="60 rows with 1 new value"):
        found = mopn.explain.effects(of_words, NEW)
    found.sizes()
    found.main("word")
    found.main("word", ["pink"])
    found.pair("word", "other")
    with pytest.warns(UserWarning, match="'word' of values has 2 rows with 1 new value, such as 'mauve'") as caught:
        found.main("word", ["mauve", "pink", "mauve"])
    assert len(caught) == 1


# -- different values that are the same number -------------------------------------------------------------------------

WHICH = np.arange(N) % 6
BIG = 123456789012345678
MERGED = {
    "int64": BIG + WHICH,
    "uint64": np.uint64(2**63) + WHICH.astype(np.uint64),
    "integers of Python": [BIG + int(i) for i in WHICH],
    "integers and missing": [None if i == 5 else BIG + int(i) for i in WHICH],
    "Int64": pd.array(BIG + WHICH, dtype="Int64"),
    "Arrow": pd.array((BIG + WHICH).tolist(), dtype="int64[pyarrow]"),
    "polars": polars.Series(BIG + WHICH),
    "decimals": [Decimal(f"0.1234567890123456789{i}") for i in WHICH],
    "decimals of polars": polars.Series([Decimal(f"0.1234567890123456789{i}") for i in WHICH]),
    "fractions": [Fraction(10**18 + int(i), 10**18) for i in WHICH],
    "versions": [("1.1", "1.10", "1.2", "1.20", "1.9", "1.90")[i] for i in WHICH],
    "exponents": [("100", "1E2", "1", "+1", " 2", "2")[i] for i in WHICH],
    "big texts": [str(BIG + i) for i in WHICH],
}


@pytest.mark.parametrize("cuts", [(), (30,), tuple(range(1, 7))])
@pytest.mark.parametrize("kind", MERGED)
def test_values_that_become_one_number_are_named_once(kind, cuts):
    """Also if every block has one of them alone."""
    values = MERGED[kind]
    parts = [slice(a, b) for a, b in pairwise((0, *cuts, N))]
    blocks = [{"x": values[part], "z": NUMBERS[part]} for part in parts]
    X = blocks[0] if len(blocks) == 1 else mopn.RowBlocks([lambda block=block: block for block in blocks])
    with pytest.warns(UserWarning, match=r"^X has different values that are the same number in column 'x'") as caught:
        found = TableEncoder().fit(X)
    assert [warning.filename for warning in caught] == [__file__]
    a, b = re.search(r"\((.*) and (.*)\): if", str(caught[0].message)).groups()
    assert a != b
    assert float(a.strip("'") if "/" not in a else Fraction(a)) == float(b.strip("'") if "/" not in b else Fraction(b))
    assert "different values that are the same number: " in str(found.encoding_)


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("kind", MERGED)
def test_declared_values_stay_apart(kind, blocks):
    table = {"x": MERGED[kind], "z": NUMBERS}
    halves = [{name: column[part] for name, column in table.items()} for part in (slice(0, 30), slice(30, N))]
    found = TableEncoder(categorical_features=["x"]).fit(
        mopn.RowBlocks([lambda half=half: half for half in halves]) if blocks else table
    )
    features = found.transform(table)[:, [name.startswith("x") for name in found.get_feature_names_out()]]
    assert len(np.unique(features, axis=0)) == 6
    np.testing.assert_array_equal(features[:6], features[6:12])


@pytest.mark.parametrize("row", [0, 1, 5])
def test_a_row_of_big_integers_is_that_of_the_table(row):
    table = pd.DataFrame({"x": BIG + WHICH, "z": NUMBERS})
    found = TableEncoder(categorical_features=["x"]).fit(table)
    expected = found.transform(table)[[row]]
    for X in (table.iloc[[row]], table[row : row + 1].to_dict("list"), {"x": BIG + row, "z": NUMBERS[row]}):
        np.testing.assert_array_equal(found.transform(X), expected)
    with pytest.warns(UserWarning, match="1 row with 1 new value"):  # pandas has rounded it
        found.transform(table.iloc[row])


@pytest.mark.parametrize("unit", ["ns", "ps"])
@pytest.mark.parametrize("dtype", ["M8", "m8"])
def test_times_below_a_microsecond_are_named(dtype, unit):
    with pytest.warns(UserWarning, match="durations that differ by less than a microsecond in column 'x'"):
        TableEncoder().fit({"x": (2 * WHICH).astype(f"{dtype}[{unit}]"), "z": NUMBERS})
    TableEncoder().fit({"x": (1000_000 * WHICH).astype(f"{dtype}[{unit}]"), "z": NUMBERS})


@pytest.mark.parametrize(
    "x",
    [BIG + 64 * WHICH, [Decimal(int(i)) / 4 for i in WHICH], [f"{i}.5" for i in WHICH], WHICH.astype("m8[ns]") * 1000],
    ids=["integers far apart", "decimals", "texts", "durations"],
)
def test_numbers_that_stay_apart_are_not_named(x):
    TableEncoder().fit({"x": x, "z": NUMBERS})


# -- rounding ----------------------------------------------------------------------------------------------------------

# Numbers that are equal up to rounding, and the additions to them in a second half of the rows.
ROUNDING = {
    "a sum": ([0.3, 0.5, 0.9], [5.6e-17, 0.0, 1.1e-16]),
    "margins": ([0.03, -0.07, 0.0, 0.11], [4e-17, -5e-17, 2e-17, 0.0]),
    "large": ([1e9 + 0.1, 2e9 + 0.3, 3e9], [2.4e-7, -4.8e-7, 4.8e-7]),
    "small": ([3e-200, 5e-200, 9e-200], [7e-216, -7e-216, 0.0]),
    "next to an outlier": ([0.3, 0.6, 1e20], [5.6e-17, 1.1e-16, 0.0]),
}


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("kind", ROUNDING)
def test_numbers_that_differ_by_rounding_are_one_value(kind, blocks):
    exact, added = map(np.array, ROUNDING[kind])
    x = np.concatenate([np.tile(exact, 10), np.tile(exact + added, 10)])
    assert len(np.unique(x)) > len(exact)
    order = RNG.permutation(len(x))
    X = pd.DataFrame({"x": x[order]})
    found = TableEncoder().fit(mopn.RowBlocks([X[:25], X[25:]]) if blocks else X)
    expected = TableEncoder().fit({"x": np.tile(exact, 20)})
    assert len(found.encoding_.numbers.knots[0]) == len(exact)
    for values in (exact, exact + added):
        np.testing.assert_allclose(found.transform({"x": values}), expected.transform({"x": exact}), atol=2e-6)


WITH_ROUNDING = np.where(np.arange(N) % 2, np.arange(N) % 5 * 0.2, np.arange(N) % 5 / 5)
OF_NUMBERS = {
    "declared": (WITH_ROUNDING, ["x"]),
    "objects": (WITH_ROUNDING.astype(object), ["x"]),
    "category": (pd.Series(pd.Categorical(WITH_ROUNDING)), []),
    "texts": ([str(x) for x in WITH_ROUNDING], ["x"]),
    "among words": (["tall" if i % 7 == 0 else x for i, x in enumerate(WITH_ROUNDING)], []),
}


@pytest.mark.parametrize("kind", OF_NUMBERS)
def test_categories_that_differ_by_rounding_are_one(kind):
    values, declared = OF_NUMBERS[kind]
    assert 0.2 * 3 in WITH_ROUNDING
    assert 3 / 5 in WITH_ROUNDING
    found = TableEncoder(categorical_features=declared).fit({"x": values, "z": NUMBERS})
    names = found.get_feature_names_out().tolist()
    words = ["0.0" if kind == "texts" else "0", "0.2", "0.4", "0.6", "0.8", *["tall"] * (kind == "among words")]
    assert [name for name in names if name.startswith("x")] == [f"x = {word}" for word in words]
    expected = found.transform({"x": ["0.6"], "z": [0.0]})
    for equal in (0.2 * 3, 3 / 5, np.nextafter(0.6, 0.0), str(0.2 * 3)):
        np.testing.assert_array_equal(found.transform({"x": [equal], "z": [0.0]}), expected)
    with pytest.warns(UserWarning, match="1 row with 1 new value"):
        found.transform({"x": [0.6 + 1e-12], "z": [0.0]})


@pytest.mark.parametrize(
    "x",
    [
        np.arange(100.0) + 2.0**52,
        np.arange(1.7e18, 1.7e18 + 25_600, 256),
        1.7e9 + np.arange(100) * 1e-4,
        np.arange(100) * 5e-324,
        0.1 + np.arange(100) * 1e-14,
    ],
    ids=["whole numbers", "nanoseconds", "seconds", "denormals", "near each other"],
)
def test_small_differences_that_are_no_rounding_stay(x):
    assert len(TableEncoder().fit({"x": x}).encoding_.numbers.knots[0]) == KNOTS


def test_chains_of_near_numbers_are_no_single_value():
    x = 0.1 + np.arange(1000) * 2.0**-53
    knots = TableEncoder().fit({"x": x}).encoding_.numbers.knots[0]
    assert len(knots) >= KNOTS
    assert np.diff(knots).min() > 2.0**-48 * x[-1]


def test_a_column_that_varies_by_rounding_alone_has_no_features():
    names = TableEncoder().fit({"x": [0.3, 0.1 + 0.2] * 9, "z": range(18)}).get_feature_names_out()
    assert not any(name.startswith("x") for name in names)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["a sum", "margins", "large"])
def test_exports_agree_on_numbers_that_differ_by_rounding(tmp_path, kind, dtype):
    """At every knot, and to both sides of it."""
    exact, added = map(np.array, ROUNDING[kind])
    x = np.concatenate([np.tile(exact, 10), np.tile(exact + added, 10)])
    y = np.where(np.arange(len(x)) < len(x) // 2, np.cos(9.0 * np.argsort(np.argsort(x))), -1.0)
    model = TableRegressor(**FIXED).fit({"x": x}, y).model_
    rows = np.concatenate([x, *(np.nextafter(x, end) for end in (-np.inf, np.inf))])
    expected, tolerance = model.predict(rows[:, None]), {"float32": 1e-4, "float64": 1e-9}[dtype]
    runtime = pytest.importorskip("onnxruntime")
    graph = mopn.export.to_onnx(model, dtype=dtype).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    found = [session.run(["prediction"], {"X": rows[:, None].astype(dtype)})[0].ravel()]
    if COMPILER is not None:
        found.append(in_c(model, tmp_path, rows[:, None], dtype))
    for outputs in found:
        np.testing.assert_allclose(outputs, expected, atol=tolerance * np.ptp(y))


@pytest.mark.parametrize("scale", [1.0, 1.0 / 40])
def test_categories_of_a_single_row_are_rare(scale):
    """A weight of 2 is a row twice; weights that add up to 1, say, tell nothing of repetitions."""
    city = ["Rome"] * 20 + ["Bern"] * 17 + ["Oslo"] * 2 + ["Riga"]
    names = TableEncoder().fit({"city": city}, sample_weight=np.full(40, scale)).get_feature_names_out().tolist()
    assert names == ["city = Bern", "city = Oslo", "city = Rome", "city is a rare category"]
    twice = np.append(np.ones(39), 2.0)
    assert "city = Riga" in TableEncoder().fit({"city": city}, sample_weight=twice).get_feature_names_out()

"""Every cell of the page's table of types, tried with values at every door; and rules between types."""

import datetime
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from sklearn.base import clone
from sklearn.inspection import partial_dependence
from values_of_types import TYPES

import mopn
from mopn.estimators import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    OrdinalPNRegressor,
    PathCV,
    TableClassifier,
    TableEncoder,
    TableRegressor,
)
from mopn.tables.reading import read_table

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
N = 12
OTHER = np.random.default_rng(0).standard_normal(N)
X = np.column_stack([OTHER, OTHER[::-1]])
QUICK = {"max_units": 1, "tol": 0.1}
FIXED = {"strength": mopn.Ratio(0.1), "curves": 1} | QUICK
UTC = datetime.UTC


def rows_of_the_page():
    """The cells of the table below its heading, by type; the types that are refused everywhere are in a sentence."""
    section = PAGE.read_text(encoding="utf-8").split("## What each type becomes")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    refused = re.search(r"^Refused everywhere: (.*)\.$", section, flags=re.MULTILINE)[1]
    return {row[0]: row[1:] for row in rows[2:]} | {kind: ["refused"] * 5 for kind in refused.split("; ")}


ROWS = rows_of_the_page()
VALUES = [
    pytest.param(kind, make, id=f"{kind}: {storage}") for kind, made in TYPES.items() for storage, make in made.items()
]


def test_the_page_has_every_type_that_is_tried():
    assert ROWS.keys() == TYPES.keys()


# -- columns of tables -------------------------------------------------------------------------------------------------


def containers(values):
    """The same column in tables of all kinds, next to a column of numbers."""
    yield {"a": values, "b": OTHER}
    cells = list(values) if not hasattr(values, "to_pylist") else values.to_pylist()
    yield [{"a": cell, "b": other} for cell, other in zip(cells, OTHER, strict=True)]
    if isinstance(values, pd.Series):
        yield pd.DataFrame({"a": values, "b": OTHER})
        yield polars.DataFrame({"a": values.tolist(), "b": OTHER}, strict=False) if values.dtype == object else None
    if isinstance(values, polars.Series):
        yield polars.DataFrame({"a": values, "b": OTHER})
    if isinstance(values, pyarrow.Array):
        yield pyarrow.table({"a": values, "b": OTHER})
        yield pyarrow.RecordBatch.from_pydict({"a": values, "b": pyarrow.array(OTHER)})
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OSU":
        yield np.rec.fromarrays([values, OTHER], names="a, b")


# The statement of a cell about the first column: the numbers or texts that the values of TYPES become.
READ = {
    "number": lambda cells: [float(cell) for cell in cells],
    "category": lambda cells: [str(cell) for cell in cells],
    "category, as UTF-8": lambda cells: [cell.decode() for cell in cells],
    "days since 1970": lambda cells: [days(cell) for cell in cells],
    "days since 1970 in UTC": lambda cells: [days(cell.astimezone(UTC).replace(tzinfo=None)) for cell in cells],
    "days since 1970 of its start": lambda cells: [days(cell.start_time) for cell in cells],
    "days": lambda cells: [pd.Timedelta(cell) / pd.Timedelta(days=1) for cell in cells],
    "seconds": lambda cells: [3600.0 * cell.hour + 60.0 * cell.minute + cell.second for cell in cells],
    "missing": lambda cells: [None if pd.isna(cell) else cell for cell in cells],
}


def days(date):
    return (pd.Timestamp(date) - pd.Timestamp(0)) / pd.Timedelta(days=1)


@pytest.mark.parametrize(("kind", "make"), VALUES)
def test_columns_of_tables(kind, make):
    cell, values = ROWS[kind][0], make(N)
    for table in filter(lambda table: table is not None, containers(values)):
        if cell == "refused":
            with pytest.raises((TypeError, ValueError), match=r"column '?a|Complex data not supported"):
                TableEncoder(curves=1).fit(table)
            continue
        if cell == "no effect, warned of":
            with pytest.warns(UserWarning, match=r"X has no value in column 'a': it has no effect") as found:
                encoder = TableEncoder(curves=1).fit(table)
            assert [warning.filename for warning in found] == [__file__]
            assert encoder.get_feature_names_out().tolist() == ["b", "b, curve 1"]
            assert encoder.transform({"a": "anything", "b": 0.0}).shape == (1, 2)
            continue
        column = read_table(table).columns[0]
        expected = READ[cell](plain(values))
        if column.dtype.kind == "f":
            expected = np.array([np.nan if number is None else number for number in expected])
            assert np.allclose(column, expected, rtol=1e-12, atol=0.0, equal_nan=True)
        else:
            assert column.tolist() == expected


def plain(values):
    return values.to_pylist() if hasattr(values, "to_pylist") else list(values)


@pytest.mark.parametrize(("kind", "make"), [value for value in VALUES if ROWS[value.values[0]][0] != "refused"])
def test_tables_are_encoded_alike_at_every_door(kind, make):
    """In one storage and another, in blocks, and a single row as a dictionary, a Series or a list."""
    tables = [table for table in containers(make(N)) if table is not None]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has no value in column 'a'")
        encoder = TableEncoder(curves=1).fit(tables[0])
        features = encoder.transform(tables[0])
        for table in tables:
            assert np.array_equal(encoder.transform(table), features)
            if hasattr(table, "columns"):
                assert np.array_equal(encoder.transform(table[:1]), features[:1])
            again = TableEncoder(curves=1).fit(mopn.RowBlocks([lambda table=table: table]))
            assert np.array_equal(again.transform(tables[0]), features)
    row = tables[1][0]
    for one in (row, pd.Series(row, dtype=object), dict(reversed(row.items()))):
        assert np.array_equal(encoder.transform(one), features[:1])


@pytest.mark.parametrize(("kind", "make"), VALUES)
def test_features_of_other_estimators(kind, make):
    cell, values = ROWS[kind][1], make(N)
    if isinstance(values, pyarrow.Array | polars.Series):
        values = values.to_pandas() if isinstance(values, polars.Series) else pd.Series(values.to_pylist())
    frame = pd.DataFrame({"a": values, "b": OTHER})
    for estimator in (MultiOutputPNRegressor(**QUICK), FactorizationMachineRegressor(max_iter=1, random_state=0)):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            if cell == "refused":
                with pytest.raises((TypeError, ValueError)):
                    estimator.fit(frame, OTHER)
            else:
                numbers = np.column_stack([[float(x) for x in plain(values)], OTHER])
                found = estimator.fit(frame, OTHER).predict(frame)
                assert np.array_equal(found, estimator.fit(numbers, OTHER).predict(numbers))


# -- targets -----------------------------------------------------------------------------------------------------------

PARTS = [X[:5], X[5:]]
LEVELS = OrdinalPNRegressor(max_units=1, tol=1.0)
# Estimators by the kind of their predictions, and estimators that read y in ways of their own.
NETWORKS = {"class": MultiOutputPNClassifier(**QUICK), "number": MultiOutputPNRegressor(**QUICK), "level": LEVELS}
OTHERS = {
    "class": [TableClassifier(**FIXED), FactorizationMachineClassifier(max_iter=1, random_state=0)],
    "number": [TableRegressor(**FIXED), FactorizationMachineRegressor(max_iter=1, random_state=0)],
    "level": [],
}
DOORS = {
    "memory": lambda what, y: [clone(NETWORKS[what]).fit(X, y)],
    "blocks": lambda what, y: [clone(NETWORKS[what]).fit(mopn.RowBlocks(PARTS), y)],
    "blocks that bring y": lambda what, y: [clone(NETWORKS[what]).fit(mopn.RowBlocks(PARTS, y))],
    "validation": lambda what, y: [clone(NETWORKS[what]).fit(X, y, X_val=X, y_val=y)],
    "others": lambda what, y: [clone(estimator).fit(X, y) for estimator in OTHERS[what]],
}
# Every storage in memory, and every type at the other doors.
FIRST = [next(iter(made.values())) for made in TYPES.values()]
TARGETS = [
    pytest.param(door, *value.values, id=f"{door}: {value.id}")
    for door in DOORS
    for value in VALUES
    if door == "memory" or value.values[1] in FIRST
]
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fits(what, cell, door, y):
    """Return the estimators that a door fits to y, none if the page says that y is refused."""
    if cell != "refused" or (door == "others" and not OTHERS[what]):
        return DOORS[door](what, y)
    with pytest.raises((TypeError, ValueError, FutureWarning), match=r"\by\b|label"):  # scikit-learn 1.6 warns of bytes
        DOORS[door](what, y)
    return []


@quiet
@pytest.mark.parametrize(("door", "kind", "make"), TARGETS)
def test_classes(door, kind, make):
    cell, y = ROWS[kind][2], make(N)
    for fitted in fits("class", cell, door, y):
        expected = [str(label) for label in plain(y)] if cell == "its text" else plain(y)
        expected = list(np.array(expected)) if cell == "itself" and kind.startswith("d") else expected
        assert set(fitted.classes_.tolist()) == set(np.array(expected).astype(fitted.classes_.dtype).tolist())
        assert len(fitted.classes_) == 2
        assert isinstance(fitted.score(X, y), float)
        predicted = fitted.predict(X)
        assert predicted.dtype == fitted.classes_.dtype
        assert {type(label) for label in predicted.tolist()} <= {type(label) for label in fitted.classes_.tolist()}


@quiet
@pytest.mark.parametrize(("door", "kind", "make"), TARGETS)
def test_targets_of_regressions(door, kind, make):
    y = make(N)
    found = fits("number", ROWS[kind][3], door, y)
    numbers = np.array([float(number) for number in plain(y)]) if found else None
    for fitted, expected in zip(found, DOORS[door]("number", numbers) if found else [], strict=True):
        assert np.array_equal(fitted.predict(X), expected.predict(X))
        assert fitted.score(X, y) == expected.score(X, numbers)


@pytest.mark.parametrize(("door", "kind", "make"), TARGETS)
def test_ordered_levels(door, kind, make):
    cell, y = ROWS[kind][4], make(N)
    for fitted in fits("level", cell, door, y):
        numbers = np.arange(N) % 2 if cell == "position in the order" else [float(number) for number in plain(y)]
        assert fitted.levels_.tolist() == sorted(set(numbers))
        assert fitted.score(X, y) == fitted.score(X, numbers) if fitted.level_names_ is None else True


# -- between types -----------------------------------------------------------------------------------------------------

TRUTH = np.arange(N) % 3 == 0
TRUTHS = {
    "bool": TRUTH,
    "nullable": pd.array(TRUTH, "boolean"),
    "integers": TRUTH.astype(int),
    "floats": TRUTH.astype(float),
    "words": TRUTH.astype(str),
    "words of JSON": np.char.lower(TRUTH.astype(str)),
    "digits": TRUTH.astype(int).astype(str),
}


@pytest.mark.parametrize("trained", TRUTHS)
@pytest.mark.parametrize("given", TRUTHS)
def test_equal_booleans_are_one_category(trained, given):
    encoder = TableEncoder(curves=0).fit({"a": TRUTHS[trained], "b": OTHER})
    expected = encoder.transform({"a": TRUTHS[trained], "b": OTHER})
    assert np.array_equal(encoder.transform({"a": TRUTHS[given], "b": OTHER}), expected)
    assert np.array_equal(encoder.transform({"a": TRUTHS[given][0], "b": OTHER[0]}), expected[:1])


def test_blocks_of_booleans_and_of_0_and_1():
    blocks = [{"a": TRUTHS["bool"], "b": OTHER}, {"a": TRUTHS["floats"], "b": OTHER}]
    found = TableEncoder(curves=0).fit(mopn.RowBlocks([lambda block=block: block for block in blocks]))
    expected = TableEncoder(curves=0).fit({"a": [*TRUTH, *TRUTH], "b": [*OTHER, *OTHER]})
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    assert np.allclose(found.transform(blocks[0]), expected.transform(blocks[0]), rtol=1e-14)


DATES = pd.date_range("2024-01-01", periods=N)
KINDS = {
    "numbers": OTHER,
    "dates without a time zone": DATES,
    "dates with a time zone": DATES.tz_localize("Europe/Zurich"),
    "durations": pd.to_timedelta(np.arange(N), unit="h"),
    "times of day": [datetime.time(hour) for hour in range(N)],
}


@pytest.mark.parametrize("trained", KINDS)
@pytest.mark.parametrize("given", KINDS)
@pytest.mark.parametrize("row", [False, True])
def test_numbers_dates_and_times_are_not_mistaken_for_each_other(trained, given, row):
    encoder = TableEncoder(curves=1).fit({"a": KINDS[trained], "b": OTHER})
    table = {"a": KINDS[given][0], "b": 0.5} if row else {"a": KINDS[given], "b": OTHER}
    if trained == given:
        encoder.transform(table)
        return
    with pytest.raises(ValueError, match=f"column 'a' of X holds {given}, such as .*, but {trained} in the training"):
        encoder.transform(table)


def test_zones_that_are_mixed_are_refused():
    with pytest.raises(ValueError, match="column 'a' of X holds dates with and without a time zone"):
        TableEncoder().fit({"a": [DATES[0].to_pydatetime(), DATES[0].tz_localize("UTC").to_pydatetime()]})


def test_a_file_knows_what_its_columns_held(tmp_path):
    table = {"a": DATES, "b": OTHER}
    model = TableRegressor(**FIXED).fit(table, OTHER)
    model.save(tmp_path / "model.npz")
    again = mopn.load(tmp_path / "model.npz")
    assert np.array_equal(again.predict(table), model.predict(table))
    with pytest.raises(ValueError, match="holds numbers, such as"):
        again.predict({"a": OTHER, "b": OTHER})


@pytest.mark.parametrize("storage", ["Int64", "int64[pyarrow]", "Int64 of polars", "array", "objects"])
@pytest.mark.parametrize(
    "estimator", [NETWORKS["class"], OTHERS["class"][0]], ids=lambda estimator: type(estimator).__name__
)
@pytest.mark.parametrize("blocks", [False, True])
def test_large_labels_stay_apart(storage, estimator, blocks):
    ids = [2**53, 2**53 + 1, 5] * 4
    y = {
        "Int64 of polars": lambda: polars.Series(ids),
        "array": lambda: np.array(ids),
        "objects": lambda: np.array(ids, object),
    }.get(storage, lambda: pd.Series(ids, dtype=storage))()
    estimator = clone(estimator).set_params(max_units=3, strength=mopn.Ratio(0.5))
    fitted = estimator.fit(mopn.RowBlocks([X]) if blocks else X, y)
    assert fitted.classes_.tolist() == sorted(set(ids))
    assert set(fitted.predict(X).tolist()) <= set(ids)


def test_validation_labels_of_another_type():
    y = (OTHER > 0).astype(int)
    for y_val in (y.astype(bool), y.astype(float), pd.Series(y, dtype="Int64")):
        fitted = MultiOutputPNClassifier(**QUICK).fit(X, y, X_val=X, y_val=y_val)
        assert fitted.classes_.dtype == y.dtype
    with pytest.raises(ValueError, match="y_val has the label"):
        MultiOutputPNClassifier(**QUICK).fit(X, y, X_val=X, y_val=y.astype(str))


ORDERED = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)


def test_ordered_categories_have_their_order():
    rank = np.arange(N) % 3
    y = pd.Series(pd.Categorical.from_codes(rank, dtype=ORDERED))
    estimator = OrdinalPNRegressor(max_units=1, tol=1.0).fit(X, y)
    assert estimator.levels_.tolist() == [0.0, 1.0, 2.0]
    assert estimator.level_names_.tolist() == ["low", "middle", "high"]
    plain_ranks = OrdinalPNRegressor(max_units=1, tol=1.0).fit(X, rank)
    assert np.array_equal(estimator.predict(X), plain_ranks.predict(X))
    # Other rows have the order of the fit, whatever categories they list.
    assert estimator.score(X, y) == plain_ranks.score(X, rank)
    turned = y.cat.reorder_categories(["high", "middle", "low"])
    assert estimator.score(X, turned) == plain_ranks.score(X, rank)
    assert plain_ranks.level_names_ is None
    with pytest.raises(ValueError, match="y has the category 'best', but the levels"):
        estimator.score(X, y.cat.rename_categories({"low": "best"}))
    with pytest.raises(ValueError, match="y has missing labels; drop these samples"):
        estimator.fit(X, y.where(rank > 0))
    search = PathCV(OrdinalPNRegressor(max_units=1, tol=1.0), strengths=[1.0], cv=2).fit(X, y)
    assert search.best_estimator_.level_names_.tolist() == ["low", "middle", "high"]


# -- tables ------------------------------------------------------------------------------------------------------------

NAMED = pd.DataFrame({"a": OTHER, "b": OTHER[::-1], "c": np.where(TRUTH, "x", "y")})


@pytest.mark.parametrize("blocks", [False, True])
def test_frames_are_read_by_name(blocks):
    turned = NAMED[["c", "a", "b"]]
    fitted = TableRegressor(**FIXED).fit(mopn.RowBlocks([NAMED]) if blocks else NAMED, OTHER)
    assert np.array_equal(fitted.predict(turned), fitted.predict(NAMED))
    assert fitted.score(turned, OTHER) == fitted.score(NAMED, OTHER)
    assert fitted.feature_names_in_.tolist() == list(NAMED)
    validated = TableRegressor(**FIXED).fit(NAMED, OTHER, X_val=turned, y_val=OTHER)
    same = TableRegressor(**FIXED).fit(NAMED, OTHER, X_val=NAMED, y_val=OTHER)
    assert np.array_equal(validated.validation_scores_, same.validation_scores_)


def test_one_row():
    fitted = TableRegressor(**FIXED).fit(NAMED, OTHER)
    expected = fitted.predict(NAMED[:1])
    for row in (NAMED.iloc[0], NAMED.iloc[0].to_dict(), fitted.model_.encoding.as_given(read_table(NAMED[:1]))):
        assert np.array_equal(fitted.predict(row), expected)
        assert np.array_equal(fitted.model_.predict(row), expected)
    numbers = TableRegressor(**FIXED).fit(X, OTHER)
    for row in (X[0].tolist(), tuple(X[0]), pd.Series(X[0])):
        assert np.array_equal(numbers.predict(row), numbers.predict(X[:1]))
    with pytest.raises(ValueError, match="column 'x1' of X has a number that is too large for floating point"):
        numbers.predict([1.0, 10**400])
    with pytest.raises(ValueError, match="column 'a' of X has a number that is too large for floating point"):
        fitted.predict({"a": 10**400, "b": 1.0, "c": "x"})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TableClassifier().fit(NAMED, "c"), "y must hold a label for each row, got the text 'c'"),
        (lambda: MultiOutputPNRegressor().fit(X, "c"), "y must hold a number for each row, got the text 'c'"),
        (lambda: TableClassifier().fit(NAMED["a"], TRUTH), "X must be a table of shape .*, got a Series: for a column"),
        (
            lambda: MultiOutputPNClassifier().fit(NAMED["a"], TRUTH),
            "X must be two-dimensional, got a Series: for a col",
        ),
        (lambda: TableRegressor().fit(NAMED, np.full(N, np.nan)), "y contains NaN; drop these samples"),
        (lambda: TableClassifier().fit(NAMED, TRUTH, TRUTH), "sample_weight is 0 for all samples outside the class "),
        (
            lambda: MultiOutputPNClassifier().fit(X, TRUTH, TRUTH),
            "sample_weight is 0 for all samples outside the class ",
        ),
        (lambda: FactorizationMachineClassifier().fit(X, TRUTH, TRUTH), "sample_weight is 0 for all samples outside"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


WORDS, DIGITS = ["Adelie", "0.5"] * (N // 2), ["0.25", "3"] * (N // 2)
IN_STORAGES = {
    "list": list,
    "array": np.array,
    "objects": lambda y: np.array(y, object),
    "Series": pd.Series,
    "category": lambda y: pd.Series(y, dtype="category"),
    "bytes": lambda y: [text.encode() for text in y],
}
REGRESSORS = {
    TableRegressor(**FIXED): "TableClassifier",
    MultiOutputPNRegressor(**QUICK): "MultiOutputPNClassifier",
    FactorizationMachineRegressor(): "FactorizationMachineClassifier",
}


@pytest.mark.parametrize("storage", IN_STORAGES)
@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda estimator: type(estimator).__name__)
def test_texts_are_no_targets_of_regressions(estimator, storage):
    make, table = IN_STORAGES[storage], pd.DataFrame(X, columns=["a", "b"])
    with pytest.raises(TypeError, match=f"^y holds texts such as b?'Adelie': {REGRESSORS[estimator]} takes"):
        clone(estimator).fit(table, make(WORDS))
    with pytest.raises(TypeError, match=r"^y holds numbers as texts, such as b?'0.25': .*pandas.to_numeric"):
        clone(estimator).fit(table, make(DIGITS))


@pytest.mark.parametrize("storage", ["list", "array", "objects", "Series", "bytes"])
def test_texts_are_no_levels_without_an_order(storage):
    with pytest.raises(
        TypeError, match=r"^y holds texts such as b?'Adelie': levels are numbers, or categories with an"
    ):
        clone(LEVELS).fit(X, IN_STORAGES[storage](WORDS))
    with pytest.raises(TypeError, match=r"^y holds numbers as texts"):
        clone(LEVELS).fit(X, IN_STORAGES[storage](DIGITS))


@pytest.mark.parametrize("columns", ["a", "ab", b"a", 0, None, [None], [0.5]])
def test_categorical_features_are_a_list(columns):
    with pytest.raises(TypeError, match="categorical_features must be a list of names and indices of columns"):
        TableRegressor(**FIXED, categorical_features=columns).fit(NAMED, OTHER)


@pytest.mark.parametrize(
    ("dates", "custom"),
    [
        (pd.date_range("2020-01-01", periods=120), pd.date_range("2020-01-15", periods=3, freq="40D").to_numpy()),
        (pd.to_timedelta(np.arange(120), unit="h"), np.array([5, 50, 100], "m8[h]")),
    ],
    ids=["dates", "durations"],
)
def test_partial_dependence_of_dates_takes_custom_values(dates, custom):
    """As the page on explanations says."""
    pytest.importorskip("sklearn", "1.7")
    table = pd.DataFrame({"a": dates, "b": np.resize(OTHER, 120)})
    fitted = TableRegressor(**FIXED).fit(table, np.arange(120.0))
    found = partial_dependence(fitted, table, ["a"], custom_values={"a": custom})["average"][0]
    expected = [fitted.predict(table.assign(a=value)).mean() for value in custom]
    np.testing.assert_allclose(found, expected)


def test_names_that_are_given_back_are_checked():
    encoder = TableEncoder().fit(NAMED)
    assert np.array_equal(encoder.get_feature_names_out(list(NAMED)), encoder.get_feature_names_out())
    for names in (["a", "c", "b"], ["a"]):
        with pytest.raises(ValueError, match="input_features must be the columns of the training data"):
            encoder.get_feature_names_out(names)


def test_columns_without_a_value_in_a_fold():
    """As boosting goes on, a fold goes on whose rows have no value of a column."""
    table = NAMED.assign(d=np.where(np.arange(N) < N // 2, np.nan, OTHER))
    with pytest.warns(UserWarning, match="X has no value in column 'd'"):
        fitted = TableRegressor(**FIXED).fit(table[: N // 2], OTHER[: N // 2])
    assert np.array_equal(fitted.predict(table), fitted.predict(table.assign(d=None)))

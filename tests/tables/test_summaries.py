"""Tables in blocks: the sum of their summaries gives the encoding of the whole table."""

import operator
from itertools import pairwise

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mopn.data.rows import tree_sum
from mopn.tables.learning import encoding_of, learn_encoding
from mopn.tables.quantiles import SAMPLE_ROWS
from mopn.tables.reading import read_table
from mopn.tables.summaries import summarise

RNG = np.random.default_rng(0)
N = 90
FRAME = pd.DataFrame(
    {
        "real": RNG.standard_normal(N),
        "whole": RNG.integers(0, 9, N),
        "two": RNG.integers(0, 2, N).astype(float),
        "city": RNG.choice(["Bern", "Rome", "Oslo"], N),
        "truth": RNG.random(N) < 0.5,
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 99, N), unit="D"),
        "code": RNG.integers(0, 3, N),
    }
)
FRAME.loc[7, ["real", "day"]] = None
OPTIONS = {"curves": 4, "smoothness": 1.0}


def of_blocks(blocks, weights=None, categorical_features=("code",)):
    """Return the encoding that is learned of blocks."""
    weights = [None] * len(blocks) if weights is None else weights
    parts = (summarise(read_table(X), w, categorical_features).sampled() for X, w in zip(blocks, weights, strict=True))
    return encoding_of(tree_sum(parts, operator.add), **OPTIONS)


def learned(X, weights=None):
    return learn_encoding(read_table(X), weights, categorical_features=["code"], **OPTIONS)


def assert_equal(found, expected, X=FRAME):
    assert found.feature_names.tolist() == expected.feature_names.tolist()
    assert np.array_equal(found.numbers.knots, expected.numbers.knots)
    assert np.array_equal(found.encode(X), expected.encode(X))


KINDS = {
    "as it is": lambda part: part,
    "categories": lambda part: part.astype({"city": "category"}),
    "types of its own": lambda part: part.convert_dtypes(),
    "polars": polars.from_pandas,
    "dict": lambda part: {name: part[name].tolist() for name in part},
    "smaller numbers": lambda part: part.astype({"whole": "int8", "two": "float32", "code": "float64"}),
    "objects": lambda part: part.astype(object),
    "other dates": lambda part: part.assign(day=part["day"].astype("datetime64[s]")),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [(), (1, 2, 50), (0, 30, 30, 90)], ids=["one block", "blocks", "blocks without rows"])
def test_blocks_of_all_kinds_give_the_encoding_of_the_table(kind, cuts):
    """Blocks lack categories, have missing values where others have none, and types that mean the same."""
    cuts = [0, *cuts, N]
    parts = [FRAME[a:b] for a, b in pairwise(cuts)]
    blocks = [KINDS[kind](part) if i != 1 else part for i, part in enumerate(parts)]
    assert_equal(of_blocks(blocks), learned(FRAME))


def test_blocks_are_merged_by_the_names_of_the_columns():
    assert_equal(of_blocks([FRAME[:40], FRAME[40:][FRAME.columns[::-1]]]), learned(FRAME))


@given(st.lists(st.integers(0, 3), min_size=N, max_size=N))
def test_weights_are_repetitions_and_rows_of_weight_zero_are_not_there(weights):
    weights = np.array([1, 1, 1, *weights[3:]], float)
    repeated = FRAME.loc[np.repeat(np.arange(N), weights.astype(int))].reset_index(drop=True)
    cuts = [0, 20, 60, N]
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    found = of_blocks([FRAME[part] for part in parts], [weights[part] for part in parts])
    assert_equal(found, learned(repeated), repeated)


def test_a_column_may_be_empty_in_a_block():
    for missing in (None, np.nan, pd.NA, pd.NaT):
        parts = [FRAME[:30].assign(city=missing, day=missing, real=missing), FRAME[30:]]
        whole = FRAME.assign(city=FRAME["city"].where(FRAME.index >= 30, None))
        whole.loc[:29, ["real", "day"]] = None
        assert_equal(of_blocks(parts), learned(whole), whole)
        assert_equal(of_blocks(parts[::-1]), learned(whole), whole)


def test_many_values_keep_their_ranks_in_blocks():
    x = RNG.standard_normal(3 * SAMPLE_ROWS)
    found = of_blocks([{"x": part} for part in np.array_split(x, 8)], categorical_features=())
    expected = learn_encoding(read_table({"x": x}), **OPTIONS)
    ranks = (np.searchsorted(np.sort(x), encoding.numbers.knots[0]) / len(x) for encoding in (found, expected))
    # Each knot is the first value above its rank, so that both errors count.
    assert np.abs(np.subtract(*ranks)).max() <= 2 * 4 / SAMPLE_ROWS
    assert np.allclose(found.encode({"x": x}), expected.encode({"x": x}), atol=0.02)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([{"a": [1, 2]}, {"b": [1, 2]}], r"blocks of X have different columns: \['a', 'b'\] are not in all"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], "blocks of X have 2 and 3 columns"),
        ([{"a": [1, 2]}, {"a": ["one", None]}], "column 'a' of X holds numbers in some blocks and categories"),
        ([{"a": ["one"]}, {"a": [1.5]}], r"give it one type, or name it in categorical_features=\['a'\]"),
        ([{"a": [None]}, {"a": [None]}], "no column of X varies"),
        (
            [{"a": [1, 2]}, {"a": [True]}, {"a": ["2024"]}],
            "column 'a' of X holds numbers in some blocks and categories",
        ),
        ([{"a": [1, 2]}, {"a": np.array(["2024-01-01"], "M8[D]")}], "'a' of X holds numbers in some.* dates"),
        ([{"a": ["x"]}, {"a": ["x"]}], "no column of X varies"),
        (
            [{"a": [f"a{i}" for i in range(30_000)]}, {"a": [f"b{i}" for i in range(30_000)]}],
            r"column 'a' of X has more than 50000 categories. Categories are not hashed: .*MultiOutputFMClassifier",
        ),
    ],
)
def test_blocks_that_do_not_fit_each_other_are_refused(blocks, message):
    with pytest.raises(ValueError, match=message):
        of_blocks(blocks, categorical_features=())


def test_numbers_that_are_categories_in_some_blocks_are_named():
    found = of_blocks([{"code": [1, 2, 3]}, {"code": ["1", "A", "A", None]}, {"code": [2.0, None, 3.0]}])
    assert found.feature_names.tolist() == ["code = 1", "code = 2", "code = 3", "code = A", "code is missing"]

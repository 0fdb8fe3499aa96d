"""Finer functions of numbers: where the targets depend on them, and nowhere else, by a regression on all rows."""

import operator

import numpy as np
import pytest

from mopn.data.row_blocks import RawBlock
from mopn.data.rows import tree_sum
from mopn.tables.effects import Effects, Response, part_of_size
from mopn.tables.fields import from_fields, to_fields
from mopn.tables.functions import CURVES
from mopn.tables.learning import encoding_of, learn_encoding
from mopn.tables.reading import read_table
from mopn.tables.summaries import summarise

RNG = np.random.default_rng(0)
N = 3000
OPTIONS = {"curves": None, "smoothness": 1.0}
CODES = np.arange(N) % 30
OF_CODES = RNG.standard_normal(300)
UNIFORM = (np.arange(N) + 0.5) / N
NOISE = RNG.standard_normal(N)
# Columns and targets, and the number of functions of the first column.
TABLES = {
    "codes": ({"x": CODES}, OF_CODES[CODES] + 0.1 * NOISE, 1 + CURVES + 30),
    "labels of codes": ({"x": CODES}, np.where(OF_CODES[CODES] > 0.0, "more", "less"), 1 + CURVES + 30),
    "several targets": ({"x": CODES}, np.column_stack([NOISE, OF_CODES[CODES]]), 1 + CURVES + 30),
    "a fine effect": ({"x": UNIFORM}, np.cos(12 * np.pi * UNIFORM) + 0.3 * NOISE, 17),
    "the finest effect": ({"x": UNIFORM}, np.cos([10 * np.pi * UNIFORM, 28 * np.pi * UNIFORM]).sum(0), 33),
    "a coarse effect": ({"x": UNIFORM}, np.cos(8 * np.pi * UNIFORM) + 0.3 * NOISE, 9),
    "a linear effect of codes": ({"x": CODES}, CODES + 3.0 * NOISE, 9),
    "noise": ({"x": UNIFORM}, NOISE, 9),
    "one label": ({"x": CODES}, np.full(N, "same"), 9),
    "a constant": ({"x": CODES}, np.full(N, 1e15), 9),
}
IS_LABELS = {"labels of codes", "one label"}


def learned(name, rows=None, weights=None, change=lambda y: y):
    X, y, _ = TABLES[name]
    rows = np.arange(N) if rows is None else rows
    table = read_table({column: x[rows] for column, x in X.items()})
    return learn_encoding(table, weights, change(y[rows]), is_labels=name in IS_LABELS, **OPTIONS)


def of_blocks(name, size):
    """Return the encoding that is learned of blocks of rows."""
    X, y, _ = TABLES[name]
    blocks = []
    for first in range(0, N, size):
        rows = slice(first, first + size)
        blocks.append(RawBlock(len(blocks), read_table({column: x[rows] for column, x in X.items()}), y[rows], None))
    summary = tree_sum((summarise(block.X, None, ()) for block in blocks), operator.add)
    response = Response.of(y, None, is_labels=name in IS_LABELS)
    return encoding_of(
        summary, **OPTIONS, response=response, effects_of=lambda task: tree_sum(map(task, blocks), operator.add)
    )


def assert_equal(found, expected, atol=1e-6):
    assert found.feature_names.tolist() == expected.feature_names.tolist()
    assert np.array_equal(found.numbers.knots, expected.numbers.knots)
    np.testing.assert_allclose(found.numbers.functions, expected.numbers.functions, atol=atol)


@pytest.mark.parametrize("name", TABLES)
def test_columns_have_finer_functions_where_targets_depend_on_them(name):
    """It is the same for blocks, rows in another order, repeated rows, and targets or weights in another unit."""
    encoding = learned(name)
    assert encoding.numbers.widths.tolist() == [TABLES[name][2]]
    assert_equal(of_blocks(name, 700), encoding)
    assert_equal(learned(name, RNG.permutation(N)), encoding)
    assert_equal(learned(name, weights=np.full(N, 0.1)), encoding)
    weights = RNG.integers(1, 4, N)
    assert_equal(learned(name, weights=50.0 * weights), learned(name, np.repeat(np.arange(N), weights)))
    if name not in IS_LABELS:
        assert_equal(learned(name, change=lambda y: 1e3 + 0.25 * y), encoding, atol=1e-4)


def test_hats_of_codes():
    """A code that many rows share, and the targets depend on, has a function of its own, in the default alone."""
    X, y, _ = TABLES["codes"]
    x = np.append(X["x"], [7.5, 40.0, 41.0])
    y = np.append(y, [0.0, 0.0, 0.0])
    table = read_table({"x": x, "y": np.arange(float(len(x))) + 0.5})
    encoding = learn_encoding(table, None, y, **OPTIONS)
    at = np.array([3.0, 3.25, 4.0, 7.25, 40.0, 99.0])
    names = encoding.feature_names.tolist()
    features = encoding.encode({"x": at, "y": at})
    hat = features[:, names.index("x near 3")]
    assert hat[0] > 0.5
    np.testing.assert_allclose(hat, hat[0] * np.array([1.0, 0.75, 0.0, 0.0, 0.0, 0.0]), atol=1e-7)
    assert [name for name in names if "near" in name] == [f"x near {k}" for k in range(30)]
    for given, options in ((y, {"curves": 8, "smoothness": 1.0}), (None, OPTIONS)):
        assert not any("near" in name for name in learn_encoding(table, None, given, **options).feature_names)
    assert np.array_equal(from_fields(to_fields(encoding)).encode({"x": at, "y": at}), features)


def column_of_codes(n, count, noise=0.1):
    """Return codes that are equally frequent, up to one row, and targets with an effect of each."""
    codes = np.arange(n) % count
    return codes.astype(float), OF_CODES[codes] + noise * np.resize(NOISE, n)


def with_rows(x, y, values):
    return np.append(x, values), np.append(y, np.zeros(len(values)))


CHANGES = {
    "rows": (lambda n: column_of_codes(n, 30), range(600, 1600, 20)),
    "codes": (lambda n: column_of_codes(3000, n), range(16, 100)),
    "a value that is no code": (lambda n: with_rows(*column_of_codes(3000, 30), np.full(n, 7.5)), range(40)),
    "missing": (lambda n: with_rows(*column_of_codes(1500, 30), np.full(n, np.nan)), range(0, 20_000, 200)),
    "noise": (lambda n: column_of_codes(3000, 30, n / 10), range(1, 160)),
    "depth of waves": (lambda n: (UNIFORM, NOISE + n / 20 * np.cos(12 * np.pi * UNIFORM)), range(20)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_finer_functions_fade_and_none_is_switched_off(change):
    """The squared distance between the features of two rows changes little at a time."""
    make, numbers = CHANGES[change]
    distances = []
    for n in numbers:
        x, y = make(n)
        encoding = learn_encoding(read_table({"x": x}), None, y, **OPTIONS)
        one, other = encoding.encode({"x": [x[0], x[1] if "waves" not in change else 1 / 12]})
        distances.append((one - other) @ (one - other))
    assert np.ptp(distances) > 1e-3
    assert np.abs(np.diff(distances)).max() < 0.5


def test_noise_has_no_finer_functions():
    """With few rows or many, and targets with heavy tails among them."""
    others = []
    for n in np.repeat([100, 1000], 5):
        X = {f"x{j}": RNG.standard_normal(n) for j in range(100)} | {
            f"k{j}": RNG.integers(0, 15, n) for j in range(100)
        }
        for y in (RNG.standard_normal(n), RNG.standard_cauchy(n), RNG.integers(0, 3, n)):
            encoding = learn_encoding(read_table(X), None, y, is_labels=y.dtype.kind == "i", **OPTIONS)
            plain = learn_encoding(read_table(X), None, **OPTIONS)
            others.append((encoding.numbers.widths != plain.numbers.widths).mean())
    assert np.mean(others) <= 0.01


@pytest.mark.parametrize("m", [1, 3])
def test_parts_are_those_of_a_regression_on_all_rows(m):
    """With as many cells as values, by least squares on every row."""
    q = 20
    rng = np.random.default_rng(m)
    cells = rng.integers(0, q, N)
    functions = rng.standard_normal((q, 7))
    functions[:, 4:] = np.linalg.qr(np.column_stack([np.ones(q), functions]))[0][:, 5:]
    effect = (0.22 if m == 1 else 0.26) * functions[cells, 4:].sum(axis=1, keepdims=True)
    targets = (effect + rng.standard_normal((N, m))) * np.arange(1, m + 1)
    common = functions[:, :4]
    finer = functions[:, 4:]
    indicators = np.eye(q)[cells]
    effects = Effects(
        (indicators.sum(0),), (indicators.T @ targets,), N, N, np.arange(N), targets.sum(0), (targets**2).sum(0)
    )

    def left_by(columns):
        matrix = np.column_stack([np.ones(N), columns[cells]])
        return ((targets - matrix @ np.linalg.lstsq(matrix, targets, rcond=None)[0]) ** 2).sum(0)

    left = left_by(functions)
    by_chance = left / (N - 8)
    outputs = by_chance.sum() ** 2 / (by_chance**2).sum()
    gained = (left_by(common) - left).sum() / 3
    surely = gained - by_chance.sum() * (1 + 4 * np.sqrt(2 / (3 * outputs)))
    share = surely / ((targets - targets.mean(0)) ** 2).sum()
    assert 0.0 < share / 0.002 - 1.0 < 1.0
    assert part_of_size(effects, 0, common, finer) == pytest.approx(share / 0.002 - 1.0, rel=1e-5)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("number", [500, 100_000])
def test_copies_of_rows_are_counted_once(number, copies):
    """Exactly if they are few, and to some per cent if not; in blocks as in memory."""
    x = np.repeat(np.random.default_rng(2).standard_normal(number), copies)
    table = {"x": x, "text": np.where(x > 0.0, "above", None)}
    seen = []

    def effects_of(task):
        blocks = [RawBlock(i, read_table({k: v[i::3] for k, v in table.items()}), x[i::3], None) for i in range(3)]
        seen.append(sum(map(task, blocks[1:]), task(blocks[0])))
        return seen[0]

    summary = summarise(read_table(table), None, ())
    encoding_of(summary, **OPTIONS, response=Response.of(x, None, is_labels=False), effects_of=effects_of)
    assert seen[0].rows == number * copies
    assert seen[0].different_rows == pytest.approx(number, rel=0.0 if number == 500 else 0.03)

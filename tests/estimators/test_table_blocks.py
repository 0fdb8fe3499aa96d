"""Estimators of tables on blocks of rows: networks of the blocks' features, in an encoding learned from all of them."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mopn
from mopn import Ratio, estimators
from mopn.data.chunked_rows import LocalChunks
from mopn.estimators import strength_choice
from mopn.estimators.folds import Fold
from mopn.tables.reading import read_table

RNG = np.random.default_rng(0)
N, CUTS = 120, (0, 50, 50, 120)
FRAME = pd.DataFrame(
    {"size": RNG.standard_normal(N), "color": RNG.choice(["red", "green", "blue"], N), "known": RNG.random(N) < 0.5}
)
TRUTH = (np.sin(2.0 * FRAME["size"]) * np.where(FRAME["color"] == "red", 1.0, -1.0)).to_numpy()
FRAME.loc[::17, "size"] = np.nan
LABELS = np.where(TRUTH > 0.2, "high", "low")
WEIGHTS = RNG.integers(1, 3, N).astype(float)
FIXED = {"strength": Ratio(0.2), "curves": 1, "max_units": 1, "tol": 0.5}
FITTED = ("basis_", "weights_", "objective_", "gap_", "strength_")


def cut(rows):
    return [rows[a:b] for a, b in pairwise(CUTS)]


def frames(folder):
    return cut(FRAME)


def parquet(folder):
    paths = [folder / f"{number}.parquet" for number in range(len(CUTS) - 1)]
    for path, part in zip(paths, cut(FRAME), strict=True):
        part.astype({"color": "category"}).to_parquet(path)
    return paths


@pytest.mark.parametrize("make", [frames, pytest.param(parquet, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("table", "network", "y"),
    [
        (estimators.TableClassifier, estimators.MultiOutputPNClassifier, LABELS),
        pytest.param(estimators.TableRegressor, estimators.MultiOutputPNRegressor, TRUTH, marks=pytest.mark.slow),
    ],
)
def test_blocks_of_tables_are_blocks_of_their_features(tmp_path, make, table, network, y):
    found = table(**FIXED).fit(mopn.RowBlocks(make(tmp_path), y, WEIGHTS))
    memory = table(**FIXED).fit(FRAME, y, WEIGHTS)
    assert np.allclose(found.encoding_.encode(FRAME), memory.encoding_.encode(FRAME), rtol=0.0, atol=1e-12)
    assert found.strength_ == pytest.approx(memory.strength_, rel=1e-8)
    features = [found.encoding_.encode(part, training=True) for part in cut(FRAME)]
    options = {name: found.get_params()[name] for name in ("loss", "strength", "max_units", "tol")}
    expected = network(scale="data", ridge=0.0, **options).fit(mopn.RowBlocks(features, y, WEIGHTS))
    for name in FITTED:
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert found.feature_names_in_.tolist() == list(FRAME)
    assert found.n_features_in_ == 3
    assert np.array_equal(found.predict(FRAME), expected.predict(found.encoding_.encode(FRAME)))


def test_callables_bring_the_targets():
    parts = [lambda part=part: part for part in zip(cut(FRAME), cut(LABELS), cut(WEIGHTS), strict=True)]
    found = estimators.TableClassifier(**FIXED).fit(mopn.RowBlocks(parts))
    expected = estimators.TableClassifier(**FIXED).fit(mopn.RowBlocks(cut(FRAME)), LABELS, WEIGHTS)
    assert np.array_equal(found.basis_, expected.basis_)


def test_rows_of_weight_zero_have_no_part_in_the_encoding():
    other = FRAME.copy()
    other["text"] = ["1", "2", "?", "4"] * (N // 4)
    known = other[:60].copy()
    other.loc[60:, ["color", "text"]] = "pink", "tall"
    weights = np.where(np.arange(N) < 60, WEIGHTS, 0.0)
    with pytest.warns(UserWarning, match="texts that are numbers in column 'text'"):
        found = estimators.TableClassifier(**FIXED).fit(mopn.RowBlocks(cut(other), LABELS, weights))
    with pytest.warns(UserWarning, match="texts that are numbers in column 'text'"):
        expected = estimators.TableClassifier(**FIXED).fit(known, LABELS[:60], WEIGHTS[:60])
    assert found.encoding_.feature_names.tolist() == expected.encoding_.feature_names.tolist()
    assert found.strength_ == pytest.approx(expected.strength_, rel=1e-8)


@pytest.fixture
def cheap_choice(monkeypatch):
    """One part is held out, for two strengths."""
    monkeypatch.setattr(strength_choice, "FEW", 0)
    monkeypatch.setattr(strength_choice, "_RATIOS", (Ratio(0.3), Ratio(0.1)))


LEVELS = np.column_stack([LABELS == "high", FRAME["known"]]).astype(int)


@pytest.mark.parametrize(
    ("table", "y", "options"),
    [
        pytest.param(estimators.TableClassifier, LABELS, {}, marks=pytest.mark.slow),
        (estimators.TableClassifier, LABELS, {"loss": "binary-logistic", "class_weight": {"high": 2.0, "low": 1.0}}),
        pytest.param(estimators.TableClassifier, LEVELS, {}, marks=pytest.mark.slow),
        (estimators.TableRegressor, TRUTH, {"loss": "huber"}),
        pytest.param(estimators.TableRegressor, np.column_stack([TRUTH, LABELS == "high"]), {}, marks=pytest.mark.slow),
    ],
    ids=["labels", "one against the rest", "indicators", "numbers", "columns"],
)
def test_the_strength_is_chosen_as_in_memory_if_there_is_memory(cheap_choice, monkeypatch, table, y, options):
    """The losses on held-out rows are those in memory; else on a part of the rows."""
    estimator = table(curves=0, max_units=2, tol=0.1, **options)
    weights = np.where(np.arange(N) % 7, WEIGHTS, 0.0)
    blocks, folds, walk = mopn.RowBlocks(cut(FRAME), y, weights), [], Fold.walk
    monkeypatch.setattr(Fold, "walk", lambda fold, *path: folds.append(fold) or walk(fold, *path))
    found, expected = (clone(estimator).fit(*data) for data in ([blocks], [FRAME, y, weights]))
    assert folds[0].scores == pytest.approx(folds[1].scores, rel=1e-6)
    assert found.strength_ == pytest.approx(expected.strength_, rel=1e-6)
    monkeypatch.setattr(strength_choice, "IN_MEMORY", N * expected.encoding_.n_features // 2)
    estimator.fit(blocks)
    rows = [fold.X.shape[0] for fold in folds]
    assert rows[:2] == [np.count_nonzero(weights)] * 2
    assert 0.2 * N < rows[2] < 0.7 * N


def test_samples_to_validate_on_are_in_memory():
    table = estimators.TableClassifier(**FIXED).fit(mopn.RowBlocks(cut(FRAME), LABELS), X_val=FRAME, y_val=LABELS)
    assert len(table.validation_scores_) == len(table.trace_)


@pytest.mark.parametrize(
    ("parts", "kind", "message"),
    [
        ([FRAME[:50], FRAME[50:].assign(size=np.inf)], ValueError, "block 1: column 'size' of X contains infinity"),
        ([FRAME[:50], FRAME[50:].assign(size="one")], ValueError, "numbers in some blocks and categories, such as"),
        ([FRAME[:50], FRAME[50:].rename(columns={"size": "x"})], ValueError, r"different columns: \['size', 'x'\]"),
        ([np.zeros((50, 2)), np.zeros((70, 3))], ValueError, "have 2 and 3 columns"),
        ([FRAME[:0]], ValueError, "the blocks have 0 rows, y has 120"),
        ([FRAME[:50]], ValueError, "y must have one row per sample: the blocks have 50 rows, y has 120"),
        ([FRAME, [1.0]], TypeError, "block 1 must be an array, a sparse matrix, a frame, a path or a callable"),
    ],
)
def test_blocks_that_are_no_tables_are_refused_by_name(parts, kind, message):
    with pytest.raises(kind, match=message):
        estimators.TableClassifier(**FIXED).fit(mopn.RowBlocks(parts, LABELS))


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match="sample_weight is zero for all samples"):
        estimators.TableClassifier(**FIXED).fit(mopn.RowBlocks(cut(FRAME), LABELS, np.zeros(N)))


def test_a_block_that_changes_is_noticed():
    parts = cut(FRAME)
    chunks = LocalChunks(mopn.RowBlocks([lambda: parts[0], lambda: parts[2]]).read_by(read_table))
    assert chunks.reduce(lambda block: block.X.n, int.__add__) == N
    parts[2] = parts[2].assign(color="red")
    with pytest.raises(OSError, match="block 1 has changed since the first pass"):
        chunks.reduce(lambda block: block.X.n, int.__add__)

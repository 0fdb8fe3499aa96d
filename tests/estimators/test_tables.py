"""Estimators of tables: what they add to networks of features, in memory and in blocks; answers by column."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

import mopn
from mopn import Ratio
from mopn.data.chunked_rows import LocalChunks
from mopn.estimators import (
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    TableClassifier,
    TableEncoder,
    TableRegressor,
    folds,
    strength_choice,
)
from mopn.estimators.folds import HeldOut, splits
from mopn.estimators.strength_walk import RowLosses
from mopn.estimators.targets import Targets
from mopn.losses.losses import LOSSES
from mopn.solvers import Status
from mopn.tables.reading import read_table

RNG = np.random.default_rng(0)
N = 300
FRAME = pd.DataFrame(
    {
        "size": RNG.standard_normal(N),
        "color": RNG.choice(["red", "green", "blue"], N),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 99, N), unit="D"),
        "known": RNG.random(N) < 0.5,
    }
)
TRUTH = np.sin(2.0 * FRAME["size"]) * np.where(FRAME["color"] == "red", 1.0, -1.0)
FRAME.loc[::17, "size"] = np.nan
FRAME.loc[::13, "color"] = None
LABELS = np.select([TRUTH > 0.5, TRUTH < -0.5], ["high", "low"], "middle")
FIXED = {"strength": Ratio(0.05), "curves": 2}


@pytest.mark.parametrize(
    ("table", "network", "y"),
    [
        (TableClassifier, MultiOutputPNClassifier, LABELS),
        (TableRegressor, MultiOutputPNRegressor, TRUTH),
        (TableRegressor, MultiOutputPNRegressor, np.column_stack([TRUTH, TRUTH**2])),
        (TableClassifier, MultiOutputPNClassifier, np.column_stack([TRUTH > 0, TRUTH > 0.5]).astype(int)),
    ],
    ids=["labels", "numbers", "several numbers", "several labels"],
)
def test_a_table_is_a_network_of_its_features(table, network, y):
    fitted = table(**FIXED).fit(FRAME, y)
    options = {name: fitted.get_params()[name] for name in ("loss", "max_units", "tol")} | {"ridge": 0.0}
    options["refit"] = mopn.solvers.FullRefit(polish_tol=fitted.tol, precision="single")
    pipeline = make_pipeline(TableEncoder(curves=2), network(strength=Ratio(0.05), scale="data", **options)).fit(
        FRAME, y
    )
    assert np.array_equal(fitted.predict(FRAME), pipeline.predict(FRAME))
    assert fitted.gap_ == pipeline[-1].gap_
    assert fitted.feature_names_in_.tolist() == list(FRAME)


def test_the_default_proves_its_gap_and_learns_smooth_effects():
    table = TableClassifier().fit(FRAME, LABELS)
    assert table.relative_gap_ <= table.tol
    assert table.proof_ == "deterministic"
    assert table.score(FRAME, LABELS) > 0.85
    numbers = TableRegressor().fit(FRAME, TRUTH)
    assert numbers.score(FRAME, TRUTH) > 0.8
    exact = TableRegressor(strength=numbers.strength_, tol=1e-8).fit(FRAME, TRUTH)  # refits in double precision
    assert numbers.objective_ - numbers.gap_ <= exact.objective_ <= numbers.objective_ <= 1.01 * exact.objective_


def held_out_loss(table, y):
    """The mean loss on a third of the samples of a fit to the others."""
    test = np.random.default_rng(0).permutation(N) < N // 3
    fitted = table.fit(FRAME[~test], y[~test])
    if isinstance(table, TableClassifier):
        return log_loss(y[test], fitted.predict_proba(FRAME[test]))
    return np.mean((fitted.predict(FRAME[test]) - y[test]) ** 2)


@pytest.mark.parametrize(("table", "y"), [(TableClassifier, LABELS), (TableRegressor, TRUTH)])
def test_much_larger_and_smaller_strengths_lose_more_on_held_out_samples(table, y):
    chosen = table(curves=2).fit(FRAME, y)
    ratio = chosen.strength_ / chosen.problem(FRAME, y).strength_max()
    losses = [
        held_out_loss(table(strength=Ratio(min(factor * ratio, 1.0)), curves=2, prove=False), y)
        for factor in (0.1, 1.0, 10.0)
    ]
    assert 1.05 * losses[1] < min(losses[0], losses[2])


def draw_cells(seed, n):
    """Rows of two categories, of which there are 36 kinds, and labels that each kind has by chance."""
    chances = np.random.default_rng(0).uniform(size=(6, 6))
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, (2, n))
    names = np.array(list("abcdef"))
    return {"a": names[a], "b": names[b]}, (rng.uniform(size=n) < chances[a, b]).astype(int)


def test_rows_that_repeat_are_held_out_one_by_one():
    """Held out as a whole, all rows of a kind and a label would be missing in training, and too much penalty best."""
    X, y = draw_cells(1, 1500)
    order = np.random.default_rng(0).permutation(1500)
    chosen = TableClassifier().fit(X, y)
    moved = TableClassifier().fit({name: column[order] for name, column in X.items()}, y[order])
    assert moved.strength_ == chosen.strength_
    assert np.array_equal(moved.weights_, chosen.weights_)
    new, truth = draw_cells(2, 3000)
    losses = [
        log_loss(truth, TableClassifier(strength=Ratio(ratio)).fit(X, y).predict_proba(new))
        for ratio in (0.1, 0.01, 0.001)
    ]
    assert log_loss(truth, chosen.predict_proba(new)) <= min(losses) + 0.002 < losses[0] - 0.005


@pytest.mark.parametrize("table", [TableClassifier(curves=2), TableRegressor(curves=2)])
def test_copies_are_held_out_together(table):
    """Held out one by one they would be known in training, and no penalty best; they are as one of their weight."""
    rng = np.random.default_rng(0)
    X, counts = rng.normal(size=(80, 3)), rng.integers(1, 6, 80)
    y = np.sign(X[:, 0] * X[:, 1] + rng.normal(size=80))
    y = y if isinstance(table, TableClassifier) else y + rng.normal(size=80)
    copied = clone(table).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = clone(table).fit(X, y, counts.astype(float))
    assert copied.strength_ == weighted.strength_
    assert np.array_equal(copied.weights_, weighted.weights_)


@pytest.mark.parametrize(
    ("last", "n_computed"),
    [((2.05, 3.0, 1.5), 10), ((9.0, 0.0, 0.0), 10), ((2.0, 9.0, 0.0), 11)],
    ids=["a little", "clearly in the first part", "clearly in the first two"],
)
def test_paths_end_where_the_loss_rises(monkeypatch, last, n_computed):
    """Three parts, whose losses are added up; after a rise a part that is no better ends the path."""
    computed, of_folds, losses_at = [], {}, HeldOut.losses_at
    parts = zip((3.0, 3.0, 3.0), (2.0, 3.0, 1.0), (2.0, 3.2, 0.8), last, (0.0, 0.0, 0.0), strict=True)

    def given_losses_at(fold, *trial):
        if fold.networks:
            fold.networks.append(fold.networks[0])
        else:
            losses_at(fold, *trial)
            of_folds[id(fold)] = iter(next(parts))
        computed.append(next(of_folds[id(fold)]))
        return RowLosses(np.array(computed[-1:]), None)

    monkeypatch.setattr(HeldOut, "losses_at", given_losses_at)
    table = TableClassifier(curves=0).fit(FRAME, LABELS)
    largest = 2.0 * TableClassifier(curves=0, strength=Ratio(0.5)).fit(FRAME, LABELS).strength_
    # The second and third strengths have the same loss, the first a larger one.
    second, third = (ratio(largest) for ratio in strength_choice.RATIOS[1:3])
    assert table.strength_ == pytest.approx(np.sqrt(second * third))
    assert len(computed) == n_computed


def test_values_of_columns_are_those_of_a_game_whose_players_are_columns():
    """The definition: columns that are out of the coalition are those of a background row, all features of them."""
    columns, row, background = ["size", "color", "known"], FRAME.iloc[[1]], FRAME.iloc[2:7]
    model = TableClassifier(**FIXED).fit(FRAME[columns], LABELS).model_
    expected, orders = np.zeros((3, 3)), list(permutations(range(3)))
    for order in orders:
        mixed = background[columns].copy()
        before = model.outputs(mixed).mean(axis=0)
        for j in order:
            mixed[columns[j]] = row[columns[j]].iloc[0]
            after = model.outputs(mixed).mean(axis=0)
            expected[j] += (after - before) / len(orders)
            before = after
    assert np.allclose(mopn.explain.shap_values(model, row[columns], background[columns])[0], expected, atol=1e-12)


def test_files_hold_no_names_twice_and_functions_in_single_precision(tmp_path):
    model = TableClassifier(**FIXED).fit(FRAME, LABELS).model_
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as fields:
        assert "feature_names" not in fields
        assert fields["functions"].dtype == np.float32
    names = [f"feature {j}" for j in range(model.encoding.n_features)]
    replace(model, model=replace(model.model, feature_names=names)).save(tmp_path / "named.npz")
    assert mopn.load(tmp_path / "named.npz").model.feature_names.tolist() == names


LAZY = polars.LazyFrame({"size": [1.0, 2.0]})


@pytest.mark.parametrize("estimator", [TableClassifier(), TableRegressor(), TableEncoder()])
@pytest.mark.parametrize(
    ("X", "kind", "message"),
    [
        (FRAME.assign(size=[[1, 2]] * N), TypeError, r"'size' of X holds \[1, 2\], an object of type list"),
        (FRAME[["color"]].assign(color="red"), ValueError, "no column of X varies"),
        (FRAME[[]], ValueError, r"0 feature\(s\)"),
        (pd.concat([FRAME, FRAME[["size"]]], axis=1), ValueError, "X has several columns of the name 'size'; rename"),
        (FRAME[:0], ValueError, r"Found array with 0 sample\(s\): X has no rows"),
        (LAZY, TypeError, "X is a lazy frame; collect it, or .* mopn.dask.fit"),
        (
            sparse.eye_array(N, format="dok"),
            TypeError,
            r"X is a sparse matrix.*X.toarray\(\); MultiOutputPNClassifier, M",
        ),
        (
            FRAME.assign(size=FRAME["size"].astype("Sparse")),
            TypeError,
            r"'size' of X is sparse.* sparse.to_dense\(\); M",
        ),
        (
            {"size": pd.arrays.SparseArray([0, 1] * (N // 2))},
            TypeError,
            "'size' of X is sparse.*MultiOutputFMClassifier",
        ),
        (mopn.RowBlocks([sparse.eye_array(N)]), TypeError, "block 0: X is a sparse matrix"),
        (FRAME["size"], ValueError, r"X must be a table of shape \(n, columns\)"),
        ({"a": [[1, 2], [3, 4]]}, ValueError, "column 'a' of X must have one value a row, got shape"),
        ({"a": ["x", "x\0"]}, ValueError, "column 'a' of X holds the text .*remove the NUL characters at the end"),
        ({"a": [1, 2], "b": [1]}, ValueError, "the columns of X have different lengths"),
        ({"a": [f"n{i % 1500}" for i in range(3000)]}, ValueError, "column 'a' of X has 1500 categories.*not hashed"),
        (pd.DataFrame({("a", "x"): [1, 2]}), ValueError, r"X has names of several levels, such as \('a', 'x'\); give"),
        (np.zeros((2, 2, 2)), ValueError, "must be a table of shape"),
        ({"size": [*range(N - 1), 10**400]}, ValueError, "'size' of X has a number that is too large for floating"),
    ],
    ids=lambda value: None,
)
def test_what_is_no_table_is_refused_by_name(estimator, X, kind, message):
    n = X.shape[0] if hasattr(X, "shape") else len(next(iter(X.values()))) if isinstance(X, dict) else N
    with pytest.raises(kind, match=message):
        clone(estimator).fit(X, np.resize(TRUTH, n))


def test_a_strength_that_no_sample_can_choose_is_refused_by_name():
    table, labels = {"size": np.arange(6)}, list("abcdef")
    with pytest.raises(ValueError, match="y: strength='auto' holds out samples, but every class has a single one"):
        TableClassifier().fit(table, labels)
    assert TableClassifier(**FIXED).fit(table, labels).classes_.tolist() == labels


@pytest.mark.parametrize("smoothness", [0, 1e300])
def test_smoothness_of_any_size(smoothness):
    """Without any, all curves count alike; with a huge one, the first alone."""
    X = np.random.default_rng(0).uniform(-1, 1, (40, 1))
    curves = TableEncoder(curves=3, smoothness=smoothness).fit(X).transform(X)[:, 1:]
    assert (np.abs(curves).max(axis=0) > 1.0).tolist() == [True] + [smoothness == 0] * 2


@pytest.mark.parametrize(
    ("X", "kind", "message"),
    [
        (FRAME[["color", "size", "day"]], ValueError, "should match those that were passed during fit"),
        (mopn.RowBlocks([FRAME]), TypeError, "X is in blocks of rows, which fit takes; call this with each"),
        (FRAME.rename(columns={"size": "length"}), ValueError, "unseen at fit time:\n- length"),
        (FRAME.assign(other=1), ValueError, "unseen at fit time:\n- other"),
        ({"size": 1.0, "color": "red", "day": None}, ValueError, r"X lacks the columns \['known'\]"),
        (FRAME.assign(size="one"), ValueError, "column 'size' of X holds 'one', but numbers in the training"),
        (FRAME.assign(day="2024-01-01"), ValueError, "'day' of X holds '2024-01-01', but dates without a time"),
        (FRAME.assign(size=FRAME["day"]), ValueError, "'size' of X holds dates without a.*, but numbers in the"),
        (FRAME.assign(day=1.0), ValueError, "'day' of X holds numbers, such as 1.0, but dates without a time zone in"),
        (FRAME.assign(size=np.inf), ValueError, "column 'size' of X contains infinity"),
        (pd.concat([FRAME, FRAME[["size"]]], axis=1), ValueError, "X has several columns of the name 'size'"),
        (FRAME[:0], ValueError, r"0 sample\(s\): X has no rows"),
        (np.zeros((2, 3)), ValueError, "X has 3 features, but TableClassifier is expecting 4"),
        ([1.0, "red", None], ValueError, r"X must be a table of shape \(n, columns\), got shape \(3,\)"),
    ],
    ids=lambda value: None,
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_other_tables_than_the_training_data_are_refused_by_name(fitted, X, kind, message):
    with pytest.raises(kind, match=message):
        fitted.predict(X)


@pytest.fixture(scope="module")
def fitted():
    return TableClassifier(**FIXED).fit(FRAME, LABELS)


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize("strength", [pytest.param("auto", marks=pytest.mark.slow), Ratio(0.01)])
def test_a_fit_holds_at_most_three_times_the_features(strength):
    n = 40_000
    table = {f"x{j}": RNG.standard_normal(n) for j in range(4)} | {"color": RNG.choice(list("abcd"), n)}
    y = table["x0"] * table["x1"] > 0.0
    classifier = TableClassifier(strength=strength, max_units=1, tol=0.5)
    tracemalloc.start()
    try:
        classifier.fit(table, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Steps to better dual points hold some matrices of at most 1,000 variables, whatever the number of rows.
    assert peak < 3.0 * 8 * n * classifier.encoding_.n_features + 4.0 * 8 * 1000**2


def test_pipelines_name_the_features():
    frame = TableEncoder(curves=1).set_output(transform="pandas").fit_transform(FRAME)
    assert frame.columns[:2].tolist() == ["size", "size, curve 1"]
    assert "color is missing" in frame


def test_the_last_fit_starts_at_the_model_of_the_choice():
    assert TableClassifier().fit(FRAME, LABELS).trace_["n_units"][0] > 0


def test_classes_share_units_on_request():
    table = TableClassifier(**FIXED, norm="l1/l2", max_units=6).fit(FRAME, LABELS)
    shared = np.count_nonzero(table.weights_, axis=1) > 1
    assert shared.any()
    assert len(table.basis_) <= 6
    own = TableClassifier(**FIXED).fit(FRAME, LABELS)
    assert own.relative_gap_ <= own.tol


def test_without_a_proof_a_fit_ends_near_the_minimum():
    fixed = {"strength": Ratio(0.005), "curves": 1, "tol": 1e-2}
    proven, fitted = (TableClassifier(**fixed, prove=prove).fit(FRAME, LABELS) for prove in (True, False))
    assert fitted.objective_ <= proven.objective_ * (1.0 + fitted.tol)
    # The last round may be without units that change little.
    before, last = fitted.trace_["fun"][-2:]
    estimated = fitted.estimated_gap_ <= 20.0 * fitted.tol * fitted.objective_
    assert estimated or before - last <= 0.5 * fitted.tol * last


def test_any_table_is_proven_by_default():
    fitted = TableClassifier(strength=Ratio(0.005), curves=1).fit(FRAME, LABELS)
    assert fitted.relative_gap_ <= fitted.tol
    assert fitted.status_ == Status.CONVERGED


@pytest.mark.parametrize("options", [{}, {"max_units": None}, {"prove": True}])
def test_large_tables_of_shared_units_are_proven_on_request(monkeypatch, options):
    monkeypatch.setattr(TableClassifier, "_policy", replace(TableClassifier._policy, max_proven_size=1))
    fixed = {"strength": Ratio(0.01), "curves": 1, "tol": 3e-3, "norm": "l1/l2"}
    fitted = TableClassifier(**fixed, **options).fit(FRAME, LABELS)
    assert (fitted.relative_gap_ > fitted.tol) == (not options)


def test_targets_too_large_for_floating_point_are_named():
    y = np.where(np.arange(len(LABELS)) % 2, 1.7e308, -1e308)
    with pytest.raises(ValueError, match=r"y is too large for floating point"):
        TableRegressor(**FIXED).fit(FRAME, y)


def test_very_large_samples_are_proven_on_request(monkeypatch):
    policy = MultiOutputPNClassifier._policy
    monkeypatch.setattr(MultiOutputPNClassifier, "_policy", replace(policy, max_proven_size=1))
    X, y = np.random.default_rng(0).uniform(-1, 1, (60, 8)), np.arange(60) % 3
    shared = MultiOutputPNClassifier(norm="l1/l2", tol=1e-3)
    model, proven = (clone(shared).set_params(max_units=most).fit(X, y) for most in (200, None))
    assert proven.relative_gap_ <= 1e-3 < model.relative_gap_


# -- blocks of rows: networks of the blocks' features, in an encoding learned from all of them -------------------------

CUTS = (0, 120, 120, N)
HIGH = np.where(TRUTH > 0.2, "high", "low")
WEIGHTS = RNG.integers(1, 3, N).astype(float)
QUICK = {"strength": Ratio(0.2), "curves": 1, "max_units": 1, "tol": 0.5}
FITTED = ("basis_", "weights_", "objective_", "gap_", "strength_")


def cut(rows):
    return [rows[a:b] for a, b in pairwise(CUTS)]


def parquet(folder):
    paths = [folder / f"{number}.parquet" for number in range(len(CUTS) - 1)]
    for path, part in zip(paths, cut(FRAME), strict=True):
        part.astype({"color": "category"}).to_parquet(path)
    return paths


@pytest.mark.parametrize("make", [lambda folder: cut(FRAME), pytest.param(parquet, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("table", "network", "y"),
    [
        (TableClassifier, MultiOutputPNClassifier, HIGH),
        pytest.param(TableRegressor, MultiOutputPNRegressor, TRUTH, marks=pytest.mark.slow),
    ],
)
def test_blocks_of_tables_are_blocks_of_their_features(tmp_path, make, table, network, y):
    found = table(**QUICK).fit(mopn.RowBlocks(make(tmp_path), y, WEIGHTS))
    memory = table(**QUICK).fit(FRAME, y, WEIGHTS)
    assert np.allclose(found.encoding_.encode(FRAME), memory.encoding_.encode(FRAME), rtol=0.0, atol=1e-12)
    assert found.strength_ == pytest.approx(memory.strength_, rel=1e-8)
    features = [found.encoding_.encode(part, training=True) for part in cut(FRAME)]
    options = {name: found.get_params()[name] for name in ("loss", "strength", "max_units", "tol")}
    expected = network(scale="data", ridge=0.0, **options).fit(mopn.RowBlocks(features, y, WEIGHTS))
    for name in FITTED:
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert found.feature_names_in_.tolist() == list(FRAME)
    assert found.n_features_in_ == 4
    assert np.array_equal(found.predict(FRAME), expected.predict(found.encoding_.encode(FRAME)))


def test_callables_bring_the_targets():
    parts = [lambda part=part: part for part in zip(cut(FRAME), cut(HIGH), cut(WEIGHTS), strict=True)]
    found = TableClassifier(**QUICK).fit(mopn.RowBlocks(parts))
    expected = TableClassifier(**QUICK).fit(mopn.RowBlocks(cut(FRAME)), HIGH, WEIGHTS)
    assert np.array_equal(found.basis_, expected.basis_)


def test_rows_of_weight_zero_have_no_part_in_the_encoding():
    other = FRAME.copy()
    other["text"] = ["1", "2", "?", "4"] * (N // 4)
    known = other[:60].copy()
    other.loc[60:, ["color", "text"]] = "pink", "tall"
    weights = np.where(np.arange(N) < 60, WEIGHTS, 0.0)
    found = TableClassifier(**QUICK).fit(mopn.RowBlocks(cut(other), HIGH, weights))
    expected = TableClassifier(**QUICK).fit(known, HIGH[:60], WEIGHTS[:60])
    assert found.encoding_.feature_names.tolist() == expected.encoding_.feature_names.tolist()
    assert found.strength_ == pytest.approx(expected.strength_, rel=1e-8)


@pytest.fixture
def cheap_choice(monkeypatch):
    """One part is held out, for two strengths."""
    monkeypatch.setattr(folds, "MANY_SAMPLES", 0)
    monkeypatch.setattr(strength_choice, "RATIOS", (Ratio(0.3), Ratio(0.1)))


LEVELS = np.column_stack([HIGH == "high", FRAME["known"]]).astype(int)


@pytest.mark.parametrize(
    ("table", "y", "options"),
    [
        pytest.param(TableClassifier, HIGH, {}, marks=pytest.mark.slow),
        (TableClassifier, HIGH, {"loss": "binary-logistic", "class_weight": {"high": 2.0, "low": 1.0}}),
        pytest.param(TableClassifier, LEVELS, {}, marks=pytest.mark.slow),
        (TableRegressor, TRUTH, {"loss": "huber"}),
        pytest.param(TableRegressor, np.column_stack([TRUTH, HIGH == "high"]), {}, marks=pytest.mark.slow),
    ],
    ids=["labels", "one against the rest", "indicators", "numbers", "columns"],
)
@pytest.mark.filterwarnings("ignore:no unit has an effect")
def test_the_strength_is_chosen_as_in_memory_if_there_is_memory(cheap_choice, monkeypatch, table, y, options):
    """The losses on held-out rows are those in memory; else on a part of the rows."""
    estimator = table(curves=0, max_units=2, tol=0.1, **options)
    frame, y, weights = FRAME[:100], y[:100], np.where(np.arange(N) % 7, WEIGHTS, 0.0)[:100]
    blocks, made, prepared = mopn.RowBlocks(cut(frame), y, weights), [], HeldOut.prepared
    monkeypatch.setattr(HeldOut, "prepared", lambda fold: made.append(fold) or prepared(fold))
    found, expected = (clone(estimator).fit(*data) for data in ([blocks], [frame, y, weights]))
    losses = [[part.total for part in fold.losses] for fold in made]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert found.strength_ == pytest.approx(expected.strength_, rel=1e-6)
    monkeypatch.setattr(strength_choice, "IN_MEMORY", 100 * expected.encoding_.n_features // 2)
    estimator.fit(blocks)
    rows = [fold.X.shape[0] for fold in made]
    assert rows[:2] == [np.count_nonzero(weights)] * 2
    assert 0.2 * 100 < rows[2] < 0.7 * 100


def test_samples_to_validate_on_are_in_memory():
    table = TableClassifier(**QUICK).fit(mopn.RowBlocks(cut(FRAME), HIGH), X_val=FRAME, y_val=HIGH)
    assert len(table.validation_scores_) == len(table.trace_)


@pytest.mark.parametrize(
    ("parts", "kind", "message"),
    [
        ([FRAME[:50], FRAME[50:].assign(size=np.inf)], ValueError, "block 1: column 'size' of X contains infinity"),
        ([FRAME[:50], FRAME[50:].assign(size="one")], ValueError, "numbers in some blocks and categories, such as"),
        ([FRAME[:50], FRAME[50:].rename(columns={"size": "x"})], ValueError, r"different columns: \['size', 'x'\]"),
        ([FRAME[:0]], ValueError, "the blocks have 0 rows, y has 300"),
        ([FRAME[:50]], ValueError, "y must have one row per sample: the blocks have 50 rows, y has 300"),
        ([FRAME, [1.0]], TypeError, "block 1 must be an array, a sparse matrix, a frame, a path or a callable"),
    ],
)
def test_blocks_that_are_no_tables_are_refused_by_name(parts, kind, message):
    with pytest.raises(kind, match=message):
        TableClassifier(**QUICK).fit(mopn.RowBlocks(parts, HIGH))


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match="sample_weight is zero for all samples"):
        TableClassifier(**QUICK).fit(mopn.RowBlocks(cut(FRAME), HIGH, np.zeros(N)))


def test_a_block_that_changes_is_noticed():
    parts = cut(FRAME)
    chunks = LocalChunks(mopn.RowBlocks([lambda: parts[0], lambda: parts[2]]).read_by(read_table))
    assert chunks.reduce(lambda block: block.X.n, int.__add__) == N
    parts[2] = parts[2].assign(color="red")
    with pytest.raises(OSError, match="block 1 has changed since the first pass"):
        chunks.reduce(lambda block: block.X.n, int.__add__)


@pytest.mark.parametrize(
    "storage", [np.asarray, lambda column: np.array(list("abc"))[column]], ids=["numbers", "texts"]
)
def test_the_copies_of_one_row_are_held_out_one_by_one_where_no_class_has_another(storage):
    codes = [0, 1, 2] * 3 + [0]
    model = TableClassifier().fit({"code": storage(codes)}, codes)
    assert model.predict({"code": storage(codes)}).tolist() == codes


def test_copies_are_held_out_together_where_a_class_has_several_rows():
    groups = np.repeat(np.arange(6), 3)
    y = np.repeat([0, 1], 9)
    targets = Targets(y, y, LOSSES["logistic"], "labels")
    for train, test in splits(targets, 3, groups):
        assert not set(groups[train]) & set(groups[test])
    one = np.zeros(18, int)
    assert sorted(np.concatenate([test for _, test in splits(targets, 3, one)])) == list(range(18))


def test_a_subclass_may_keep_what_it_likes():
    class Thresholded(TableClassifier):
        def fit(self, X, y):
            self.threshold, self.threshold_ = 0.5, 0.7
            return super().fit(X, y)

    fitted = Thresholded(**FIXED).fit({"size": np.arange(6)}, list("aabbcc"))
    assert (fitted.threshold, fitted.threshold_) == (0.5, 0.7)
    assert not hasattr(fitted, "partial_fit")

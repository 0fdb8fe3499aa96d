"""Estimators of tables: what they add to networks of features, and what their models answer by column."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import mopn
from mopn import Ratio
from mopn.estimators import (
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    TableClassifier,
    TableEncoder,
    TableRegressor,
)
from mopn.estimators.strength_choice import choose_strength
from mopn.estimators.targets import merge_equal_samples

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
FIXED = {"strength": Ratio(0.01), "curves": 4}


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
    options = {name: fitted.get_params()[name] for name in ("loss", "norm", "max_units", "tol")}
    pipeline = make_pipeline(TableEncoder(curves=4), network(strength=Ratio(0.01), scale="data", **options)).fit(
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
    assert TableRegressor().fit(FRAME, TRUTH).score(FRAME, TRUTH) > 0.8


@pytest.mark.parametrize("y", [LABELS, TRUTH], ids=["labels", "numbers"])
def test_the_strength_is_that_of_least_loss_on_held_out_samples(y):
    """Few samples are all held out once: by hand, with the same parts."""
    table = (TableClassifier if y is LABELS else TableRegressor)(curves=2)
    single = table.__class__(curves=2, strength=Ratio(0.5))
    Z, y, weights, _ = single._samples(FRAME, y, None)
    Z, targets = merge_equal_samples(Z, single._encode(y, weights))
    chosen = choose_strength(single, Z, targets)
    table.fit(FRAME, y)
    assert table.strength_ == chosen
    largest = single._problem(Z, targets).strength_max()
    ratios = np.array([0.03, 0.01, 0.003, 0.001])
    assert np.isclose(chosen, ratios * largest).sum() == 1


def test_weights_are_repetitions():
    weights = RNG.integers(0, 3, N)
    rows = np.repeat(np.arange(N), weights)
    weighted = TableClassifier(**FIXED).fit(FRAME, LABELS, weights)
    repeated = TableClassifier(**FIXED).fit(FRAME.iloc[rows], LABELS[rows])
    assert np.array_equal(weighted.predict_proba(FRAME), repeated.predict_proba(FRAME))


def test_models_answer_by_column():
    table = TableClassifier(**FIXED).fit(FRAME, LABELS)
    values = table.shap_values(FRAME[:5], FRAME)
    assert values.shape == (5, 4, 3)
    total = values.sum(axis=1) + table.base_values(FRAME)
    assert np.allclose(total, table.model_.outputs(FRAME[:5]), atol=1e-12)
    pairs = table.shap_interaction_values(FRAME[:5], FRAME)
    assert np.allclose(pairs.sum(axis=2), values, atol=1e-12)
    assert table.feature_importances(FRAME).sum(axis=1).argsort().tolist()[2:] == [1, 0]


def test_values_of_columns_are_those_of_a_game_whose_players_are_columns():
    """The definition: columns that are out of the coalition are those of a background row, all features of them."""
    from itertools import permutations

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
    assert np.allclose(model.shap_values(row[columns], background[columns])[0], expected, atol=1e-12)


@pytest.mark.parametrize("write", ["save", "to_json"])
def test_models_come_back_from_files(tmp_path, write):
    table = TableClassifier(**FIXED).fit(FRAME, LABELS)
    getattr(table, write)(tmp_path / "model")
    model = mopn.load(tmp_path / "model")
    assert np.array_equal(model.predict_proba(FRAME), table.predict_proba(FRAME))
    assert model.predict(FRAME.iloc[0].to_dict()).tolist() == table.predict(FRAME[:1]).tolist()


def test_unknown_levels_are_counted_in_a_warning():
    table = TableClassifier(**FIXED).fit(FRAME, LABELS)
    with pytest.warns(
        UserWarning, match="column 'color' of X has 2 values that the training data had not, such as 'pink'"
    ):
        table.predict(FRAME[:4].assign(color=["pink", "red", "violet", "blue"]))


def test_frames_are_checked_as_scikit_learn_does():
    table = TableClassifier(**FIXED).fit(FRAME, LABELS)
    with pytest.raises(ValueError, match="should match those that were passed during fit"):
        table.predict(FRAME[["color", "size", "day", "known"]])
    with pytest.raises(TypeError, match="give a frame or an array"):
        table.fit(mopn.RowBlocks(np.zeros((4, 2))), LABELS[:4])


def test_pipelines_name_the_features():
    frame = TableEncoder(curves=1).set_output(transform="pandas").fit_transform(FRAME)
    assert frame.columns[:2].tolist() == ["size", "size, curve 1"]
    assert "color is missing" in frame

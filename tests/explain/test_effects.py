"""Effects of columns, against means over all combinations of the values that columns have in the background."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from table_models import network, table

import mopn

COLUMNS = ("size", "color", "flat", "age")
TRAINING = table(30, 0)
MODELS = {
    "network": network(TRAINING),
    "no dummies": network(TRAINING, augment=False, linear=False),
    "one output": network(TRAINING, outputs=1),
    "factorization machine": network(TRAINING, kernel="anova"),
    "softmax": network(TRAINING, link="softmax", classes=np.array(["a", "b", "c"])),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def outputs(model, X):
    found = model.outputs(X)
    return found - found.mean(axis=1, keepdims=True) if model.link == "softmax" else found


def combinations_of(X):
    """The table of all combinations of the columns' values, the last column fastest."""
    return dict(zip(X, map(list, zip(*itertools.product(*X.values()), strict=True)), strict=True))


def definition(model, X):
    """The constant, main effects and pair effects by means of the outputs over all combinations."""
    n = len(X["size"])
    F = outputs(model, combinations_of(X)).reshape(*[n] * len(X), -1)
    axes = set(range(len(X)))
    constant = F.mean(axis=tuple(axes))
    mains = [F.mean(axis=tuple(axes - {j})) - constant for j in axes]
    pairs = {
        (i, j): F.mean(axis=tuple(axes - {i, j})) - constant - mains[i][:, None] - mains[j]
        for i, j in itertools.combinations(axes, 2)
    }
    return constant, mains, pairs


def shaped(values, model):
    return values if len(model.model.weights.T) > 1 else values[..., 0]


@every_model
def test_effects_are_means_over_all_combinations(model):
    X = table(4, 5)
    constant, mains, pairs = definition(model, X)
    found = mopn.explain.effects(model, X)
    scale = np.abs(constant).max()
    close = {"rtol": 0, "atol": 1e-12 * scale}
    np.testing.assert_allclose(found.constant, shaped(constant, model), **close)
    for j, expected in enumerate(mains):
        np.testing.assert_allclose(found.main(j), shaped(expected, model), **close)
    values = list(X.values())
    for (i, j), expected in pairs.items():
        rows, columns = np.indices(expected.shape[:2]).reshape(2, -1)
        at = [[values[i][r] for r in rows], [values[j][c] for c in columns]]
        pair = found.pair(i, j, *at)
        np.testing.assert_allclose(pair, shaped(expected.reshape(len(rows), -1), model), **close)
    deviations = {(COLUMNS[j],): mains[j].std(axis=0) for j in range(4)}
    deviations |= {(COLUMNS[i], COLUMNS[j]): pair.std(axis=(0, 1)) for (i, j), pair in pairs.items()}
    sizes = found.sizes()
    lengths = [np.linalg.norm(item.deviation) for item in sizes]
    assert lengths == sorted(lengths, reverse=True)
    assert {item.columns for item in sizes} == {c for c in deviations if "flat" not in c}
    for item in sizes:
        np.testing.assert_allclose(item.deviation, shaped(deviations[item.columns], model), **close)


def test_a_shapley_value_is_a_main_effect_and_half_of_the_pairs_beyond_their_means():
    model, X = MODELS["network"], table(9, 5)
    found = mopn.explain.effects(model, X)
    for j, name in enumerate(COLUMNS):
        pairs = sum(found.pair(name, other) for other in COLUMNS if other != name)
        expected = found.main(name) + 0.5 * (pairs - pairs.mean(axis=0))
        np.testing.assert_allclose(mopn.explain.shap_values(model, X)[:, j], expected, rtol=0, atol=1e-10)


def test_columns_of_categories_alone_and_many_of_them():
    """Their indicators are a sparse matrix."""
    codes = [f"n{j}" for j in range(300)] * 2
    X = {"a": codes, "b": ["x", "y", None] * 200}
    model = network(X, augment=False)
    found = mopn.explain.effects(model, X)
    total = found.constant + found.main("a") + found.main("b") + found.pair("a", "b")
    np.testing.assert_allclose(total, model.outputs(X), rtol=0, atol=1e-10)


def test_a_model_without_units_has_no_effects():
    model = network(TRAINING, linear=False)
    empty = replace(model, model=replace(model.model, basis=model.model.basis[:0], weights=model.model.weights[:0]))
    found = mopn.explain.effects(empty, TRAINING)
    assert found.sizes() == []
    assert not found.main("size").any()
    np.testing.assert_array_equal(found.constant, [0.3] * 3)


def test_columns_are_read_by_name_and_missing_values_have_an_effect():
    model, X = MODELS["network"], table(20, 5)
    assert repr(mopn.explain.effects(model, X)).startswith(f"Effects(columns={list(COLUMNS)}, constant=")
    found, turned = (
        mopn.explain.effects(model, {name: X[name] for name in names}) for names in (COLUMNS, COLUMNS[::-1])
    )
    np.testing.assert_array_equal(found.main("age", [None, 3.0]), turned.main(3, [np.nan, 3]))
    assert np.ptp(found.main("age", [None, 3.0]), axis=0).all()


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda found: found.main("weight"), ValueError, r"column must be the name or the index of one of \['size'"),
        (lambda found: found.main(4), ValueError, "column must be"),
        (lambda found: found.main(True), ValueError, "column must be"),
        (lambda found: found.main("size", ["tall"]), ValueError, "column 'size' of values holds 'tall', but numbers"),
        (lambda found: found.pair("size", 0), ValueError, "a and b must be two columns, got 'size' twice"),
        (lambda found: found.pair(0, 1, [1.0]), ValueError, "a value each for every row, got 1 and 5 values"),
        (lambda found: mopn.explain.effects(found.model, {"size": [1.0]}), ValueError, "X lacks the columns"),
        (
            lambda found: mopn.explain.effects(found.model.model, np.eye(2)),
            TypeError,
            "must be a model of tables.* got Model",
        ),
        (lambda found: mopn.explain.effects(3, np.eye(2)), TypeError, "model must be"),
    ],
)
def test_what_is_refused(ask, error, message):
    found = mopn.explain.effects(MODELS["network"], table(5, 0))
    with pytest.raises(error, match=message):
        ask(found)


def test_explanations_of_tables_are_by_column():
    """Single cells, and groups of columns as fields; the values equal the definition elsewhere."""
    shap = pytest.importorskip("shap")
    model, X = MODELS["softmax"], table(6, 5)
    explained = mopn.explain.to_shap(model, X)
    assert isinstance(explained, shap.Explanation)
    assert explained.feature_names == list(COLUMNS)
    assert explained.output_names == ["a", "b", "c"]
    for j, name in enumerate(COLUMNS):
        np.testing.assert_array_equal(explained.data[:, j].astype(X[name].dtype), X[name])
    numbers = {name: X[name] for name in ("size", "age")}
    assert mopn.explain.to_shap(network(numbers), numbers).data.dtype == float
    row = {name: values[:1] for name, values in X.items()}
    found = mopn.explain.contributions(model, row, X, {"body": [0, 3], "look": [1, 2]})
    values, pairs = mopn.explain.shap_values(model, row, X)[0], mopn.explain.shap_interaction_values(model, row, X)[0]
    between = 2.0 * pairs[np.ix_([0, 3], [1, 2])].sum(axis=(0, 1))
    expected = {("body", "look"): between, ("body",): values[[0, 3]].sum(axis=0) - between / 2}
    expected["look",] = values[[1, 2]].sum(axis=0) - between / 2
    for item in found:
        np.testing.assert_allclose(item.value, expected[item.fields], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.base, model.outputs(X).mean(axis=0))

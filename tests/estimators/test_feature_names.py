"""The names of a DataFrame's columns, in all that a fitted estimator or its model says of the features."""

import ast
import json
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mopn
from mopn import estimators
from mopn.explain import (
    contributions,
    interaction_weights,
    shap_interaction_values,
    shap_values,
    strongest_interactions,
    to_shap,
)
from mopn.export import to_c, to_onnx
from mopn.ranking import similar_features

pd = pytest.importorskip("pandas")

NAMES = ["Whole weight", 'a "b"', "ü"]
X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (60, 3)), columns=NAMES)
y = (X["ü"] * X["Whole weight"] > 0).astype(int)
ESTIMATORS = [
    estimators.MultiOutputPNClassifier(max_units=2),
    estimators.PathCV(estimators.MultiOutputPNClassifier(), max_units=(2, 1), cv=2),
    estimators.FactorizationMachineRegressor(n_components=1, tol=0.1),
]


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def fitted(request):
    return request.param.fit(X, y)


def test_estimators_answer_what_their_models_answer(fitted):
    model = fitted.model_
    for explained in (shap_values, shap_interaction_values):
        assert_array_equal(explained(fitted, X), explained(model, X.to_numpy()))
    assert str(strongest_interactions(fitted)) == str(strongest_interactions(model))
    assert_array_equal(interaction_weights(fitted, [(0, 2)]), interaction_weights(model, [(0, 2)]))
    assert similar_features(fitted, 0, [0, 1]) == similar_features(model, 0, [0, 1])
    fields = {"first": [0], "others": [1, 2]}
    assert str(contributions(fitted, X[:1], X, fields)) == str(contributions(model, X[:1].to_numpy(), X, fields))


def test_the_names_reach_files_and_exports(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert mopn.load(tmp_path / "model").feature_names.tolist() == NAMES
    to_c(fitted, tmp_path / "model.h")
    text = re.search(r"model_features\[\] = {(.*?)}", (tmp_path / "model.h").read_text(), re.DOTALL)[1]
    assert [ast.literal_eval(f"b{name}").decode() for name in re.findall('".*?"', text)] == NAMES
    pytest.importorskip("onnx")
    (entry,) = to_onnx(fitted).metadata_props
    assert (entry.key, json.loads(entry.value)) == ("feature_names", NAMES)


def test_the_names_reach_explanations(fitted):
    (first, *_) = strongest_interactions(fitted, 1)
    assert first.names == tuple(NAMES[j] for j in first.features)
    assert_array_equal(
        interaction_weights(fitted, [("Whole weight", "ü")]),
        interaction_weights(fitted, [(0, 2)]),
    )
    pytest.importorskip("shap")
    assert to_shap(fitted, X).feature_names == NAMES


def test_columns_of_a_data_frame_name_the_features_of_an_unnamed_model():
    pytest.importorskip("shap")
    model = mopn.Model(np.eye(3), np.ones((3, 1)))
    assert to_shap(model, X).feature_names == NAMES
    assert to_shap(model, X.to_numpy()).feature_names is None


def test_models_refuse_columns_in_another_order(fitted):
    with pytest.raises(ValueError, match="column 'ü' in the place of 'Whole weight'"):
        fitted.model_.predict(X[NAMES[::-1]])
    with pytest.raises(ValueError, match="background has the column"):
        shap_values(fitted, X, X[NAMES[::-1]])


def test_a_feature_that_is_folded_in_has_a_name():
    regressor = estimators.OrdinalFMRegressor(max_units=2).fit(X, y)
    assert regressor.fold_in(X[:2], y[:2]).feature_names.tolist() == [*NAMES, "new"]


@pytest.mark.parametrize(("names", "error"), [(["a"], ValueError), ("abc", ValueError), ([1, 2, 3], TypeError)])
def test_names_are_one_string_per_feature(names, error):
    with pytest.raises(error, match="names must be"):
        mopn.Model(np.eye(3), np.ones((3, 1)), feature_names=names)


def test_what_is_not_fitted_has_no_answers():
    with pytest.raises(ValueError, match="not fitted"):
        shap_values(estimators.MultiOutputPNClassifier(), X)
    with pytest.raises(TypeError, match="or a fitted estimator"):
        strongest_interactions(X)

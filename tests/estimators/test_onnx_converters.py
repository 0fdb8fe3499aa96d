"""Pipelines converted by skl2onnx, against scikit-learn's predictions."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.ensemble import VotingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mopn
import mopn.estimators as estimators
from mopn.estimators.onnx_converters import register_skl2onnx

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3)).astype(np.float32).astype(float)
PRODUCT = X[:, 0] * X[:, 1]
LEVELS = np.digitize(PRODUCT, [-0.1, 0.1])
CLASSES = np.array(["a", "b", "c"])[LEVELS]
TWO = np.where(PRODUCT > 0, "yes", "no")
INDICATOR = np.column_stack([PRODUCT > 0, X[:, 2] > 0]).astype(int)
TOLERANCES = {np.float32: 1e-3, np.float64: 1e-6}
CASES = {
    "FactorizationMachineClassifier": {"y": TWO},
    "FactorizationMachineRegressor": {"y": PRODUCT, "degree": 3},
    "MultiOutputFMClassifier": {"y": INDICATOR, "loss": "binary-logistic"},
    "MultiOutputFMRegressor": {"y": np.column_stack([PRODUCT, X[:, 2]])},
    "MultiOutputPNClassifier": {"y": CLASSES},
    "MultiOutputPNRegressor": {"y": PRODUCT},
    "OrdinalFMRegressor": {"y": LEVELS},
    "OrdinalPNRegressor": {"y": LEVELS},
    "PathCV": {"y": CLASSES, "estimator": estimators.MultiOutputPNClassifier(), "max_units": 2, "strengths": [1.0]},
    "PolynomialNetworkClassifier": {"y": PRODUCT > 0, "loss": "logistic"},
    "PolynomialNetworkRegressor": {"y": PRODUCT},
    "TableClassifier": {"y": CLASSES, "max_units": 5, "strength": mopn.Ratio(0.01)},
    "TableRegressor": {"y": PRODUCT, "max_units": 5, "strength": mopn.Ratio(0.01)},
}


@pytest.fixture(scope="module", autouse=True)
def _converters():
    register_skl2onnx()


def converted(estimator, kind, **options):
    """Return the outputs of the graph of a fitted estimator."""
    graph = skl2onnx.to_onnx(estimator, X[:1].astype(kind), **options)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: X.astype(kind)})
    return dict(zip([output.name for output in session.get_outputs()], found, strict=True))


def fitted(name):
    options = dict(CASES[name])
    y = options.pop("y")
    return make_pipeline(StandardScaler(), getattr(estimators, name)(**options)).fit(X, y)


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", TOLERANCES)
@pytest.mark.parametrize("name", [name for name in estimators.__all__ if name != "TableEncoder"])
def test_a_pipeline_is_one_graph(name, kind):
    pipeline, tolerance = fitted(name), TOLERANCES[kind]
    classifies = is_classifier(pipeline)
    found = converted(pipeline, kind, options={"zipmap": False} if classifies else None)
    first, expected = next(iter(found)), pipeline.predict(X)
    if classifies:
        assert first == "label"
        assert_array_equal(found["label"], expected)
    else:
        assert first == "variable"
        assert_allclose(found["variable"], expected.reshape(len(X), -1), atol=tolerance)
        assert found["variable"].dtype == kind
    if hasattr(pipeline, "predict_proba"):
        assert_allclose(found["probabilities"], pipeline.predict_proba(X), atol=tolerance)
    elif classifies:
        assert_allclose(found["probabilities"][:, 0], pipeline.decision_function(X), atol=tolerance)


def test_an_estimator_within_another():
    members = [("network", estimators.MultiOutputPNRegressor()), ("levels", estimators.OrdinalPNRegressor())]
    voting = VotingRegressor(members).fit(X, LEVELS)
    assert_allclose(converted(voting, np.float64)["variable"][:, 0], voting.predict(X), atol=1e-6)


def test_integers_are_converted():
    rows = np.round(4 * X).astype(np.int64)
    regressor = estimators.MultiOutputPNRegressor().fit(rows, PRODUCT)
    graph = skl2onnx.to_onnx(regressor, rows[:1])
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: rows})
    assert_allclose(found[:, 0], regressor.predict(rows), atol=1e-3)


TABLE = {"x": X[:, 0], "y": X[:, 1], "level": CLASSES}
TABLE_TYPES = [("x", "FloatTensorType"), ("y", "FloatTensorType"), ("level", "StringTensorType")]


@pytest.mark.parametrize(
    "estimator",
    [
        estimators.TableRegressor(max_units=5, strength=mopn.Ratio(0.01)),
        make_pipeline(estimators.TableEncoder(curves=3), estimators.MultiOutputPNRegressor(max_units=5)),
    ],
    ids=["estimator", "encoder"],
)
def test_columns_of_a_table_are_inputs(estimator):
    frame = pd.DataFrame(TABLE)
    estimator.fit(frame, PRODUCT)
    types = [(name, getattr(skl2onnx.common.data_types, kind)([None, 1])) for name, kind in TABLE_TYPES]
    graph = skl2onnx.to_onnx(estimator, initial_types=types)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {"x": frame[["x"]].to_numpy(np.float32), "y": frame[["y"]].to_numpy(np.float32)}
    (found,) = session.run(None, given | {"level": frame[["level"]].to_numpy(object)})
    assert_allclose(found[:, 0], estimator.predict(frame), atol=1e-3)
    with pytest.raises(ValueError, match=r"has the inputs \['x', 'y', 'level'\], got 1: give skl2onnx an initial type"):
        skl2onnx.to_onnx(estimator, initial_types=[("X", skl2onnx.common.data_types.FloatTensorType([None, 3]))])


def test_without_skl2onnx_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        register_skl2onnx()

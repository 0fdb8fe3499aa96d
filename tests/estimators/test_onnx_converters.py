"""Pipelines converted by skl2onnx, against scikit-learn's predictions."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
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
    "PolynomialNetworkClassifier": {"y": PRODUCT > 0, "loss": "logistic", "beta": 1.0},
    "PolynomialNetworkRegressor": {"y": PRODUCT},
    "TableClassifier": {"y": CLASSES, "max_units": 3, "curves": 2, "strength": mopn.Ratio(0.1)},
    "TableRegressor": {"y": PRODUCT, "max_units": 3, "curves": 2, "strength": mopn.Ratio(0.1)},
}


@pytest.fixture(scope="module", autouse=True)
def _converters():
    register_skl2onnx()


def run(graph, given):
    """Return the outputs of a graph by name, for an array or arrays by name."""
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    given = given if isinstance(given, dict) else {session.get_inputs()[0].name: given}
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, given), strict=True))


def converted(estimator, kind, **options):
    """Return the outputs of the graph of a fitted estimator."""
    return run(skl2onnx.to_onnx(estimator, X[:1].astype(kind), **options), X.astype(kind))


def typed(name):
    return getattr(skl2onnx.common.data_types, name)([None, 1])


def fitted(name):
    options = dict(CASES[name])
    y = options.pop("y")
    return make_pipeline(StandardScaler(), getattr(estimators, name)(**options)).fit(X, y)


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
        scores = pipeline.decision_function(X)
        assert_allclose(found["probabilities"], np.column_stack([-scores, scores]), atol=tolerance)


def classifier(**options):
    return estimators.MultiOutputPNClassifier(max_units=3, strength=mopn.Ratio(0.1), **options)


REGRESSOR, RIDGE = estimators.MultiOutputPNRegressor(max_units=3, strength=mopn.Ratio(0.1)), ("ridge", Ridge())
OF_REGRESSORS = {
    "voting": VotingRegressor([("network", REGRESSOR), ("levels", estimators.OrdinalPNRegressor(max_units=2))]),
    "bagging": BaggingRegressor(REGRESSOR, n_estimators=2, max_features=2, random_state=0),
    "stacking": StackingRegressor([("network", REGRESSOR), RIDGE], cv=2),
    "stacked": StackingRegressor([RIDGE], final_estimator=REGRESSOR, cv=2),
    "outputs": MultiOutputRegressor(REGRESSOR),
    "boosting": AdaBoostRegressor(REGRESSOR, n_estimators=2, random_state=0),
}


@pytest.mark.parametrize("name", OF_REGRESSORS)
def test_regressors_within_others(name):
    y = np.column_stack([LEVELS, X[:, 2]]) if name == "outputs" else LEVELS
    fitted = clone(OF_REGRESSORS[name]).fit(X, y)
    assert_allclose(converted(fitted, np.float64)["variable"].reshape(y.shape), fitted.predict(X), atol=1e-6)


# From the classifier to the estimator, and whether it needs probabilities.
OF_CLASSIFIERS = {
    "calibrated": (lambda inner: CalibratedClassifierCV(inner, cv=2), False),
    "calibrated once": (lambda inner: CalibratedClassifierCV(inner, cv=2, ensemble=False), False),
    "calibrated pipeline": (lambda inner: CalibratedClassifierCV(make_pipeline(StandardScaler(), inner), cv=2), False),
    "calibrated search": (
        lambda inner: CalibratedClassifierCV(GridSearchCV(inner, {"norm": ["l1"]}, cv=2), cv=2),
        False,
    ),
    "hard votes": (lambda inner: VotingClassifier([("a", inner)], flatten_transform=False), False),
    "soft votes": (lambda inner: VotingClassifier([("a", inner)], voting="soft", flatten_transform=False), True),
    "bagging": (lambda inner: BaggingClassifier(inner, n_estimators=2, max_features=2, random_state=0), True),
    "stacking": (lambda inner: StackingClassifier([("a", inner)], cv=2), False),
    "stacked": (lambda inner: StackingClassifier([("a", LogisticRegression())], final_estimator=inner, cv=2), True),
    "one against the rest": (OneVsRestClassifier, True),
    "one against one": (OneVsOneClassifier, False),
    "search": (lambda inner: GridSearchCV(inner, {"norm": ["l1"]}, cv=2), False),
}


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("y", [(PRODUCT > 0).astype(int), LEVELS], ids=["two", "three"])
@pytest.mark.parametrize("name", OF_CLASSIFIERS)
def test_classifiers_within_others(name, y, loss):
    """They get the scores or the probabilities that they have in Python, or the graph is not written."""
    make, needs_probabilities = OF_CLASSIFIERS[name]
    if loss == "squared" and (name == "soft votes" or (name == "stacking" and len(set(y)) == 2)):
        pytest.skip("scikit-learn refuses the first, and onnxruntime refuses the graph of the second")
    fitted = make(classifier(loss=loss)).fit(X, y)
    options = {id(fitted): {"zipmap": False}}
    if loss == "squared" and needs_probabilities:
        with pytest.raises(ValueError, match=r"asks MultiOutputPNClassifier .* for probabilities"):
            converted(fitted, np.float64, options=options)
        return
    found = converted(fitted, np.float64, options=options)
    assert_array_equal(found["label"].ravel(), fitted.predict(X))  # one against one has columns
    if hasattr(fitted, "predict_proba"):
        assert_allclose(found["probabilities"], fitted.predict_proba(X), atol=1e-6)


def test_integers_are_converted():
    rows = np.round(4 * X).astype(np.int64)
    regressor = estimators.MultiOutputPNRegressor().fit(rows, PRODUCT)
    found = run(skl2onnx.to_onnx(regressor, rows[:1]), rows)["variable"]
    assert_allclose(found[:, 0], regressor.predict(rows), atol=1e-3)


TABLE = {"x": X[:, 0], "y": X[:, 1], "level": CLASSES}
TABLE_TYPES = [("x", "FloatTensorType"), ("y", "FloatTensorType"), ("level", "StringTensorType")]


@pytest.mark.parametrize(
    "estimator",
    [
        estimators.TableRegressor(max_units=3, curves=2, strength=mopn.Ratio(0.1)),
        make_pipeline(estimators.TableEncoder(curves=2), REGRESSOR),
    ],
    ids=["estimator", "encoder"],
)
def test_columns_of_a_table_are_inputs(estimator):
    frame = pd.DataFrame(TABLE)
    estimator.fit(frame, PRODUCT)
    graph = skl2onnx.to_onnx(estimator, initial_types=[(name, typed(kind)) for name, kind in TABLE_TYPES])
    given = {name: frame[[name]].to_numpy(object if name == "level" else np.float32) for name in TABLE}
    (found,) = run(graph, given).values()
    assert_allclose(found[:, 0], estimator.predict(frame), atol=1e-3)
    with pytest.raises(ValueError, match=r"has the inputs \['x', 'y', 'level'\], got 1: give skl2onnx an initial type"):
        skl2onnx.to_onnx(estimator, initial_types=[("X", skl2onnx.common.data_types.FloatTensorType([None, 3]))])


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        (1_700_000_000_000 + 1000 * np.arange(60), "Int64TensorType", None),
        (1_700_000_000_000.0 + 1000 * np.arange(60), "DoubleTensorType", None),
        (1_700_000_000_000.0 + 1000 * np.arange(60), "FloatTensorType", "give skl2onnx DoubleTensorType"),
        (np.arange(60) % 2 == 0, "BooleanTensorType", None),
        (pd.Categorical(np.arange(60) % 3), "Int64TensorType", None),
        (CLASSES, "FloatTensorType", "the input 'c' is of texts, .* give skl2onnx StringTensorType"),
        (X[:, 0], "StringTensorType", "the input 'c' is of numbers, .* give skl2onnx FloatTensorType"),
    ],
    ids=["integers", "double", "float", "booleans", "codes", "texts", "numbers"],
)
def test_initial_types_of_columns(column, kind, message):
    """Those that a column has give Python's predictions, and others are refused, or warned of where digits are lost."""
    frame = pd.DataFrame({"c": column, "level": CLASSES})
    regressor = estimators.TableRegressor(max_units=3, curves=2, strength=mopn.Ratio(0.1)).fit(frame, PRODUCT)
    types = [("c", typed(kind)), ("level", typed("StringTensorType"))]
    if message is not None:
        with pytest.raises((ValueError, UserWarning), match=message):
            skl2onnx.to_onnx(regressor, initial_types=types)
        return
    dtypes = {"Int64TensorType": np.int64, "DoubleTensorType": np.float64, "BooleanTensorType": bool}
    given = {"c": np.asarray(column)[:, None].astype(dtypes[kind]), "level": CLASSES[:, None].astype(object)}
    (found,) = run(skl2onnx.to_onnx(regressor, initial_types=types), given).values()
    assert_allclose(found[:, 0], regressor.predict(frame), atol=1e-4)

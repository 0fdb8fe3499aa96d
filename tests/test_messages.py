"""Messages about wrong calls: in the user's own words, with advice."""

import inspect
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from estimator_names import OF_SAMPLES
from scipy import sparse

import mopn
import mopn.estimators
from mopn.estimators import MultiOutputPNClassifier, TableClassifier, TableRegressor
from mopn.models.base import Fitted
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABELS = np.digitize(X[:, 0], [-0.5, 0.5])
AUGMENTED = mopn.NetworkProblem(X, LABELS, strength=1.0, augment=True)
NETWORK = mopn.Model(np.eye(2, 3), np.ones((2, 3)), classes=np.arange(3), link="softmax")


def other_arrays():
    """Arrays in a file, as of another package."""
    path = Path(tempfile.mkdtemp()) / "other.npz"
    np.savez(path, A=np.ones(3), B=np.ones(2))
    return path


def test_errors_of_types_from_within_are_left_alone():
    def own(intermediate_result):
        raise TypeError("from a callback")

    problem = mopn.NetworkProblem(X, LABELS, strength=1.0)
    result = mopn.minimize(problem, callback=own)
    assert str(result.error) == "from a callback"
    with pytest.raises(TypeError, match="problem must be a problem, such as"):
        mopn.minimize(3)


@pytest.fixture(scope="module")
def tables():
    """A classifier and a regressor of tables."""
    classifier = TableClassifier(strength=mopn.Ratio(0.1), max_units=4).fit(X, LABELS)
    return classifier, TableRegressor(strength=mopn.Ratio(0.1), max_units=4).fit(X, X[:, 0] ** 2)


CALLS = {
    "probability": (
        lambda c, r: mopn.plotting.plot_effect(r, 0, X, scale="probability"),
        "scale='probability': a model of numbers predicts no probabilities; take scale='output'",
    ),
    "strength": (
        lambda c, r: TableClassifier(strength=0).fit(X, LABELS),
        "strength must be 'auto', a number > 0 or a mopn.Ratio, got 0",
    ),
    "arrays in place of a problem": (
        lambda c, r: mopn.minimize(X, LABELS),
        r"^problem must be a problem, such as mopn.NetworkProblem\(X, y, strength=1.0\), got an array$",
    ),
    "an estimator in place of its problem": (
        lambda c, r: mopn.minimize(MultiOutputPNClassifier()),
        r"^problem must be a problem, .* got MultiOutputPNClassifier\(\); its problem\(X, y\) is one$",
    ),
    "a path of an estimator": (
        lambda c, r: mopn.path(MultiOutputPNClassifier()),
        r"^problem must be a NetworkProblem, got MultiOutputPNClassifier; its problem\(X, y\) is one$",
    ),
    "drift for a model of features": (
        lambda c, r: mopn.explain.drift(NETWORK, X),
        "^model must be a model of tables, .* got Model; shap_values takes any model$",
    ),
    "columns of units": (
        lambda c, r: mopn.certify(AUGMENTED, np.ones((2, 7)), np.ones((2, 3))),
        r"^basis must have 4 columns \(3 features after the constant\), got shape \(2, 7\)",
    ),
    "weights of units": (
        lambda c, r: mopn.certify(AUGMENTED, np.ones((2, 4)), np.ones((2, 2))),
        r"^weights must have shape \(2, 3\), a row for each unit and a column for each output, got \(2, 2\)",
    ),
    "columns of a start": (
        lambda c, r: mopn.minimize(AUGMENTED, start=(np.ones((2, 7)), np.ones((2, 3)))),
        r"^start: basis must have 4 columns \(3 features",
    ),
    "a ranker of a table": (
        lambda c, r: mopn.ranking.Ranker(r, X),
        "^Ranker takes models of features, .* not of tables",
    ),
    "a ranker of classes": (
        lambda c, r: mopn.ranking.Ranker(NETWORK, X),
        r"FactorizationModel.from_outputs\(model, \[-1, 0, 1\]\), which ranks them by the last output less the first",
    ),
    "a QUBO of classes": (
        lambda c, r: mopn.export.to_qubo(NETWORK),
        r"^model: its classes have 3 outputs, .*from_outputs\(model, \[1, -1, 0\]\), for the log-odds of the first",
    ),
    "an effect of two columns": (
        lambda c, r: mopn.plotting.plot_effect(c, [0, 1], X),
        r"^column must be .*, got \[0, 1\]; plot_pair draws two columns",
    ),
    "a column twice": (
        lambda c, r: mopn.plotting.plot_pair(c, 1, 1, X),
        "^a and b must be two columns, got .*1' twice",
    ),
    "unit": (lambda c, r: mopn.plotting.plot_unit(NETWORK, 77), "^unit must be an integer from 0 to 1, got 77"),
    "units of none": (
        lambda c, r: mopn.plotting.plot_unit(mopn.Model(np.ones((0, 3)), np.ones((0, 1)), target="vector")),
        "^model has no units to draw",
    ),
    "a loss without half of its name": (
        lambda c, r: MultiOutputPNClassifier(loss="hinge").fit(X, LABELS),
        "'squared' or a Loss, got 'hinge'; did you mean 'squared-hinge' or 'smoothed-hinge'",
    ),
    "a loss of no regressor": (
        lambda c, r: mopn.estimators.MultiOutputPNRegressor(loss="hinge").fit(X, X),
        "^loss must be one of 'squared', 'huber', 'quantile', 'poisson' or a Loss, got 'hinge'$",
    ),
    "a loss for numbers": (
        lambda c, r: TableClassifier(loss="huber").fit(X, LABELS),
        "^loss must be one of 'logistic', .* 'squared' or a Loss, got 'huber'$",
    ),
    "a loss for numbers, itself": (
        lambda c, r: MultiOutputPNClassifier(loss=mopn.Huber(2.0)).fit(X, LABELS),
        "^loss='huber' is for regressors; a classifier takes one of 'logistic'",
    ),
    "arrays of another kind": (lambda c, r: mopn.load(other_arrays()), r"is not a mopn model: it holds .*\['A', 'B'\]"),
    "a text as X": (
        lambda c, r: c.predict("Dream"),
        "^X must be a table, got 'Dream'; a single row is a dictionary, a Series or a list",
    ),
    "a number as X": (lambda c, r: r.predict(3.0), "^X must be a table, got 3.0; a single row is"),
    "a text as y": (lambda c, r: c.fit(X[:, :2], "label"), "y must hold a label for each row, got the text 'label'"),
    "strength of networks": (
        lambda c, r: MultiOutputPNClassifier(strength=0, ridge=0).fit(X, LABELS),
        "give a strength > 0, or tol=0 and a limit such as max_units or max_time",
    ),
    "output": (lambda c, r: mopn.plotting.plot_pair(c, 0, 1, X, output="x"), r"output must be one of \[0, 1, 2\], got"),
    "certify an estimator": (lambda c, r: mopn.certify(c), "a fitted estimator has its gap already, as relative_gap_"),
    "certify a problem": (lambda c, r: mopn.certify(mopn.NetworkProblem(X, LABELS, strength=1.0)), "basis and weights"),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_message_says_what_to_do(tables, call):
    pytest.importorskip("matplotlib")
    make, words = CALLS[call]
    with pytest.raises((AttributeError, TypeError, ValueError), match=words):
        make(*tables)
    assert tables[0].n_features_in_ == X.shape[1]  # as before the call


CORRECTIONS = [part for part in map(vars(mopn.solvers).get, mopn.solvers.__all__) if inspect.isclass(part)]


@pytest.mark.parametrize("part", [p for p in CORRECTIONS if issubclass(p, CorrectiveStep)])
def test_a_correction_in_place_of_a_solver(part):
    problem = mopn.NetworkProblem(X, LABELS, strength=1.0)
    for given in (part, part()):
        with pytest.raises(TypeError, match=rf"give ConditionalGradient\({part.__name__}\("):
            mopn.minimize(problem, given)


MACHINES = [name for name in OF_SAMPLES if "FM" in name or name.startswith("Factorization")]


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize("name", MACHINES)
def test_ids_as_numbers_are_worth_a_warning_at_the_users_line(name):
    ids = RNG.integers(0, 80, (200, 2))
    y = LABELS[RNG.integers(0, 60, 200)] > 0
    y = y + 0.0 if name.endswith("Regressor") else y
    options = {"n_components": 2} if name.startswith("Fact") else {"max_units": 2, "strength": mopn.Ratio(0.5)}
    estimator = getattr(mopn.estimators, name)().set_params(tol=0.5, **options)
    with pytest.warns(UserWarning, match="X has 2 columns of whole numbers") as warned:
        estimator.fit(ids, y)
    assert warned[0].filename == __file__
    one_hot = sparse.csr_array(np.hstack([np.eye(80)[ids[:, 0]], np.eye(80)[ids[:, 1]]]))
    for other in (one_hot, ids + 0.5, np.hstack([ids, ids, ids]), ids % 20):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*iter", Warning)
            estimator.fit(other, y)


@pytest.mark.parametrize("name", ["OrdinalFMRegressor", "OrdinalPNRegressor"])
def test_numbers_as_levels_are_worth_a_warning_at_the_users_line(name):
    estimator = getattr(mopn.estimators, name)(max_units=1, tol=0.5)
    other = name.replace("Ordinal", "MultiOutput")
    with pytest.warns(UserWarning, match=f"y has 60 levels, from .* take {other}, or round y") as warned:
        estimator.fit(X, X[:, 0])
    assert warned[0].filename == __file__
    estimator.fit(X, np.arange(60) % 20 / 2)


def test_lists_of_numpy_scalars_are_shown_as_numbers(tables):
    assert issubclass(type(tables[0]), Fitted)
    assert mopn.solvers.tools.checks.shown([np.int64(3), np.str_("a"), (np.float64(0.5),)]) == "[3, 'a', (0.5,)]"


MODEL = mopn.Model(np.eye(3), np.ones((3, 1)), target="vector")
WITHOUT = {
    "matplotlib.pyplot": lambda: mopn.plotting.plot_unit(MODEL),
    "onnx": lambda: mopn.export.to_onnx(MODEL),
    "shap": lambda: mopn.explain.to_shap(MODEL, X),
}


@pytest.mark.parametrize("package", WITHOUT)
def test_a_package_that_is_missing_is_named(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package.partition('.')[0]}"):
        WITHOUT[package]()

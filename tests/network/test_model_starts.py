"""Models and estimators as starts: the problem goes on at their objective, whatever its coordinates."""

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn import estimators
from mopn.solvers import ConditionalGradient

rng = np.random.default_rng(0)
X = 5.0 + 3.0 * rng.uniform(-1, 1, (50, 3))
X[:, 1] *= 1e-3
CODES = np.digitize((X[:, 0] - 5.0) * (X[:, 2] - 5.0), [-2.0, 2.0])
NUMBERS = 100.0 + X[:, :2] * X[:, 2:]
CENTERED = {"augment": True, "center": True}
OF_NUMBERS = {"y": NUMBERS, "loss": "squared"}
PROBLEMS = {
    "as it is": {},
    "centered": CENTERED,
    "scaled": {"augment": True, "scale": "features", "norm": "l1", "ridge": 0.1},
    "centered and scaled": CENTERED | {"scale": "data", "alpha": 0.3},
    "an offset": CENTERED | OF_NUMBERS | {"scale": "features", "offset": [100.0, 90.0]},
    "machines": {"kernel": "anova", "augment": True, "scale": "large"},
    "a ball": CENTERED | {"strength": None, "radius": 2.0, "scale": "features"},
    "a sparse matrix": CENTERED | {"X": sparse.csr_array(X), "scale": "features"},
    "blocks": CENTERED | {"X": mopn.RowBlocks(X, size=30), "scale": "features"},
}


def problem_of(X=X, y=CODES, strength=0.5, **options):
    return mopn.NetworkProblem(X, y, strength=strength, **options)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_run_goes_on_from_a_file_where_it_ended(name, tmp_path):
    problem = problem_of(**PROBLEMS[name])
    half = mopn.minimize(problem, ConditionalGradient("output"), tol=0, max_iter=2)
    mopn.Model.from_result(problem, half).save(tmp_path / "half.npz")
    model = mopn.load(tmp_path / "half.npz")
    rest = mopn.minimize(problem, ConditionalGradient("output"), start=model, tol=0, max_iter=1)
    assert rest.trace["fun"][0] == pytest.approx(half.fun, rel=1e-9)
    assert rest.fun <= half.fun
    by_arrays = mopn.certify(problem, half.basis, half.weights, linear=half.linear)
    for network in (model, half):
        found = mopn.certify(problem, network)
        assert found.fun == pytest.approx(half.fun, rel=1e-9)
        assert found.gap == pytest.approx(by_arrays.gap, rel=1e-6)
    if problem.strength is not None:
        path = mopn.path(problem, [0.5, 0.2], start=model, rounds=0, tol=1e-6)
        assert path.results[0].fun == pytest.approx(half.fun, rel=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        estimators.MultiOutputPNClassifier(max_units=4),
        estimators.MultiOutputFMClassifier(max_units=4, alpha=0.5),
        estimators.OrdinalPNRegressor(max_units=4),
        estimators.MultiOutputPNRegressor(max_units=4),
        estimators.TableRegressor(strength=1.0, curves=2),
        estimators.TableClassifier(strength=1.0, curves=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_problem_goes_on_from_its_estimator(estimator):
    y = NUMBERS if type(estimator).__name__.endswith("Regressor") else CODES
    y = CODES if isinstance(estimator, estimators.OrdinalPNRegressor) else y
    model = estimator.fit(X, y)
    problem = model.problem(X, y)
    for start in (model, model.model_):
        network = problem.start(start)
        assert problem.output_gradient(network).value == pytest.approx(model.objective_, rel=1e-8)


def outputs(problem, start):
    """Return the outputs of a start on the rows, with the offset of the problem."""
    found = problem.start(start).outputs
    return found if problem.losses.offset is None else found + problem.losses.offset


@pytest.mark.parametrize(
    "options",
    [
        CENTERED,
        CENTERED | {"scale": "features"},
        {"augment": True, "scale": "data"},
        CENTERED | {"alpha": 1.0},
        CENTERED | {"offset": [3.0, -1.0]},
        CENTERED | {"offset": rng.normal(size=(50, 2))},
    ],
    ids=str,
)
@pytest.mark.parametrize("augment", [True, False])
@pytest.mark.parametrize("offset", [0.0, np.array([2.0, -7.0])], ids=["", "offset"])
def test_any_model_has_the_same_outputs_in_the_problem(options, augment, offset):
    # The last feature is constant here, and counts in the model.
    data = X.copy()
    data[:, 2] = 4.0
    model = mopn.Model(rng.normal(size=(4, 3 + augment)), rng.normal(size=(4, 2)), augment=augment, offset=offset)
    problem = mopn.NetworkProblem(data, NUMBERS, loss="squared", strength=1.0, **options)
    expected = model.outputs(data)
    if np.ndim(options.get("offset")) == 2:
        expected = expected + options["offset"]
    np.testing.assert_allclose(outputs(problem, model), expected, rtol=1e-9)
    parts = problem.start_of(model)
    np.testing.assert_allclose(outputs(problem, tuple(parts)), expected, rtol=1e-9)


def test_a_constant_joins_the_unit_of_the_constants():
    problem = problem_of(**CENTERED | OF_NUMBERS)
    model = mopn.Model([[1.0, 2.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]], np.ones((2, 2)), augment=True, offset=[1.0, 2.0])
    assert problem.start(model).n_units == 2
    assert problem.start(mopn.Model(model.basis[:1], [[1.0, 1.0]], augment=True, offset=1.0)).n_units == 2


PLAIN = problem_of(norm="nonnegative-l1")
UNITS = np.eye(3)
REFUSED = {
    "features": (mopn.Model(np.eye(2), np.ones((2, 3))), "has 2 features and 3 outputs, and the problem 3 and 3"),
    "outputs": (mopn.Model(UNITS, np.ones((3, 2))), "has 3 features and 2 outputs, and the problem 3 and 3"),
    "kernel": (mopn.Model(UNITS, np.ones((3, 3)), kernel="anova"), "kernel='anova', and the problem 'homogeneous'"),
    "constants": (mopn.Model(np.ones((1, 4)), np.ones((1, 3)), augment=True), "have constants.*augment=True"),
    "linear": (mopn.Model(UNITS, np.ones((3, 3)), linear=np.ones((3, 4))), "has a linear term.*alpha"),
    "offset": (mopn.Model(UNITS, np.ones((3, 3)), offset=2.0), "constant 2.0, for which the problem has no unit"),
    "negative": (mopn.Model(UNITS, -np.ones((3, 3))), "the weights must be nonnegative"),
    "unfitted": (estimators.MultiOutputPNClassifier(), "MultiOutputPNClassifier has no model; call fit first"),
    "one output": (mopn.FactorizationModel(factors=np.ones((1, 2, 3)), degree=2, lams=np.ones(2)), "must be a Model"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_of_other_problems_are_refused_by_name(name):
    model, message = REFUSED[name]
    for call in (
        PLAIN.start,
        lambda start: mopn.minimize(PLAIN, start=start),
        lambda start: mopn.certify(PLAIN, start),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call(model)


def test_labels_tell_models_of_other_classes():
    letters = np.array(["a", "b", "c"])
    model = mopn.Model(UNITS, np.ones((3, 3)), classes=np.array(["a", "b", "d"]))
    with pytest.raises(ValueError, match=r"the classes \['a', 'b', 'd'\], and the problem \['a', 'b', 'c'\]"):
        problem_of(y=letters[CODES]).start(model)
    problem_of().start(model)  # codes, as in the problem of an estimator


def test_parts_of_a_problem_refuse_models():
    """Their units, or flat points, are others."""
    problem = problem_of()
    model = mopn.Model(UNITS, np.ones((3, 3)))
    network = problem.start(model)
    machine = mopn.FactorizationProblem(X, NUMBERS[:, 0])
    for part in (problem.output_layer(network), problem.joint(network), machine):
        with pytest.raises(TypeError, match="got the model Model"):
            mopn.minimize(part, start=model)
    with pytest.raises(TypeError, match="or a Model, a fitted estimator or a Result alone"):
        mopn.certify(problem, UNITS)

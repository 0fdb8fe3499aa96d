"""Models: outputs against the definitions of the kernels, what predict returns, and files."""

import doctest
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, softmax

import mopn
from mopn.core import blocks
from mopn.models import multi_output as model_module

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (23, 4))


def network(m=3, *, d=4, k=5, **options):
    """Return a model with random units and weights."""
    rng = np.random.default_rng(1)
    dummies = {"homogeneous": 1, "anova": 2}[options.get("kernel", "homogeneous")] if options.get("augment") else 0
    return mopn.Model(rng.standard_normal((k, d + dummies)), rng.standard_normal((k, m)), **options)


def outputs_by_definition(model, X):
    """Sum over pairs of features, one unit, one sample and one output at a time."""
    dummies = {"homogeneous": 1, "anova": 2}[model.kernel] if model.augment else 0
    result = np.zeros((len(X), model.weights.shape[1])) + model.offset
    for i, x in enumerate(X):
        z = [1.0] * dummies + list(x)
        for h, v in zip(model.basis, model.weights, strict=True):
            pairs = [(a, b) for a in range(len(z)) for b in range(len(z))]
            if model.kernel == "anova":
                pairs = [(a, b) for a, b in pairs if a < b]
            result[i] += sum(h[a] * z[a] * h[b] * z[b] for a, b in pairs) * v
    return result


@pytest.mark.parametrize(
    "storage", [np.array, sparse.csr_array, sparse.csc_matrix, sparse.coo_array, np.ndarray.tolist]
)
@pytest.mark.parametrize("augment", [False, True])
@pytest.mark.parametrize("kernel", ["homogeneous", "anova"])
def test_outputs_are_those_of_the_definition(kernel, augment, storage):
    model = network(kernel=kernel, augment=augment, offset=np.array([1.0, -2.0, 0.5]))
    assert model.n_features == 4
    assert_allclose(model.outputs(storage(X)), outputs_by_definition(model, X), rtol=1e-12, atol=1e-12)


def test_float32_data_are_computed_in_float64():
    rounded = X.astype(np.float32)
    model = network()
    assert_allclose(model.outputs(rounded), model.outputs(rounded.astype(np.float64)), rtol=1e-13)


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array, sparse.csc_array])
def test_blocks_of_rows_do_not_show(monkeypatch, storage):
    model = network(kernel="anova", augment=True)
    whole = model.outputs(X)
    monkeypatch.setattr(blocks, "CACHE_ENTRIES", 7 * sum(model.weights.shape))
    assert_allclose(model.outputs(storage(X)), whole, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array])
def test_a_network_without_units_outputs_its_offset(storage):
    model = mopn.Model(np.zeros((0, 4)), np.zeros((0, 2)), offset=np.array([3.0, -1.0]))
    assert_array_equal(model.outputs(storage(X)), np.tile([3.0, -1.0], (23, 1)))


# -- what predict returns ---------------------------------------------------------------------------------------------


def test_predictions_of_every_target():
    outputs = network().outputs(X)
    labels = np.array(["a", "b", "c"])
    assert_array_equal(network(classes=labels).predict(X), labels[np.argmax(outputs, axis=1)])
    assert_array_equal(network().predict(X), outputs)
    indicator = network(target="indicator").predict(X)
    assert_array_equal(indicator, outputs > 0)
    assert indicator.dtype.kind == "i"


def test_a_single_output_makes_a_vector_or_two_classes():
    outputs = network(1).outputs(X)[:, 0]
    assert (outputs > 0).any()
    assert (outputs < 0).any()
    assert_array_equal(network(1, target="vector").predict(X), outputs)
    assert_array_equal(network(1, classes=np.array([7, 5])).predict(X), np.where(outputs > 0, 5, 7))


def test_probabilities_of_every_target():
    outputs, single = network().outputs(X), network(1).outputs(X)[:, 0]
    labels = np.arange(3)
    assert_allclose(network(link="softmax", classes=labels).predict_proba(X), softmax(outputs, axis=1))
    assert_allclose(network(link="logistic", target="indicator").predict_proba(X), expit(outputs))
    rest = expit(outputs)
    normalised = network(link="logistic", classes=labels).predict_proba(X)
    assert_allclose(normalised, rest / rest.sum(axis=1, keepdims=True))
    two = network(1, link="logistic", classes=np.array([0, 1])).predict_proba(X)
    assert_allclose(two, np.column_stack([expit(-single), expit(single)]))


def test_probabilities_of_one_class_against_the_rest_survive_extreme_outputs():
    model = network(2, link="logistic", classes=np.array([0, 1]), offset=np.array([-2000.0, -2001.0]))
    model = mopn.Model(0 * model.basis, model.weights, link=model.link, classes=model.classes, offset=model.offset)
    assert_allclose(model.predict_proba(X), np.tile(expit([1.0, -1.0]), (23, 1)))


def test_without_a_link_there_are_no_probabilities():
    with pytest.raises(TypeError, match=r"no link .* not a probability model; use loss='logistic'"):
        network().predict_proba(X)


@pytest.mark.parametrize("link", ["probit", "binary-logistic", 1])
def test_links_are_checked(link):
    with pytest.raises(ValueError, match="link must be one of 'softmax', 'logistic' or None"):
        network(link=link)


# -- from a result ----------------------------------------------------------------------------------------------------


def solve(**options):
    y = np.where(X[:, 0] * X[:, 1] > 0, 2.0, -1.0)
    problem = mopn.NetworkProblem(X, y, **{"norm": "l1", "strength": 0.5, "loss": "squared", **options})
    return problem, mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-2)


def test_from_result_keeps_kernel_offset_and_augmentation():
    problem, result = solve(kernel="anova", augment=True, offset=[0.25])
    model = mopn.Model.from_result(problem, result)
    assert_allclose(model.outputs(X), problem.features(result.basis) @ result.weights + 0.25, rtol=1e-12)
    assert (model.kernel, model.augment, model.link, model.target) == ("anova", True, None, "outputs")
    result.basis[:] = 0
    assert model.basis.any()


def test_from_result_keeps_the_classes_of_a_multiclass_problem():
    problem, result = solve(loss="logistic")
    model = mopn.Model.from_result(problem, result)
    assert_array_equal(model.classes, [-1.0, 2.0])
    assert set(model.predict(X)) <= {-1.0, 2.0}


def test_from_result_takes_labels_and_target():
    problem, result = solve()
    model = mopn.Model.from_result(problem, result, classes=["no", "yes"], target="labels")
    assert_array_equal(model.predict(X) == "yes", model.outputs(X)[:, 0] > 0)


def test_an_offset_that_differs_between_samples_cannot_be_part_of_a_model():
    problem, result = solve(offset=np.arange(23.0)[:, None])
    with pytest.raises(ValueError, match="offset differs between samples"):
        mopn.Model.from_result(problem, result)


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": np.zeros((4, 3))}, r"basis must be \(k, d\) and weights \(k, m\)"),
        ({"basis": np.zeros(5)}, r"basis must be \(k, d\)"),
        ({"basis": np.zeros((5, 1)), "augment": True}, "no columns other than those of the dummies"),
        ({"kernel": "cubic"}, "kernel must be one of"),
        ({"offset": np.zeros(2)}, r"offset must be a number or of shape \(3,\)"),
        ({"target": "ranks"}, "target must be one of 'outputs', 'vector', 'labels', 'indicator'"),
        ({"target": "vector"}, "for a single output, got 3"),
        ({"target": "labels"}, r"need classes of shape \(3,\), got None"),
        ({"classes": np.arange(4)}, r"need classes of shape \(3,\), got \(4,\)"),
        ({"weights": np.zeros((5, 1)), "classes": np.arange(1)}, r"labels from 1 outputs need classes of shape \(2,\)"),
    ],
)
def test_parts_that_do_not_fit_together(options, message):
    with pytest.raises(ValueError, match=message):
        mopn.Model(**{"basis": np.zeros((5, 4)), "weights": np.zeros((5, 3)), **options})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (X[:, :3], "X has 3 features, but the model was trained with 4"),
        (np.where(X > 0.9, np.nan, X), "NaN or infinity"),
        (X[0], "two-dimensional"),
    ],
)
def test_data_that_do_not_fit_the_model(bad, message):
    with pytest.raises(ValueError, match=message):
        network().predict(bad)


# -- files ------------------------------------------------------------------------------------------------------------

LABELS = {
    "int": np.array([3, 1, 2]),
    "negative": np.array([-1, 0, 1], dtype=np.int8),
    "float": np.array([0.5, 1.5, 2.5]),
    "str": np.array(["ä", "b", "a longer label"]),
    "object": np.array(["x", "yy", "zzz"], dtype=object),
}


@pytest.mark.parametrize("name", ["model.npz", "model", "model.bin"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_a_loaded_model_predicts_the_same(tmp_path, labels, name):
    model = network(link="softmax", kernel="anova", augment=True, classes=labels, offset=np.array([0.1, 0.2, 0.3]))
    model.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    loaded = mopn.load(tmp_path / name)
    assert_array_equal(loaded.outputs(X), model.outputs(X))
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("m", "options"),
    [
        (3, {}),
        (1, {"target": "vector"}),
        (3, {"link": "logistic", "target": "indicator"}),
        (1, {"link": "logistic", "classes": np.array([False, True])}),
    ],
    ids=["outputs", "vector", "indicator", "two classes"],
)
def test_a_loaded_model_predicts_the_same_target(tmp_path, m, options):
    model = network(m, **options)
    model.save(str(tmp_path / "model.npz"))
    loaded = mopn.load(str(tmp_path / "model.npz"))
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.predict(X).dtype == model.predict(X).dtype
    assert loaded.target == model.target


def test_a_model_without_units_is_saved_too(tmp_path):
    mopn.Model(np.zeros((0, 4)), np.zeros((0, 1)), offset=2.0, target="vector").save(tmp_path / "model")
    assert_array_equal(mopn.load(tmp_path / "model").predict(X), np.full(23, 2.0))


def test_labels_of_mixed_types_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match="mixed types cannot be saved without pickle"):
        network(classes=np.array([1, "b", None], dtype=object)).save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_models(tmp_path):
    contents = {"text": b"no model", "empty": b"", "broken": b"PK\x03\x04 and no more"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "array.npy", X)
    np.savez(tmp_path / "arrays.npz", X=X)
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match=f"{path.name}' is not a mopn model"):
            mopn.load(path)
    with pytest.raises(FileNotFoundError):
        mopn.load(tmp_path / "nothing")


def rewritten(path, **changes):
    """Save a model, then write its file anew with some entries changed."""
    network().save(path)
    with np.load(path) as file:
        entries = dict(file)
    np.savez(path, **(entries | changes))
    return path


def test_a_file_of_a_newer_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"written by a newer mopn \(format 99\); update mopn"):
        mopn.load(rewritten(tmp_path / "model.npz", format=99))


def test_a_file_with_pickled_objects_is_refused(tmp_path):
    path = rewritten(tmp_path / "model.npz", classes=np.array(["a", "b", "c"], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        mopn.load(path)


def test_a_file_whose_shapes_do_not_fit_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"basis must be \(k, d\)"):
        mopn.load(rewritten(tmp_path / "model.npz", weights=np.zeros((2, 3))))


def test_models_can_be_pickled():
    model = network(classes=LABELS["object"], augment=True)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": 0}, "its format is 0"),
        ({"format": np.arange(2)}, "its format is"),
        ({"format": "2"}, "its format is '2'"),
        ({"basis": 1}, "is not a mopn model"),
        ({"classes": 3}, "is not a mopn model"),
        ({"more": 1}, "is not a mopn model.*more"),
        ({"link": "probit"}, "link must be one of"),
        ({"kernel": 1}, "kernel must be one of"),
    ],
)
def test_a_file_with_wrong_fields_is_refused(tmp_path, fields, message):
    path, right = tmp_path / "wrong.npz", {"format": 2, "basis": np.eye(2), "weights": np.ones((2, 3))}
    np.savez(path, **right)
    assert mopn.load(path).n_features == 2
    np.savez(path, **(right | fields))
    with pytest.raises(ValueError, match=message):
        mopn.load(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kernel": "rbf"}, "kernel must be one of"),
        ({"degree": 0}, "degree must be an integer >= 1"),
        ({"degree": 1.5}, "degree must be an integer >= 1"),
        ({"theta": np.ones(5)}, "theta must hold"),
        ({"dummies": -1}, "dummies must be an integer >= 0"),
        ({"lams": 3}, "is not a mopn model"),
    ],
)
def test_a_factorization_file_with_wrong_fields_is_refused(tmp_path, fields, message):
    path = tmp_path / "wrong.npz"
    right = {"format": 2, "factors": np.ones((1, 2, 3)), "degree": 2, "lams": np.ones(2)}
    np.savez(path, **right)
    assert mopn.load(path).n_features == 3
    np.savez(path, **(right | fields))
    with pytest.raises(ValueError, match=message):
        mopn.load(path)


def test_the_library_and_a_loaded_model_need_no_scikit_learn(tmp_path):
    model = network(classes=LABELS["str"])
    model.save(tmp_path / "model.npz")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "expected.npy", model.predict(X))
    program = """
import sys
import numpy as np
for name in ("sklearn", "pandas", "matplotlib"):
    sys.modules[name] = None
import mopn
assert (mopn.load("model.npz").predict(np.load("X.npy")) == np.load("expected.npy")).all()
try:
    import mopn.estimators
except ImportError as error:
    assert "pip install mopn[sklearn]" in str(error), error
else:
    raise AssertionError("imported without scikit-learn")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_examples():
    assert doctest.testmod(model_module).failed == 0

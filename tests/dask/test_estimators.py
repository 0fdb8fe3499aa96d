"""Estimators on a cluster: they are those of blocks in one process."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mopn
from mopn import estimators

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytest.importorskip("mopn.dask")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (150, 3))
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0] * X[:, 1], [-0.1, 0.1])]
NUMBERS = X[:, 0] * X[:, 1] + X[:, 2]
WEIGHTS = RNG.uniform(0.5, 2.0, 150)
CHUNKS = (60, 7, 83)
# A step: some ninety passes.
STEP = {"strength": 2.0, "refit": "none", "max_iter": 1, "tol": 0.5}
FITTED = ("basis_", "weights_", "linear_", "objective_", "gap_")


def chunked(array):
    return da.from_array(array, chunks=(CHUNKS, *array.shape[1:]))


def parts(array):
    return np.split(array, np.cumsum(CHUNKS)[:-1])


def fit(estimator, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(*data, **options)


CASES = {
    "labels": ("MultiOutputPNClassifier", LABELS, {}),
    "indicators": ("MultiOutputFMClassifier", np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int), {}),
    "one against the rest": (
        "MultiOutputFMClassifier", LABELS, {"loss": "binary-logistic", "class_weight": {"a": 1, "b": 2, "c": 3}},
    ),
    "numbers": ("MultiOutputPNRegressor", NUMBERS, {"loss": "huber"}),
    "columns": ("MultiOutputFMRegressor", np.column_stack([NUMBERS, X[:, 1]]), {}),
    "levels": ("OrdinalFMRegressor", np.digitize(NUMBERS, [-0.5, 0.5]) + 1.0, {"alpha": None}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_fits_are_those_of_blocks_in_one_process(client, case):
    name, y, options = CASES[case]
    weights = None if case == "levels" else WEIGHTS
    local = fit(getattr(estimators, name)(**STEP | options), mopn.RowBlocks(parts(X), y, weights))
    plain = getattr(mopn.dask, f"Dask{name}")(**STEP | options)
    data = chunked(X), chunked(y)
    spread = fit(clone(plain), *data, None if weights is None else chunked(weights), timeout=60)
    assert spread.get_params() == plain.get_params() == local.get_params()
    for attribute in FITTED:
        np.testing.assert_array_equal(getattr(spread, attribute), getattr(local, attribute))
    assert type(spread.to_local()) is type(local)
    np.testing.assert_array_equal(spread.to_local().predict(X), local.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(spread)).predict(X), local.predict(X))
    for method in ("predict", "predict_proba", "decision_function"):
        assert hasattr(spread, method) == hasattr(local, method)
        if hasattr(local, method):
            lazy, expected = getattr(spread, method)(data[0]), getattr(local, method)(X)
            assert (lazy.shape, lazy.dtype, lazy.chunks[0]) == (expected.shape, expected.dtype, CHUNKS)
            assert type(lazy._meta) is np.ndarray
            np.testing.assert_allclose(
                *(a if a.dtype.kind != "U" else a == expected for a in (lazy.compute(), expected))
            )
    assert spread.score(*data) == pytest.approx(local.score(X, y))


def test_a_class_that_no_row_has(client):
    classifier = mopn.dask.DaskMultiOutputFMClassifier(**STEP)
    fit(classifier, chunked(X), chunked(LABELS), classes=["c", "d", "b", "a"], timeout=60)
    np.testing.assert_array_equal(classifier.classes_, ["a", "b", "c", "d"])
    assert classifier.predict_proba(chunked(X)).shape == (150, 4)
    assert "d" not in classifier.predict(X)
    with pytest.raises(ValueError, match=r"class_weight='balanced' needs rows of each class, and .*d"):
        classifier.set_params(class_weight="balanced").fit(chunked(X), chunked(LABELS), classes=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match=r"block \d: y has the label .*, which is not among the classes"):
        classifier.fit(chunked(X), chunked(LABELS), classes=["a", "b"])


def test_what_estimators_refuse(client):
    classifier = mopn.dask.DaskMultiOutputPNClassifier(**STEP)
    with pytest.raises(ValueError, match=r"use y\[:, 0\]"):
        classifier.fit(chunked(X), chunked(LABELS[:, None]))
    with pytest.raises(ValueError, match="classes are for labels"):
        classifier.fit(chunked(X), chunked((X > 0).astype(int)), classes=[0, 1])
    with pytest.raises(ValueError, match=r"block \d: y has the label"):
        classifier.fit(chunked(X), chunked(np.arange(300).reshape(150, 2)))
    with pytest.raises(ValueError, match="classes are for labels"):
        mopn.dask.DaskMultiOutputPNRegressor().fit(chunked(X), chunked(NUMBERS), classes=[1, 2])
    with pytest.raises(ValueError, match="block 1: y contains NaN"):
        mopn.dask.DaskMultiOutputPNRegressor().fit(chunked(X), chunked(np.where(np.arange(150) == 62, np.nan, NUMBERS)))
    with pytest.raises(ValueError, match="validation_fraction"):
        classifier.set_params(validation_fraction=0.5).fit(chunked(X), chunked(LABELS))
    with pytest.raises(ValueError, match="one class only"):
        classifier.fit(chunked(X), chunked(np.full(150, "a")))


def test_predictions_of_sparse_blocks_check_their_columns(client):
    model = estimators.MultiOutputFMClassifier(**STEP)
    spread = mopn.dask.DaskMultiOutputFMClassifier(**STEP)
    vars(spread).update(vars(fit(model, X, LABELS)))
    lazy = spread.predict(chunked(X).map_blocks(sparse.csr_array))
    np.testing.assert_array_equal(lazy.compute(), model.predict(X))
    with pytest.raises(ValueError, match=r"X must have shape \(n, 3\), as in training, got \(150, 2\)"):
        spread.predict(chunked(X[:, :2]))


def test_a_client_that_closes_leaves_the_best_network(cluster):
    with distributed.Client(cluster, timeout=30, set_as_default=False) as client:
        classifier = mopn.dask.DaskMultiOutputPNClassifier(
            **STEP | {"callback": lambda intermediate_result: client.close()}
        )
        with pytest.warns(ConvergenceWarning, match="Dask client"):
            classifier.fit(chunked(X), chunked(LABELS), client=client, timeout=60)
    assert np.isfinite(classifier.gap_)
    assert set(classifier.to_local().predict(X)) <= set(LABELS)


def test_data_frames(client):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(X, columns=["u", "v", "w"])
    levels = pandas.Series((NUMBERS > 0) + 1)
    X_frame, y_frame = (frames.from_pandas(part, npartitions=2) for part in (table, levels))
    spread = fit(mopn.dask.DaskOrdinalFMRegressor(**STEP | {"alpha": None}), X_frame, y_frame, timeout=60)
    assert spread.feature_names_in_.tolist() == ["u", "v", "w"]
    np.testing.assert_allclose(spread.predict(X_frame).compute(), spread.to_local().predict(table))

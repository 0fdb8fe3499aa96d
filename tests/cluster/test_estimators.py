"""Estimators on a cluster: they are those of blocks in one process."""

import pickle
import re
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
CODES = np.unique(LABELS, return_inverse=True)[1]
NUMBERS = X[:, 0] * X[:, 1] + X[:, 2]
WEIGHTS = RNG.uniform(0.5, 2.0, 150)
CHUNKS = (60, 7, 83)
# A step: some ninety passes.
STEP = {"strength": 2.0, "refit": "none", "max_units": 1, "tol": 0.5}
FITTED = ("basis_", "weights_", "linear_", "objective_", "gap_")


def chunked(array):
    return da.from_array(array, chunks=(CHUNKS, *array.shape[1:]))


def parts(array):
    return np.split(array, np.cumsum(CHUNKS)[:-1])


def fit(estimator, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "max_units=1 is less")
        return estimator.fit(*data, **options)


CASES = {
    "labels": ("MultiOutputPNClassifier", LABELS, {}),
    "indicators": ("MultiOutputFMClassifier", np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int), {}),
    "one against the rest": (
        "MultiOutputFMClassifier", LABELS, {"loss": "binary-logistic", "class_weight": {"a": 1, "b": 2, "c": 3}},
    ),
    "numbers": ("MultiOutputPNRegressor", NUMBERS, {"loss": "huber"}),
    "columns": ("MultiOutputFMRegressor", np.column_stack([NUMBERS, X[:, 1]]), {"interactions": [[0, 1]]}),
    "levels": ("OrdinalFMRegressor", np.digitize(NUMBERS, [-0.5, 0.5]) + 1.0, {"alpha": None}),
    "levels of a network": ("OrdinalPNRegressor", np.digitize(NUMBERS, [-0.5, 0.5]) + 1.0, {"alpha": None}),
}  # fmt: skip


def test_weights_by_target_and_no_paths(client):
    name, y, options = CASES["columns"]
    local = fit(getattr(estimators, name)(**STEP | options), mopn.RowBlocks(parts(X), y), target_weight=[1.0, 9.0])
    spread = getattr(mopn.dask, f"Dask{name}")(**STEP | options)
    fit(spread, chunked(X), chunked(y), target_weight=[1.0, 9.0], timeout=300)
    for attribute in FITTED:
        np.testing.assert_array_equal(getattr(spread, attribute), getattr(local, attribute))
    with pytest.raises(TypeError, match=rf"Dask{name} has its data on a cluster.* to_local\(\)"):
        estimators.PathCV(spread).fit(X, y)


@pytest.mark.covering(1)
@pytest.mark.parametrize("case", CASES)
def test_fits_are_those_of_blocks_in_one_process(client, case):
    name, y, options = CASES[case]
    weights = None if case.startswith("levels") else WEIGHTS
    local = fit(getattr(estimators, name)(**STEP | options), mopn.RowBlocks(parts(X), y, weights))
    plain = getattr(mopn.dask, f"Dask{name}")(**STEP | options)
    data = chunked(X), chunked(y)
    spread = fit(clone(plain), *data, None if weights is None else chunked(weights), timeout=300)
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


def test_a_client_of_its_own(cluster):
    """It fits and scores, without a current client; copies, pickles and plain estimators do not have it."""
    with distributed.Client(cluster, timeout=30, set_as_default=False) as client:
        model = mopn.dask.DaskMultiOutputPNClassifier(**STEP)
        model.client = client
        data = [client.persist(chunked(part)) for part in (X, LABELS)]
        with pytest.raises(ValueError, match="there is no Dask client"):
            clone(model).fit(*data)
        fit(model, *data, timeout=300)
        assert model.score(*data) == model.to_local().score(X, LABELS)
        for other in (clone(model), model.to_local(), pickle.loads(pickle.dumps(model))):
            assert getattr(other, "client", None) is None


def test_tasks_have_names_for_the_bars_of_the_dashboard(client):
    fit(mopn.dask.DaskMultiOutputPNRegressor(**STEP), chunked(X), chunked(NUMBERS), timeout=300)

    def prefixes(dask_scheduler):
        return set(dask_scheduler.task_prefixes)

    assert {"mopn-rows", "mopn-term", "mopn-sum"} <= client.run_on_scheduler(prefixes)


@pytest.mark.slow
def test_a_class_that_no_row_has(client):
    classifier = mopn.dask.DaskMultiOutputFMClassifier(**STEP)
    fit(classifier, chunked(X), chunked(LABELS), classes=["c", "d", "b", "a"], timeout=300)
    np.testing.assert_array_equal(classifier.classes_, ["a", "b", "c", "d"])
    assert classifier.predict_proba(chunked(X)).shape == (150, 4)
    assert "d" not in classifier.predict(X)
    with pytest.raises(ValueError, match=r"class_weight='balanced' needs rows of each class, and .*d"):
        classifier.set_params(class_weight="balanced").fit(chunked(X), chunked(LABELS), classes=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match=r"block \d: y has the label .*, which is not among the classes"):
        classifier.fit(chunked(X), chunked(LABELS), classes=["a", "b"])


def test_a_class_of_rows_without_weight_is_none(client):
    weights = np.where(LABELS == "b", 0.0, WEIGHTS)
    classifier = fit(
        mopn.dask.DaskMultiOutputFMClassifier(**STEP), chunked(X), chunked(LABELS), chunked(weights), timeout=300
    )
    np.testing.assert_array_equal(classifier.classes_, ["a", "c"])
    expected = fit(estimators.MultiOutputFMClassifier(**STEP), X, LABELS, weights)
    assert classifier.objective_ == pytest.approx(expected.objective_, rel=1e-6)


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
    with pytest.raises(ValueError, match="X has 2 features, but DaskMultiOutputFMClassifier is expecting 3 features"):
        spread.predict(chunked(X[:, :2]))


@pytest.mark.parametrize("nit", [0, 1])
def test_a_client_that_closes_leaves_the_best_network(cluster, nit, monkeypatch):
    """Before there is one, the error is raised."""
    with distributed.Client(cluster, timeout=30, set_as_default=False) as client:

        def close(intermediate_result):
            if intermediate_result.nit == nit:
                client.close()

        def minimize(*problem, callback, **options):
            return mopn.minimize(*problem, callback=close, **options)

        monkeypatch.setattr(mopn.estimators.base, "minimize", minimize)
        classifier = mopn.dask.DaskMultiOutputPNClassifier(**STEP)
        data = {"X": chunked(X), "y": chunked(LABELS), "client": client, "timeout": 300}
        if nit == 0:
            with pytest.raises(ConnectionError, match="the Dask client is closed; keep it open"):
                classifier.fit(**data)
            return
        with pytest.warns(ConvergenceWarning, match="the Dask client is closed; keep it open"):
            classifier.fit(**data)
    assert np.isfinite(classifier.gap_)
    assert set(classifier.to_local().predict(X)) <= set(LABELS)


@pytest.mark.slow
def test_data_frames_with_an_empty_partition(client):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(X, columns=["u", "v", "w"]).assign(y=CODES)
    frame = frames.from_pandas(table, npartitions=3, sort=False).map_partitions(lambda part: part[part.index >= 50])
    spread = fit(mopn.dask.DaskMultiOutputFMClassifier(**STEP), frame[["u", "v", "w"]], frame["y"], timeout=300)
    local = fit(estimators.MultiOutputFMClassifier(**STEP), mopn.RowBlocks([X[:0], X[50:100], X[100:]]), CODES[50:])
    for attribute in FITTED:
        np.testing.assert_array_equal(getattr(spread, attribute), getattr(local, attribute))
    np.testing.assert_array_equal(spread.predict(frame[["u", "v", "w"]]).compute(), local.predict(X[50:]))


def test_data_frames(client):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(X, columns=["u", "v", "w"])
    levels = pandas.Series((NUMBERS > 0) + 1)
    X_frame, y_frame = (frames.from_pandas(part, npartitions=2) for part in (table, levels))
    spread = fit(mopn.dask.DaskOrdinalFMRegressor(**STEP | {"alpha": None}), X_frame, y_frame, timeout=300)
    assert spread.feature_names_in_.tolist() == ["u", "v", "w"]
    np.testing.assert_allclose(spread.predict(X_frame).compute(), spread.to_local().predict(table))
    for columns in (["w", "u", "v"], ["u", "v", "x"], ["u", "v"]):
        with pytest.raises(ValueError, match=r"feature|names") as plain:
            spread.to_local().predict(table.reindex(columns=columns, fill_value=0.0))
        with pytest.raises(ValueError, match=re.escape(str(plain.value).replace("OrdinalFM", "DaskOrdinalFM"))):
            spread.predict(frames.from_pandas(table.reindex(columns=columns, fill_value=0.0), npartitions=2))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        spread.predict(chunked(X))
    spread.set_params(warm_start=True)
    with pytest.raises(ValueError, match="same order as they were in fit"):
        spread.fit(X_frame[["w", "u", "v"]], y_frame)

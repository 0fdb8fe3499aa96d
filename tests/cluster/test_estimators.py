"""Estimators on a cluster: equal to fits on blocks in one process, whatever the types of the partitions."""

import pickle
import re
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mopn
from mopn import Ratio, estimators
from mopn.dask import fitting

# Fits of loose tolerances are quick, and may be constant.
pytestmark = pytest.mark.filterwarnings("ignore:.*predictions are the same")

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
frames = pytest.importorskip("dask.dataframe")
pytest.importorskip("mopn.dask")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (150, 3))
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0] * X[:, 1], [-0.1, 0.1])]
NUMBERS = X[:, 0] * X[:, 1] + X[:, 2]
WEIGHTS = RNG.uniform(0.5, 2.0, 150)
CHUNKS = (60, 7, 83)
# A step: some ninety passes.
STEP = {"strength": 2.0, "refit": "none", "max_units": 1, "tol": 0.5}
FITTED = ("basis_", "weights_", "linear_", "objective_", "gap_", "strength_", "n_features_in_")


def chunked(array):
    return da.from_array(array, chunks=(CHUNKS, *array.shape[1:]))


def parts(array):
    return np.split(array, np.cumsum(CHUNKS)[:-1])


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "max_units=1 is less")
        yield


CASES = {
    "labels": ("MultiOutputPNClassifier", LABELS, {}),
    "indicators": ("MultiOutputFMClassifier", np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int), {}),
    "one against the rest": (
        "MultiOutputFMClassifier", LABELS, {"loss": "binary-logistic", "class_weight": {"a": 1, "b": 2, "c": 3}},
    ),
    "numbers": ("MultiOutputPNRegressor", NUMBERS, {"loss": "huber"}),
    "columns": ("MultiOutputFMRegressor", np.column_stack([NUMBERS, X[:, 1]]), {}),
    "levels": ("OrdinalFMRegressor", np.digitize(NUMBERS, [-0.5, 0.5]) + 1.0, {"alpha": None}),
    "levels of a network": ("OrdinalPNRegressor", np.digitize(NUMBERS, [-0.5, 0.5]) + 1.0, {"alpha": None}),
}  # fmt: skip


def made(case):
    """Return an estimator, its y and the weights."""
    name, y, options = CASES[case]
    return getattr(estimators, name)(**STEP | options), y, None if case.startswith("levels") else WEIGHTS


def assert_same(found, expected):
    assert type(found) is type(expected)
    for attribute in FITTED:
        np.testing.assert_array_equal(getattr(found, attribute, None), getattr(expected, attribute, None))


@pytest.mark.parametrize("case", CASES)
def test_fits_on_workers_are_those_of_blocks_in_one_process(client, on_workers, case):
    plain, y, weights = made(case)
    local = clone(plain).fit(mopn.RowBlocks(parts(X), y, weights))
    given = vars(plain).copy()
    found = mopn.dask.fit(plain, chunked(X), chunked(y), None if weights is None else chunked(weights), timeout=300)
    assert vars(plain) == given
    assert found.get_params() == plain.get_params()
    assert vars(found).keys() == vars(local).keys()
    assert_same(found, local)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict(X), local.predict(X))
    for method in ("predict", "predict_proba", "decision_function"):
        if not hasattr(local, method):
            with pytest.raises(AttributeError, match=method):
                mopn.dask.predict(found, chunked(X), method=method)
            continue
        lazy, expected = mopn.dask.predict(found, chunked(X), method=method), getattr(local, method)(X)
        assert (lazy.shape, lazy.dtype, lazy.chunks[0]) == (expected.shape, expected.dtype, CHUNKS)
        assert type(lazy._meta) is np.ndarray
        np.testing.assert_allclose(*(a if a.dtype.kind != "U" else a == expected for a in (lazy.compute(), expected)))


@pytest.mark.parametrize("case", ["labels", "columns", "levels"])
def test_small_data_are_fitted_in_this_process(client, case):
    plain, y, weights = made(case)
    weights = np.where(np.arange(150) % 10, WEIGHTS, 0.0)
    found = mopn.dask.fit(plain, chunked(X), chunked(y), chunked(weights))
    assert_same(found, clone(plain).fit(X, y, weights))


@pytest.mark.parametrize("sparse_blocks", [False, True])
def test_how_many_numbers_are_small_data(client, monkeypatch, sparse_blocks):
    held = np.where(X > 0.5, X, 0.0)
    numbers = np.count_nonzero(held) if sparse_blocks else X.size
    data = chunked(held).map_blocks(sparse.csr_array) if sparse_blocks else chunked(held)
    seen = []

    def recorded(self, *data, **options):
        seen.append(type(data[0]).__name__)
        raise InterruptedError

    monkeypatch.setattr(estimators.MultiOutputPNClassifier, "fit", recorded)
    for limit in (numbers, numbers - 1):
        monkeypatch.setattr(fitting, "IN_MEMORY", limit)
        with pytest.raises(InterruptedError):
            mopn.dask.fit(estimators.MultiOutputPNClassifier(), data, chunked(LABELS))
    assert seen == ["csr_array" if sparse_blocks else "ndarray", "DaskBlocks"]


@pytest.mark.slow
def test_the_number_of_workers_changes_no_bit(on_workers, threads):
    rows = da.from_array(X, chunks=(12, 3)), da.from_array(LABELS, chunks=12)
    found = []
    for n in (1, 2, 3):
        with threads(n) as (_, client):
            found.append(mopn.dask.fit(estimators.MultiOutputFMClassifier(**STEP), *rows, client=client, timeout=300))
    assert_same(found[1], found[0])
    assert_same(found[2], found[0])


@pytest.mark.parametrize("where", [pytest.param("workers", marks=pytest.mark.slow), "memory"])
def test_samples_to_validate_on_weights_of_columns_and_time(client, where, request):
    """X_val may be on the cluster, too; the fit has the time that is left after the first pass."""
    if where == "workers":
        request.getfixturevalue("on_workers")
    plain, y, weights = made("columns")
    plain.set_params(max_units=3, max_time=1e4)
    options = {"X_val": X[::2], "y_val": y[::2]}
    lazy = options | {"X_val": da.from_array(X[::2], chunks=50), "y_val": da.from_array(y[::2], chunks=50)}
    data = [mopn.RowBlocks(parts(X), y, weights)] if where == "workers" else (X, y, weights)
    local = clone(plain).fit(*data, **options)
    found = mopn.dask.fit(plain, chunked(X), chunked(y), chunked(weights), **lazy)
    assert_same(found, local)
    np.testing.assert_array_equal(found.validation_scores_, local.validation_scores_)
    assert found.max_time == 1e4
    assert len(mopn.dask.fit(plain.set_params(max_time=0.0), chunked(X), chunked(y)).trace_) <= 1


@pytest.mark.slow
def test_a_fit_goes_on_from_the_network_of_the_estimator(client, on_workers):
    plain, y, _ = made("labels")
    first = mopn.dask.fit(plain.set_params(warm_start=True), chunked(X), chunked(y))
    second = mopn.dask.fit(first, chunked(X), chunked(y))
    assert second.trace_["fun"][0] < first.trace_["fun"][0]
    assert second is not first


class Watch:
    """A callback of scikit-learn that predicts after every iteration."""

    def __init__(self):
        self.predicted = []

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if fitted_estimator is not None:  # as in the last round, in which no unit is found
            self.predicted.append(fitted_estimator.predict(X))


@pytest.mark.slow
def test_callbacks_watch_a_fit(client, on_workers):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")
    plain, y, _ = made("numbers")
    watch = Watch()
    found = mopn.dask.fit(plain.set_callbacks(watch), chunked(X), chunked(y))
    np.testing.assert_array_equal(watch.predicted[-1], found.predict(X))


def test_a_client_of_its_own(cluster, on_workers):
    with distributed.Client(cluster, timeout=30, set_as_default=False) as client:
        data = [client.persist(chunked(part)) for part in (X, LABELS)]
        plain = estimators.MultiOutputPNClassifier(**STEP)
        with pytest.raises(ValueError, match="there is no Dask client"):
            mopn.dask.fit(plain, *data)
        found = mopn.dask.fit(plain, *data, client=client, timeout=300)
        assert_same(found, clone(plain).fit(mopn.RowBlocks(parts(X), LABELS)))


def test_tasks_have_names_for_the_bars_of_the_dashboard(client, on_workers):
    mopn.dask.fit(estimators.MultiOutputPNRegressor(**STEP), chunked(X), chunked(NUMBERS), timeout=300)

    def prefixes(dask_scheduler):
        return set(dask_scheduler.task_prefixes)

    assert {"mopn-rows", "mopn-term", "mopn-sum"} <= client.run_on_scheduler(prefixes)


@pytest.mark.slow
def test_a_class_that_no_row_has(client):
    plain = estimators.MultiOutputFMClassifier(**STEP)
    classifier = mopn.dask.fit(plain, chunked(X), chunked(LABELS), classes=["c", "d", "b", "a"], timeout=300)
    np.testing.assert_array_equal(classifier.classes_, ["a", "b", "c", "d"])
    assert mopn.dask.predict(classifier, chunked(X), method="predict_proba").shape == (150, 4)
    assert "d" not in classifier.predict(X)
    balanced = clone(plain).set_params(class_weight="balanced")
    with pytest.raises(ValueError, match=r"class_weight='balanced' needs rows of each class, and .*d"):
        mopn.dask.fit(balanced, chunked(X), chunked(LABELS), classes=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match=r"block \d: y has the label .*, which is not among the classes"):
        mopn.dask.fit(plain, chunked(X), chunked(LABELS), classes=["a", "b"])


def test_a_class_of_rows_without_weight_is_none(client, on_workers):
    weights = np.where(LABELS == "b", 0.0, WEIGHTS)
    plain = estimators.MultiOutputFMClassifier(**STEP)
    classifier = mopn.dask.fit(plain, chunked(X), chunked(LABELS), chunked(weights), timeout=300)
    np.testing.assert_array_equal(classifier.classes_, ["a", "c"])
    assert classifier.objective_ == pytest.approx(clone(plain).fit(X, LABELS, weights).objective_, rel=1e-6)


def test_what_is_refused(client, on_workers):
    classifier, regressor = estimators.MultiOutputPNClassifier(**STEP), estimators.MultiOutputPNRegressor()

    for estimator, y, options, message in (
        (estimators.PathCV(classifier), LABELS, {}, "estimator must be one of the networks"),
        (classifier, LABELS, {"item_features": X}, "item_features is for ImplicitFactorization alone"),
        (classifier, LABELS[:, None], {}, r"use y\[:, 0\]"),
        (classifier, (X > 0).astype(int), {"classes": [0, 1]}, "classes are for labels"),
        (classifier, np.arange(300).reshape(150, 2), {}, r"block \d: y has the label"),
        (classifier, np.full(150, "a"), {}, "one class only"),
        (regressor, NUMBERS, {"classes": [1, 2]}, "classes are for labels"),
        (regressor, np.where(np.arange(150) == 62, np.nan, NUMBERS), {}, "block 1: y contains NaN"),
        (clone(classifier).set_params(strength=-1.0), LABELS, {}, "strength must be"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            mopn.dask.fit(estimator, chunked(X), chunked(y), **options)


@pytest.mark.parametrize("kind", ["estimator", "model"])
def test_predictions_of_sparse_blocks_and_in_memory(client, kind):
    local = estimators.MultiOutputFMClassifier(**STEP).fit(X, LABELS)
    model = local if kind == "estimator" else local.model_
    lazy = mopn.dask.predict(model, chunked(X).map_blocks(sparse.csr_array))
    np.testing.assert_array_equal(lazy.compute(), local.predict(X))
    np.testing.assert_array_equal(mopn.dask.predict(model, X), local.predict(X))
    with pytest.raises(ValueError, match=r"2 features|2 columns"):
        mopn.dask.predict(model, chunked(X[:, :2]))


@pytest.mark.parametrize("nit", [0, 1])
def test_a_client_that_closes_leaves_the_best_network(cluster, on_workers, nit, monkeypatch):
    """Before there is one, the error is raised."""
    with distributed.Client(cluster, timeout=30, set_as_default=False) as client:

        def close(intermediate_result):
            if intermediate_result.nit == nit:
                client.close()

        def minimize(*problem, callback, **options):
            return mopn.minimize(*problem, callback=close, **options)

        monkeypatch.setattr(mopn.estimators.network_estimator, "minimize", minimize)
        classifier = estimators.MultiOutputPNClassifier(**STEP)
        data = {"X": chunked(X), "y": chunked(LABELS), "client": client, "timeout": 300}
        if nit == 0:
            with pytest.raises(ConnectionError, match="the Dask client is closed; keep it open"):
                mopn.dask.fit(classifier, **data)
            return
        with pytest.warns(ConvergenceWarning, match="the Dask client is closed; keep it open"):
            found = mopn.dask.fit(classifier, **data)
    assert found.gap_ == np.inf  # the rows that its proof would read are lost
    assert set(found.predict(X)) <= set(LABELS)


@pytest.mark.parametrize("where", ["workers", "memory"])
def test_data_frames(client, where, request):
    if where == "workers":
        request.getfixturevalue("on_workers")
    table = pd.DataFrame(X, columns=["u", "v", "w"])
    levels = pd.Series((NUMBERS > 0) + 1)
    X_frame, y_frame = (frames.from_pandas(part, npartitions=2) for part in (table, levels))
    plain = estimators.OrdinalFMRegressor(**STEP | {"alpha": None})
    found = mopn.dask.fit(plain, X_frame, y_frame, timeout=300)
    assert found.feature_names_in_.tolist() == ["u", "v", "w"]
    for method in ("predict", "predict_proba"):
        expected, lazy = getattr(found, method)(table), mopn.dask.predict(found, X_frame, method=method)
        assert lazy.shape[1:] == expected.shape[1:]
        assert type(lazy._meta) is np.ndarray
        # Frames come as they are: without their names there would be a warning.
        np.testing.assert_allclose(lazy.compute(scheduler="sync"), expected)
    for columns in (["w", "u", "v"], ["u", "v", "x"], ["u", "v"]):
        other = table.reindex(columns=columns, fill_value=0.0)
        with pytest.raises(ValueError, match=r"feature|names") as local:
            found.predict(other)
        with pytest.raises(ValueError, match=re.escape(str(local.value))):
            mopn.dask.predict(found, frames.from_pandas(other, npartitions=2))
    with pytest.warns(UserWarning, match="X does not have valid feature names") as given:
        mopn.dask.predict(found, chunked(X)).compute(scheduler="sync")
    assert len(given) == 1
    with pytest.raises(ValueError, match="same order as they were in fit"):
        mopn.dask.fit(found.set_params(warm_start=True), X_frame[["w", "u", "v"]], y_frame)


# -- tables ------------------------------------------------------------------------------------------------------------


N, CUTS = 150, (0, 60, 60, 150)
FRAME = pd.DataFrame({"size": RNG.standard_normal(N), "color": RNG.choice(["red", "green", "blue"], N)})
FRAME.loc[100:, "color"] = "pink"
TRUTH = (FRAME["size"] * np.where(FRAME["color"] == "red", 1.0, -1.0)).to_numpy()
FRAME.loc[70::9, "size"] = np.nan
HIGH_OR_LOW = np.where(TRUTH > 0.0, "high", "low")
FIXED = {"strength": Ratio(0.5), "curves": 0, "max_units": 1, "tol": 0.5}


def cut(rows):
    return [rows[a:b] for a, b in pairwise(CUTS)]


def spread(y):
    """Return the partitions of X, with the categories that they have and one without rows, and of y."""
    partitions = [part.assign(color=part["color"].astype("category")) for part in cut(FRAME)]
    X = frames.from_map(lambda part: part, partitions, meta=FRAME[:0])
    return X, frames.from_map(lambda part: part, cut(pd.Series(y)), meta=pd.Series(y)[:0])


def assert_same_tables(found, expected):
    assert_same(found, expected)
    assert found.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    assert found.encoding_.feature_names.tolist() == expected.encoding_.feature_names.tolist()


of_both_kinds = pytest.mark.parametrize(
    ("name", "y"), [("TableClassifier", HIGH_OR_LOW), pytest.param("TableRegressor", TRUTH, marks=pytest.mark.slow)]
)


@of_both_kinds
def test_tables_on_workers_are_those_of_blocks_in_one_process(client, on_workers, name, y):
    X, labels = spread(y)
    plain = getattr(estimators, name)(**FIXED)
    found = mopn.dask.fit(plain, X, labels, timeout=300)
    in_process = clone(plain).fit(mopn.RowBlocks(cut(FRAME), y))
    assert_same_tables(found, in_process)
    assert str(mopn.explain.drift(found, FRAME)) == str(mopn.explain.drift(in_process, FRAME))
    methods = ["predict", *(["predict_proba"] if name == "TableClassifier" else [])]
    for model in (found, found.model_):
        for method in methods:
            lazy, plain = mopn.dask.predict(model, X, method=method), getattr(found, method)(FRAME)
            computed = lazy.compute()
            assert lazy.ndim == plain.ndim
            assert np.allclose(computed, plain) if plain.dtype.kind == "f" else (computed == plain).all()
    with pytest.raises(ValueError, match="The feature names should match"):
        mopn.dask.predict(found, X.rename(columns={"size": "length"}))


@of_both_kinds
def test_small_tables_are_fitted_in_this_process(client, name, y):
    plain = getattr(estimators, name)(curves=1, max_units=2)
    assert_same_tables(mopn.dask.fit(plain, *spread(y)), clone(plain).fit(FRAME, y))


@pytest.mark.parametrize("dtype", ["Int64", "boolean"])
def test_labels_keep_their_type_and_columns_are_read_by_name(client, dtype):
    y = pd.Series(TRUTH > 0.0, dtype="boolean")
    y = y if dtype == "boolean" else y.astype(dtype) + 2**53
    X, labels = (frames.from_pandas(part, npartitions=2) for part in (FRAME, y))
    found = mopn.dask.fit(estimators.TableClassifier(**FIXED), X, labels, timeout=300)
    assert found.classes_.tolist() == sorted(set(y.tolist()))
    turned = X[["color", "size"]]
    assert np.array_equal(*(mopn.dask.predict(found, part).compute() for part in (turned, X)))


def test_what_of_tables_is_refused(client, on_workers):
    y = frames.from_pandas(pd.Series(HIGH_OR_LOW), npartitions=2)
    classifier = estimators.TableClassifier(**FIXED)
    with pytest.raises(ValueError, match=r"block \d: column 'size' of X contains infinity"):
        mopn.dask.fit(classifier, frames.from_pandas(FRAME.assign(size=np.inf), npartitions=2), y)
    with pytest.warns(UserWarning, match="X has no value in column 'color'"):
        mopn.dask.fit(classifier, frames.from_pandas(FRAME.assign(color=np.nan), npartitions=2), y)
    with pytest.raises(TypeError, match=r"lazy frame.*mopn\.dask\.fit"):
        classifier.fit(frames.from_pandas(FRAME, npartitions=2), HIGH_OR_LOW)


@pytest.mark.slow
def test_the_strength_is_chosen_on_a_sample_in_this_process(client, on_workers):
    plain = estimators.TableClassifier(**{**FIXED, "strength": "auto"})
    found = mopn.dask.fit(plain, *spread(HIGH_OR_LOW), timeout=300)
    assert found.strength_ == clone(plain).fit(mopn.RowBlocks(cut(FRAME), HIGH_OR_LOW)).strength_

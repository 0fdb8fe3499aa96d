"""Tables on a cluster: estimators are those of blocks in one process, whatever the types of the partitions."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mopn
from mopn import Ratio, estimators

distributed = pytest.importorskip("distributed")
frames = pytest.importorskip("dask.dataframe")
pytest.importorskip("mopn.dask")

RNG = np.random.default_rng(0)
N, CUTS = 150, (0, 60, 60, 150)
FRAME = pd.DataFrame({"size": RNG.standard_normal(N), "color": RNG.choice(["red", "green", "blue"], N)})
FRAME.loc[100:, "color"] = "pink"
TRUTH = (FRAME["size"] * np.where(FRAME["color"] == "red", 1.0, -1.0)).to_numpy()
FRAME.loc[70::9, "size"] = np.nan
LABELS = np.where(TRUTH > 0.0, "high", "low")
FIXED = {"strength": Ratio(0.5), "curves": 0, "max_units": 1, "tol": 0.5}
FITTED = ("basis_", "weights_", "objective_", "gap_", "strength_", "n_features_in_", "feature_names_in_")


def cut(rows):
    return [rows[a:b] for a, b in pairwise(CUTS)]


def partitions():
    """Partitions with the categories that they have, and one without rows."""
    return [part.assign(color=part["color"].astype("category")) for part in cut(FRAME)]


def spread(y):
    """Return the partitions of X and of y."""
    X = frames.from_map(lambda part: part, partitions(), meta=FRAME[:0])
    return X, frames.from_map(lambda part: part, cut(pd.Series(y)), meta=pd.Series(y)[:0])


def assert_same(found, expected):
    for attribute in FITTED:
        np.testing.assert_array_equal(getattr(found, attribute), getattr(expected, attribute))
    assert type(found) is type(expected)
    assert found.encoding_.feature_names.tolist() == expected.encoding_.feature_names.tolist()


of_both_kinds = pytest.mark.parametrize(
    ("name", "y"), [("TableClassifier", LABELS), pytest.param("TableRegressor", TRUTH, marks=pytest.mark.slow)]
)


@of_both_kinds
def test_fits_on_workers_are_those_of_blocks_in_one_process(client, on_workers, name, y):
    X, labels = spread(y)
    plain = getattr(estimators, name)(**FIXED)
    found = mopn.dask.fit(plain, X, labels, timeout=300)
    assert_same(found, clone(plain).fit(mopn.RowBlocks(cut(FRAME), y)))
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
    assert_same(mopn.dask.fit(plain, *spread(y)), clone(plain).fit(FRAME, y))


@pytest.mark.parametrize("dtype", ["Int64", "boolean"])
def test_labels_keep_their_type_and_columns_are_read_by_name(client, dtype):
    y = pd.Series(TRUTH > 0.0, dtype="boolean")
    y = y if dtype == "boolean" else y.astype(dtype) + 2**53
    X, labels = (frames.from_pandas(part, npartitions=2) for part in (FRAME, y))
    found = mopn.dask.fit(estimators.TableClassifier(**FIXED), X, labels, timeout=300)
    assert found.classes_.tolist() == sorted(set(y.tolist()))
    turned = X[["color", "size"]]
    assert np.array_equal(*(mopn.dask.predict(found, part).compute() for part in (turned, X)))


def test_what_is_refused(client, on_workers):
    y = frames.from_pandas(pd.Series(LABELS), npartitions=2)
    classifier = estimators.TableClassifier(**FIXED)
    with pytest.raises(ValueError, match=r"block \d: column 'size' of X contains infinity"):
        mopn.dask.fit(classifier, frames.from_pandas(FRAME.assign(size=np.inf), npartitions=2), y)
    with pytest.warns(UserWarning, match="X has no value in column 'color'"):
        mopn.dask.fit(classifier, frames.from_pandas(FRAME.assign(color=np.nan), npartitions=2), y)
    with pytest.raises(TypeError, match=r"lazy frame.*mopn\.dask\.fit"):
        classifier.fit(frames.from_pandas(FRAME, npartitions=2), LABELS)


@pytest.mark.slow
def test_the_strength_is_chosen_on_a_sample_in_this_process(client, on_workers):
    plain = estimators.TableClassifier(**{**FIXED, "strength": "auto"})
    found = mopn.dask.fit(plain, *spread(LABELS), timeout=300)
    assert found.strength_ == clone(plain).fit(mopn.RowBlocks(cut(FRAME), LABELS)).strength_

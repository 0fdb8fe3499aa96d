"""Tables on a cluster: estimators are those of blocks in one process, whatever the types of the partitions."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

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


@pytest.mark.parametrize(
    ("name", "y"), [("TableClassifier", LABELS), pytest.param("TableRegressor", TRUTH, marks=pytest.mark.slow)]
)
def test_fits_are_those_of_blocks_in_one_process(client, name, y):
    X = frames.from_map(lambda part: part, partitions(), meta=FRAME[:0])
    labels = frames.from_map(lambda part: part, cut(pd.Series(y)), meta=pd.Series(y)[:0])
    found = getattr(mopn.dask, f"Dask{name}")(**FIXED).fit(X, labels, timeout=300)
    expected = getattr(estimators, name)(**FIXED).fit(mopn.RowBlocks(cut(FRAME), y))
    for attribute in FITTED:
        np.testing.assert_array_equal(getattr(found, attribute), getattr(expected, attribute))
    assert found.encoding_.feature_names.tolist() == expected.encoding_.feature_names.tolist()
    local = found.to_local()
    assert type(local) is type(expected)
    lazy = found.predict(X)
    computed, plain = lazy.compute(), local.predict(FRAME)
    assert np.allclose(computed, plain) if plain.dtype.kind == "f" else (computed == plain).all()
    assert lazy.ndim == 1
    if name == "TableClassifier":
        np.testing.assert_allclose(found.predict_proba(X).compute(), local.predict_proba(FRAME))
    assert found.score(X, labels) == pytest.approx(local.score(FRAME, y))
    with pytest.raises(ValueError, match="The feature names should match"):
        found.predict(X.rename(columns={"size": "length"}))


@pytest.mark.parametrize("dtype", ["Int64", "boolean"])
def test_labels_keep_their_type_and_columns_are_read_by_name(client, dtype):
    y = pd.Series(TRUTH > 0.0, dtype="boolean")
    y = y if dtype == "boolean" else y.astype(dtype) + 2**53
    X, labels = (frames.from_pandas(part, npartitions=2) for part in (FRAME, y))
    found = mopn.dask.DaskTableClassifier(**FIXED).fit(X, labels, timeout=300)
    assert found.classes_.tolist() == sorted(set(y.tolist()))
    turned = X[["color", "size"]]
    assert np.array_equal(found.predict(turned).compute(), found.predict(X).compute())
    assert found.score(turned, labels) == found.score(X, labels)


def test_what_is_refused(client):
    y = frames.from_pandas(pd.Series(LABELS), npartitions=2)
    classifier = mopn.dask.DaskTableClassifier(**FIXED)
    with pytest.raises(OSError, match=r"block \d cannot be computed: .*column 'size' of X contains infinity"):
        classifier.fit(frames.from_pandas(FRAME.assign(size=np.inf), npartitions=2), y)
    with pytest.warns(UserWarning, match=r"X has columns without any value, \['color'\]"):
        classifier.fit(frames.from_pandas(FRAME.assign(color=np.nan), npartitions=2), y)
    with pytest.raises(TypeError, match=r"lazy frame.*DaskTableClassifier"):
        estimators.TableClassifier().fit(frames.from_pandas(FRAME, npartitions=2), LABELS)


@pytest.mark.slow
def test_the_strength_is_chosen_as_in_blocks(client):
    options = {**FIXED, "strength": "auto"}
    X, y = frames.from_pandas(FRAME, npartitions=1), frames.from_pandas(pd.Series(LABELS), npartitions=1)
    found = mopn.dask.DaskTableClassifier(**options).fit(X, y, timeout=300)
    assert found.strength_ == estimators.TableClassifier(**options).fit(mopn.RowBlocks([FRAME], LABELS)).strength_

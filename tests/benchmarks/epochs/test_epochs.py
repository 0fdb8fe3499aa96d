"""The sets of the epochs, and an epoch of each model."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks.common.sources import MissingDataError
from benchmarks.epochs import __main__ as epochs


@pytest.fixture
def folder(tmp_path):
    """A sparse and a dense set of the same rows."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((40, 6), density=0.4, format="csr", random_state=rng)
    both = {"y_train": rng.standard_normal(40), "P0_k3": 0.1 * rng.standard_normal((3, 6))}
    parts = {"train_data": X.data, "train_indices": X.indices, "train_indptr": X.indptr, "train_shape": X.shape}
    np.savez(tmp_path / "recsys.npz", **parts, **both)
    np.savez(tmp_path / "dense.npz", train_dense=X.toarray(), **both)
    return str(tmp_path)


def test_sparse_and_dense_rows_are_read(folder):
    X, y, start = epochs.load(folder, "recsys")
    dense, *rest = epochs.load(folder, "dense")
    np.testing.assert_array_equal(X.toarray(), dense)
    np.testing.assert_array_equal(y, rest[0])
    np.testing.assert_array_equal(start, rest[1])
    with pytest.raises(MissingDataError, match=r"sparse_wide\.npz"):
        epochs.load(folder, "sparse_wide")


@pytest.mark.parametrize("model", ["fm2", "pn2"])
def test_epochs_go_down(folder, model):
    few, many = (epochs.one(folder, "dense", model, count, 1) for count in (1, 6))
    assert many["objective"] < few["objective"]
    assert many["seconds_per_epoch"] > 0

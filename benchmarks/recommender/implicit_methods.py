"""Methods of implicit feedback: scores of all users and items, by options of small grids.

EASE (Steck, WWW 2019) and the packages ``implicit`` (ALS, BPR), ``irspack`` (iALS) and ``lightfm`` (WARP), on one
thread. Packages are imported where they are needed.
"""

import contextlib
import io
import itertools
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from sklearn.utils import check_random_state

from mopn.estimators.implicit import held_out_pairs
from mopn.ranking import ndcg_at_k


class Method(NamedTuple):
    """The scores (n_users, n_items) of a method, the values of its options, and the package that it needs."""

    scores: Callable[..., np.ndarray]
    grid: Mapping[str, tuple[Any, ...]]
    package: str = "mopn"

    @property
    def is_installed(self) -> bool:
        """Whether the package is there."""
        return find_spec(self.package) is not None

    def chosen(self, likes: sparse.csr_array) -> dict[str, Any]:
        """Return the options of the best nDCG@10 on the pairs that ``ImplicitFactorization`` holds out, too."""
        candidates = [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]
        if len(candidates) == 1:
            return candidates[0]
        train, held = held_out_pairs(likes, check_random_state(0))
        return max(candidates, key=lambda options: ndcg_at_k(held, self.scores(train, **options), 10, seen=train))


def _popularity(likes: sparse.csr_array) -> np.ndarray:
    return np.tile(likes.sum(axis=0), (likes.shape[0], 1))


def ease(likes: sparse.csr_array, penalty: float) -> np.ndarray:
    """Predict each item by the other items of a user: ridge regression in closed form, with the smaller Gram matrix."""
    dense = likes.toarray()
    n_users, n_items = dense.shape
    if n_items <= n_users:
        P = linalg.inv(dense.T @ dense + penalty * np.eye(n_items))
        return dense - (dense @ P) / np.diag(P)
    fitted = linalg.solve(dense @ dense.T + penalty * np.eye(n_users), dense, assume_a="pos")
    return dense - fitted / ((1.0 - np.einsum("ui,ui->i", dense, fitted)) / penalty)


def _als(likes: sparse.csr_array, **options: Any) -> np.ndarray:
    from implicit.cpu.als import AlternatingLeastSquares

    return _of_implicit(AlternatingLeastSquares(random_state=0, num_threads=1, **options), likes)


def _bpr(likes: sparse.csr_array, **options: Any) -> np.ndarray:
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    return _of_implicit(BayesianPersonalizedRanking(random_state=0, num_threads=1, **options), likes)


def _of_implicit(model: Any, likes: sparse.csr_array) -> np.ndarray:
    model.fit(sparse.csr_matrix(likes, dtype=np.float32), show_progress=False)
    return model.user_factors @ model.item_factors.T


def _ials(likes: sparse.csr_array, **options: Any) -> np.ndarray:
    from irspack import IALSRecommender

    model = IALSRecommender(sparse.csr_matrix(likes), n_threads=1, random_seed=0, **options)
    # It prints a bar of its progress.
    with contextlib.redirect_stdout(io.StringIO()):
        model.learn()
    return model.get_score(np.arange(likes.shape[0]))


def _warp(likes: sparse.csr_array, epochs: int, alpha: float, **options: Any) -> np.ndarray:
    from lightfm import LightFM

    model = LightFM(loss="warp", item_alpha=alpha, user_alpha=alpha, random_state=0, **options)
    pairs = [ids.astype(np.int32) for ids in likes.nonzero()]
    ones = sparse.coo_matrix((np.ones(likes.nnz, np.float32), pairs), shape=likes.shape)
    model.fit(ones, epochs=epochs, num_threads=1)
    return model.user_embeddings @ model.item_embeddings.T + model.item_biases


METHODS = {
    "popularity": Method(_popularity, {}),
    "EASE": Method(ease, {"penalty": (30.0, 100.0, 300.0, 1000.0)}),
    "implicit, ALS": Method(
        _als,
        {"factors": (16, 64, 128), "regularization": (1.0, 10.0, 50.0), "alpha": (1.0, 3.0, 10.0, 30.0)},
        "implicit",
    ),
    "implicit, BPR": Method(
        _bpr, {"factors": (32, 128), "regularization": (0.001, 0.01), "learning_rate": (0.003, 0.01)}, "implicit"
    ),
    "irspack, iALS": Method(
        _ials, {"n_components": (16, 64, 128), "reg": (0.003, 0.01, 0.03), "alpha0": (0.03, 0.1, 0.3, 1.0)}, "irspack"
    ),
    "LightFM, WARP": Method(_warp, {"no_components": (32, 64), "alpha": (0.0, 1e-5, 1e-4), "epochs": (20,)}, "lightfm"),
}

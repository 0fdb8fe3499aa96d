"""The dual point of a lower bound, checked by plain NumPy: the gradient, the dual norm, the conjugate and the bound."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import mopn
from mopn.estimators import MultiOutputPNClassifier
from mopn.solvers import ConditionalGradient

X, y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / 3
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
STORAGES = {
    "dense": (X, y, WEIGHTS),
    "csr": (sp.csr_matrix(X), y, WEIGHTS),
    "blocks": (mopn.RowBlocks([X[:60], X[60:]], y, sample_weight=WEIGHTS), None, None),
}
SIZES = {"strength": 2.0, "radius": 4.0}


def make(size="strength", storage="dense", **options):
    options = {"norm": "l1", size: SIZES[size]} | options
    data, labels, weights = STORAGES[storage]
    return mopn.NetworkProblem(data, labels, sample_weight=weights, **options)


def conjugate(D, T):
    """Return F* of the weighted multi-class logistic loss: negative entropies of D / w + T, probabilities."""
    q = np.maximum(D / WEIGHTS[:, None] + T, 0.0)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, atol=1e-9)
    return float(WEIGHTS @ np.sum(q * np.log(np.where(q > 0, q, 1.0)), axis=1))


def dual_norm(Z, D):
    return max(np.abs(np.linalg.eigvalsh(Z.T * column @ Z)).max() for column in D.T)


@pytest.mark.parametrize(
    ("size", "storage", "options"),
    [
        ("strength", "dense", {}),
        ("strength", "blocks", {"alpha": 0.5}),
        ("radius", "csr", {"augment": True}),
        ("radius", "blocks", {}),
    ],
)
def test_the_dual_point_proves_the_bound_again(size, storage, options):
    problem = make(size, storage, **options)
    result = mopn.minimize(problem, ConditionalGradient("full"), tol=1e-2, max_iter=10)
    certificate = mopn.certify(problem, result.basis, result.weights, linear=result.linear)
    T, ones = np.eye(3)[y], np.ones((len(y), 1))
    for dual, lower in ((result.dual, result.lower), (certificate.dual, certificate.lower)):
        D = dual.point(problem)
        Z = np.hstack([ones, X]) if "augment" in options else X
        ridge = 0.0
        if "alpha" in options:
            alphas = np.array([0.005, *[0.5] * 4])
            ridge = float(((D.T @ np.hstack([ones, X])) ** 2 / (2 * alphas)).sum())
        norm = dual_norm(Z, D)
        assert dual.lower == lower
        assert norm <= dual.bound <= norm * (1 + 1e-9)
        if size == "strength":
            assert dual.bound <= 2.0 * (1 + 1e-12)
        of_ball = 4.0 * dual.bound if size == "radius" else 0.0
        assert -conjugate(D, T) - of_ball - ridge == pytest.approx(lower, rel=1e-9, abs=1e-9)


def test_the_dual_point_is_of_the_network_it_names_and_is_small():
    problem = make()
    result = mopn.minimize(problem, tol=1e-4)
    dual = pickle.loads(pickle.dumps(result.dual))
    O = (X @ dual.basis.T) ** 2 @ dual.weights  # noqa: E741
    P = np.exp(O - O.max(axis=1, keepdims=True))
    G = WEIGHTS[:, None] * (P / P.sum(axis=1, keepdims=True) - np.eye(3)[y])
    np.testing.assert_allclose(dual.point(problem), dual.scale * G, atol=1e-12)
    assert dual == result.dual
    assert not result.dual.basis.flags.writeable
    assert len(pickle.dumps(dual)) < 100 * (7 + len(dual.basis) * 7)
    assert mopn.certify(problem, result.basis, result.weights) == mopn.certify(problem, result.basis, result.weights)


def test_a_dual_point_is_of_a_bound_and_a_problem():
    dual = mopn.minimize(make(), max_iter=1).dual
    with pytest.raises(ValueError, match="problem must be of 4 features and 3 outputs as the dual point, got 3 and 3"):
        dual.point(mopn.NetworkProblem(X[:, :3], y, norm="l1", strength=1.0))
    unbounded = make(strength=0.0)
    assert mopn.minimize(unbounded, ConditionalGradient(max_units=2), tol=0, max_iter=2).dual is None
    layer = mopn.OutputLayerProblem(X**2, y, norm="l1", strength=1.0)
    assert mopn.minimize(layer).dual is None


def test_estimators_have_the_dual_point_of_their_fit():
    model = MultiOutputPNClassifier(norm="l1", strength=2.0, ridge=0.0).fit(X, y)
    problem = mopn.NetworkProblem(X, y, norm="l1", strength=2.0, augment=True, center=True, scale="features")
    assert model.dual_.lower == pytest.approx(model.objective_ - model.gap_, rel=1e-9)
    Z = np.hstack([np.ones((len(y), 1)), problem.design.matrix()[:, 1:]])
    assert dual_norm(Z, model.dual_.point(problem)) <= model.dual_.bound

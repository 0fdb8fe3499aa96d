"""The classifiers of the study: those that have proven radii, as models of mopn, and one that is only attacked."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

import mopn
from mopn.estimators import MultiOutputFMClassifier, MultiOutputPNClassifier

# Copies of the images with noise, and its deviation.
_COPIES, _NOISE = 5, 2.0
# Steps of the attack to the boundary, and halvings of the way back.
_STEPS, _HALVINGS = 30, 30
_BEYOND = 1.02


def _network(X: np.ndarray, y: np.ndarray, **options: Any) -> mopn.Model:
    return MultiOutputPNClassifier(random_state=0, **options).fit(X, y).model_


def _noisy(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the images, and copies of them with normal noise."""
    noise = np.random.default_rng(0).normal(0.0, _NOISE, (_COPIES, *X.shape))
    return np.vstack([X, *(X + noise)]), np.tile(y, _COPIES + 1)


def _machine(X: np.ndarray, y: np.ndarray, **options: Any) -> mopn.Model:
    return MultiOutputFMClassifier(norm="l1", random_state=0, **options).fit(X, y).model_


def linear_model(classifier: Any, X: np.ndarray, y: np.ndarray) -> mopn.Model:
    """Return a linear classifier as a network without units."""
    fitted = classifier.fit(X, y)
    linear = np.column_stack([fitted.intercept_, fitted.coef_])
    nothing = np.zeros((0, X.shape[1])), np.zeros((0, len(linear)))
    return mopn.Model(*nothing, linear=linear, classes=fitted.classes_)


def _quadratic_svm(X: np.ndarray, y: np.ndarray) -> mopn.Model:
    """Return a one-against-rest SVM of the kernel (gamma <s, x> + 1)^2 as a network of its support vectors."""
    gamma = 1.0 / (X.shape[1] * X.var())
    several = OneVsRestClassifier(SVC(kernel="poly", degree=2, coef0=1.0, gamma=gamma)).fit(X, y)
    machines = several.estimators_
    units = np.vstack([machine.support_vectors_ for machine in machines])
    weights = np.zeros((len(units), len(machines)))
    first = 0
    for c, machine in enumerate(machines):
        last = first + len(machine.support_vectors_)
        weights[first:last, c] = machine.dual_coef_[0]
        first = last
    basis = np.column_stack([np.ones(len(units)), gamma * units])
    offset = np.array([machine.intercept_[0] for machine in machines])
    return mopn.Model(basis, weights, augment=True, offset=offset, classes=several.classes_)


Fit = Callable[[np.ndarray, np.ndarray], Any]
PROVEN: dict[str, Fit] = {
    "polynomial network, l1": lambda X, y: _network(X, y, norm="l1"),
    "noise in training": lambda X, y: _network(*_noisy(X, y), norm="l1"),
    "scale='data'": lambda X, y: _network(X, y, norm="l1", scale="data"),
    "scale='data', noise in training": lambda X, y: _network(*_noisy(X, y), norm="l1", scale="data"),
    "scale='data', l1/l2": lambda X, y: _network(X, y, norm="l1/l2", scale="data"),
    "factorization machine, l1": _machine,
    "scale='data', factorization machine": lambda X, y: _machine(X, y, scale="data"),
    "quadratic SVM, one against the rest": _quadratic_svm,
    "logistic regression": lambda X, y: linear_model(LogisticRegression(max_iter=5000), X, y),
    "linear SVM": lambda X, y: linear_model(LinearSVC(max_iter=50000), X, y),
}
ATTACKED: dict[str, Fit] = {
    "RBF SVM, one against the rest": lambda X, y: OneVsRestClassifier(SVC()).fit(X, y),
}


def attacked_distances(several: OneVsRestClassifier, X: np.ndarray) -> np.ndarray:
    """Return l2 distances (n,) to points of other classes, found by steps to linearised boundaries (DeepFool, 2016).

    They are upper bounds of the distance to the nearest such point.
    """
    before = several.predict(X)
    codes = np.searchsorted(several.classes_, before)
    Z = X.copy()
    for _ in range(_STEPS):
        left = np.flatnonzero(several.predict(Z) == before)
        if not len(left):
            break
        outputs, gradients = _outputs_and_gradients(several, Z[left])
        at = np.arange(len(left))
        margins = outputs[at, codes[left], None] - outputs
        slopes = gradients[at, codes[left], None] - gradients
        squares = np.maximum(np.sum(slopes**2, axis=2), 1e-300)
        distances = margins / np.sqrt(squares)
        distances[at, codes[left]] = np.inf
        nearest = distances.argmin(axis=1)
        steps = (margins / squares)[at, nearest, None] * slopes[at, nearest]
        Z[left] -= _BEYOND * steps
    inside, outside = np.zeros(len(X)), np.where(several.predict(Z) != before, 1.0, np.inf)
    found = np.isfinite(outside)
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        changed = np.zeros(len(X), bool)
        changed[found] = several.predict(X[found] + middle[found, None] * (Z - X)[found]) != before[found]
        inside, outside = np.where(found & ~changed, middle, inside), np.where(changed, middle, outside)
    return np.where(found, outside * np.linalg.norm(Z - X, axis=1), np.inf)


def _outputs_and_gradients(several: OneVsRestClassifier, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the outputs (n, m) of SVMs with RBF kernels, and their gradients (n, m, d)."""
    gradients = []
    for machine in several.estimators_:
        S, alphas, gamma = machine.support_vectors_, machine.dual_coef_[0], machine._gamma
        squares = np.sum(Z**2, axis=1)[:, None] + np.sum(S**2, axis=1) - 2.0 * Z @ S.T
        K = np.exp(-gamma * squares) * alphas
        gradients.append(2.0 * gamma * (K @ S - K.sum(axis=1)[:, None] * Z))
    return several.decision_function(Z), np.stack(gradients, axis=1)

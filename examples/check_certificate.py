"""Prove the gap of a fit again, from certificate.npz and the data alone: docs/check_certificate.md says why."""

from itertools import permutations, product

import numpy as np
from sklearn.datasets import load_digits

EPS, ORDERS = np.finfo(float).eps, {"l1": 1, "l1/l2": 2, "l1/linf": np.inf}


def features(X, w):
    """Return the features of a default fit: 1, and X centered and scaled."""
    Z = X - w @ X / w.sum()
    deviations = np.sqrt(w @ Z**2 / w.sum())
    varies = deviations > 1e-12 * np.sqrt(w @ X**2 / w.sum())
    scales = np.where(varies, deviations * np.sqrt(varies.sum()) / 2, np.inf)
    return np.column_stack([np.ones(len(X)), Z / scales])


def proven_gap(Z, y, fit, w, norm="l1"):
    """Bound the relative gap of a network; infinity where nothing is proven."""
    H, V, D = (np.asarray(fit[name], float) for name in ("basis", "weights", "D"))
    strength, ridge = float(fit["strength"]), float(fit.get("ridge", 0))
    b = np.asarray(fit.get("offset", 0), float)
    used, lengths = w > 0, np.linalg.norm(H, axis=1, keepdims=True)
    classes, labels = np.unique(y[used], return_inverse=True)
    (n, d), m = Z.shape, len(classes)
    wanted = (n,), (n,), (len(H), d), (len(H), m), (n, m)
    if wanted != (y.shape, w.shape, H.shape, V.shape, D.shape):
        return np.inf
    if b.shape not in ((), (m,)):
        return np.inf
    if not all(np.isfinite(part).all() for part in (Z, w, H, V, D, b)):
        return np.inf
    if not (0 < strength < np.inf and 0 <= ridge < np.inf and w.min() >= 0):
        return np.inf
    if not lengths.all():
        return np.inf
    Z, D, w, Y = Z[used], D[used], w[used, None], np.eye(m)[labels]
    H, V = H / lengths, V * lengths**2  # units of length 1, and the same outputs

    # The objective of the network: logistic losses, the norm of its weights, the ridge.
    outputs = (Z @ H.T) ** 2 @ V + b
    outputs -= outputs.max(axis=1, keepdims=True)
    likelihoods = outputs[Y == 1] - np.log(np.exp(outputs).sum(axis=1))
    losses = -np.sum(w * likelihoods[:, None])
    size = strength * np.linalg.norm(V, ORDERS[norm], axis=1).sum()
    squares = ridge / 2 * np.sum(V * ((H @ H.T) ** 2 @ V))
    objective = losses + size + squares

    # A dual point: each row is a vector of probabilities minus the label's unit vector.
    P = np.clip(D / w + Y, 1e-300, 1)
    P /= P.sum(axis=1, keepdims=True)
    D = w * (P - Y)
    gammas = np.stack([(Z.T * column) @ Z for column in D.T])
    errors = (n + m + 16) * EPS * (np.abs(D).T @ (Z**2).sum(axis=1))
    errors += 4 * d * EPS * np.linalg.norm(gammas, axis=(1, 2))

    # The lower bound: with a ridge the excess over the strength is paid for, else D is
    # scaled down until there is none.
    s, paid = 1, 0
    if norm == "l1" and ridge > 0:
        moduli = np.abs(np.linalg.eigvalsh(gammas)) + errors[:, None]
        paid = np.sum(np.maximum(moduli - strength, 0) ** 2) / (2 * ridge)
    else:
        s = strength / np.maximum(strength, dual_norm(gammas, errors, norm, fit))
    P = np.maximum(Y + s * (P - Y), 1e-300)
    entropy, shift = -np.sum(w * P * np.log(P)), s * D * b
    lower = entropy + shift.sum() - paid

    # The rounding errors of the two sums.
    terms = objective + entropy + np.abs(shift).sum() + paid + 4 * np.abs(D).sum()
    gap = objective - lower + (n + 64) * m * EPS * terms
    return gap / objective if gap >= 0 else np.inf


def dual_norm(gammas, errors, norm, fit):
    """Bound the norm of (h'Γ_1h, ..., h'Γ_mh) over all unit vectors h."""
    m, d, _ = gammas.shape
    if norm == "l1":
        return (np.abs(np.linalg.eigvalsh(gammas)).max(axis=1) + errors).max()
    if norm == "l1/linf":  # all vectors of signs, up to the common one
        signs = ([1, *rest] for rest in product((-1, 1), repeat=m - 1))
        forms = (np.tensordot(s, gammas, 1) for s in signs)
        largest = max(np.abs(np.linalg.eigvalsh(form)).max() for form in forms)
        return largest + (m + 1) * errors.sum()
    flat, N = gammas.reshape(m, d * d), np.asarray(fit["N"], float)
    if N.shape != (d * d, d * d) or not np.isfinite(N).all():
        return np.inf
    N = (N + N.T) / 2
    orders = permutations(range(4))
    rest = sum(N.reshape(d, d, d, d).transpose(order) for order in orders) / 24
    square = np.linalg.eigvalsh(flat.T @ flat + N)[-1] + np.linalg.norm(rest)
    square += (4 * d**2 + m + 32) * EPS * (np.sum(flat**2) + np.linalg.norm(N))
    return np.sqrt(np.maximum(square, 0)) + np.linalg.norm(errors)


X, y = load_digits(return_X_y=True)  # your own data
w = np.ones(len(y))  # your sample weights
gap = proven_gap(features(X, w), y, np.load("certificate.npz"), w)
print(f"gap below 0.1%: {gap < 1e-3}")

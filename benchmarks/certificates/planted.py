"""Generated problems of any size: outputs that are quadratic forms of low rank in [1, x], with noise."""

from typing import NamedTuple

import numpy as np

import mopn

LOSSES = ("squared", "logistic")
_RANK = 2
_NOISE = 0.3


class Planted(NamedTuple):
    """A problem, its rows [1, x] (n, 1 + d), its targets (n, m), for classes of zeros and ones, and its loss."""

    problem: mopn.NetworkProblem
    rows: np.ndarray
    targets: np.ndarray
    loss: str


def planted(loss: str, n: int, d: int, m: int, ratio: float) -> Planted:
    """Return a problem with a matrix an output and nuclear norms, the norm l1."""
    X, outputs = _outputs(n, d, m)
    y, name = _targets(loss, outputs)
    problem = mopn.NetworkProblem(X, y, loss=name, kernel="homogeneous", norm="l1", strength=0.0, augment=True)
    problem = problem.with_strength(ratio * problem.strength_max("exact"))
    return Planted(problem, _with_one(X), np.eye(m)[y] if name == "logistic" else y, name)


def _outputs(n: int, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, d) and noisy outputs (n, m) of mean 0 and deviation 1 before the noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, d))
    H = rng.standard_normal((m, _RANK, d + 1)) / np.sqrt(d + 1)
    signs = np.where(np.arange(_RANK) % 2, -1.0, 1.0)
    clean = np.einsum("nmr,r->nm", np.einsum("nd,mrd->nmr", _with_one(X), H) ** 2, signs)
    clean = (clean - clean.mean(axis=0)) / clean.std(axis=0)
    return X, clean + _NOISE * rng.standard_normal((n, m))


def _targets(loss: str, outputs: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the targets that outputs give, and mopn's name of the loss."""
    if loss == "squared":
        return outputs, "squared"
    if outputs.shape[1] == 1:
        return np.where(outputs > 0, 1.0, -1.0), "binary-logistic"
    # Every class occurs.
    classes = outputs.argmax(axis=1)
    classes[: outputs.shape[1]] = np.arange(outputs.shape[1])
    return classes, "logistic"


def _with_one(X: np.ndarray) -> np.ndarray:
    return np.hstack([np.ones((len(X), 1)), X])

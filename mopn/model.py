"""A fitted model on its own: outputs, predictions, probabilities, and a plain .npz file; needs NumPy and SciPy only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.designs import make_design
from mopn.kernels import get_kernel
from mopn.losses import get_loss

__all__ = ["Model", "load"]

_FORMAT = 1
# Predictions work through the rows in blocks, so that no (n, k) array is ever formed beyond a block.
_BLOCK_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Model:
    """A multi-output polynomial network or factorization machine.

    Attributes
    ----------
    basis : ndarray of shape (k, d) or (k, d + ones)
        Units H; the leading columns belong to the 1-features if ``augment``.
    weights : ndarray of shape (k, m)
        Output weights V.
    kernel : str
        ``"homogeneous"`` or ``"anova"``.
    loss : str
        The loss it was trained with; decides how outputs become predictions.
    augment : bool
        Whether 1-features stand in front of X.
    offset : ndarray of shape (m,)
        Added to the outputs.
    classes : ndarray of shape (m,) or None
        Labels, if the model classifies.
    """

    basis: np.ndarray
    weights: np.ndarray
    kernel: str = "homogeneous"
    loss: str = "logistic"
    augment: bool = False
    offset: np.ndarray | float = 0.0
    classes: np.ndarray | None = None

    @classmethod
    def from_result(cls, problem: Any, result: Any) -> Model:
        """Return the model of a solved ``NetworkProblem``; a constant offset of the problem is kept."""
        offset = problem.fit.offset
        if offset is not None and not np.all(offset == offset[0]):
            raise ValueError("the problem's offset differs between samples, so it cannot be part of a model")
        return cls(
            basis=np.array(result.basis),
            weights=np.array(result.weights),
            kernel=problem.kernel.name,
            loss=problem.fit.loss.name,
            augment=problem.augment,
            offset=0.0 if offset is None else np.array(offset[0]),
            classes=problem.classes,
        )

    @property
    def n_features(self) -> int:
        """Number of columns that X must have."""
        return self.basis.shape[1] - (get_kernel(self.kernel).ones if self.augment else 0)

    def outputs(self, X: Any) -> np.ndarray:
        """Return K(X, H) V + offset, shape (n, m).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Raises
        ------
        ValueError
            If X has another number of columns than in training, or NaN or infinity.
        """
        kernel = get_kernel(self.kernel)
        design = make_design(X)
        n, d = design.shape
        if d != self.n_features:
            raise ValueError(f"X has {d} features, but the model was trained with {self.n_features}")
        X = design.X.tocsr() if hasattr(design.X, "tocsr") else design.X  # type: ignore[attr-defined]
        out = np.empty((n, self.weights.shape[1]))
        for first in range(0, n, _BLOCK_ROWS):
            rows = slice(first, first + _BLOCK_ROWS)
            block = make_design(X[rows], ones=kernel.ones if self.augment else 0)
            np.matmul(kernel.features(block, self.basis), self.weights, out=out[rows])
        out += self.offset
        return out

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels (n,) of a classifier with a multi-class loss, else the outputs (n, m)."""
        outputs = self.outputs(X)
        return outputs if self.classes is None else self.classes[np.argmax(outputs, axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities (n, m), of the classes or of each output being positive."""
        return get_loss(self.loss).probabilities(self.outputs(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a plain ``.npz`` file, which :func:`mopn.load` reads without pickle."""
        classes = np.zeros(0) if self.classes is None else np.asarray(self.classes)
        if classes.dtype == object:
            classes = np.array([str(c) for c in classes]) if all(isinstance(c, str) for c in classes) else classes
        if classes.dtype == object:
            raise TypeError("classes of mixed types cannot be saved without pickle; use strings or numbers as labels")
        np.savez(
            path,
            format=_FORMAT,
            basis=self.basis,
            weights=self.weights,
            kernel=self.kernel,
            loss=self.loss,
            augment=self.augment,
            offset=self.offset,
            classes=classes,
        )


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that ``save`` wrote; neither pickle nor scikit-learn is needed.

    Raises
    ------
    ValueError
        If the file is not such a model, or of a newer format.
    """
    with np.load(path, allow_pickle=False) as file:
        if "format" not in file or "basis" not in file:
            raise ValueError(f"{os.fspath(path)!r} is not a mopn model")
        if int(file["format"]) > _FORMAT:
            raise ValueError(f"{os.fspath(path)!r} was written by a newer mopn (format {int(file['format'])})")
        classes = file["classes"]
        return Model(
            basis=file["basis"],
            weights=file["weights"],
            kernel=str(file["kernel"]),
            loss=str(file["loss"]),
            augment=bool(file["augment"]),
            offset=file["offset"],
            classes=classes if classes.size else None,
        )

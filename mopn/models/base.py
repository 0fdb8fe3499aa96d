"""The common base of fitted models: predictions and probabilities from outputs, and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any

import numpy as np

from mopn.core.links import LINKS, check_link
from mopn.models.files import write
from mopn.models.ordinal import expected_level, level_probabilities

__all__ = ["Predictor", "common_offset"]

_TARGETS = ("outputs", "vector", "labels", "indicator", "ordinal")
# Logistic probabilities of outputs below this are proportional to exp(output), and far from underflow.
_DEEP = -500.0


class Predictor(ABC):
    """A dataclass that turns outputs into predictions.

    Attributes
    ----------
    link : {"softmax", "logistic"} or None
    classes : ndarray or None
    target : str
    """

    link: str | None
    classes: np.ndarray | None
    target: str | None

    @abstractmethod
    def outputs(self, X: Any) -> np.ndarray:
        """Return the outputs, shape (n, m)."""

    def predict(self, X: Any) -> np.ndarray:
        """Return labels or expected levels (n,), outputs (n, m) or (n,), or indicators (n, m), depending on ``target``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        outputs = self.outputs(X)
        if self.target == "labels":
            assert self.classes is not None
            codes = np.argmax(outputs, axis=1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).astype(np.intp)
            return self.classes[codes]
        if self.target == "ordinal":
            assert self.classes is not None
            return expected_level(self._probabilities(outputs), self.classes)
        if self.target == "indicator":
            return (outputs > 0).astype(np.int64)
        return outputs[:, 0] if self.target == "vector" else outputs

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes or levels (n, c), or that each output is positive (n, m).

        Probabilities of one-against-rest outputs are normalised to add up to 1.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Raises
        ------
        TypeError
            If the model has no link from outputs to probabilities.
        """
        outputs = self.outputs(X)
        if self.target == "ordinal":
            return level_probabilities(self._probabilities(outputs))
        if self.target != "labels" or self.link == "softmax":
            return self._probabilities(outputs)
        if outputs.shape[1] == 1:
            return self._probabilities(np.hstack([-outputs, outputs]))
        outputs += np.maximum(_DEEP - outputs.max(axis=1, keepdims=True), 0.0)
        P = self._probabilities(outputs)
        return P / P.sum(axis=1, keepdims=True)

    def _probabilities(self, outputs: np.ndarray) -> np.ndarray:
        if self.link is None:
            raise TypeError(
                "the model has no link from outputs to probabilities, as the loss that it was trained with is not a "
                "probability model; use loss='logistic' or 'binary-logistic', or a Loss that declares a link"
            )
        return LINKS[self.link](outputs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a plain ``.npz`` file, which :func:`mopn.load` reads without pickle.

        Parameters
        ----------
        path : str or path
            Name of the file, without any change; an existing file is overwritten.

        Raises
        ------
        TypeError
            If the classes are of mixed or of other types than strings and numbers.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        write(path, values)

    def _check_target(self, m: int) -> None:
        """Validate the link, and that classes and target fit the number of outputs."""
        check_link(self.link)
        if self.target is None:
            object.__setattr__(self, "target", "outputs" if self.classes is None else "labels")
        if self.target not in _TARGETS:
            raise ValueError(f"target must be one of {', '.join(map(repr, _TARGETS))}, got {self.target!r}")
        if self.target == "vector" and m != 1:
            raise ValueError(f"target='vector' is for a single output, got {m} outputs")
        if self.target == "ordinal" and (self.classes is None or self.classes.shape != (m + 1,)):
            got = None if self.classes is None else self.classes.shape
            raise ValueError(f"{m} outputs of ordered levels need classes of shape ({m + 1},), got {got}")
        count = 2 if m == 1 else m
        if self.target == "labels" and (self.classes is None or self.classes.shape != (count,)):
            got = None if self.classes is None else self.classes.shape
            raise ValueError(f"labels from {m} outputs need classes of shape ({count},), got {got}")


def common_offset(offset: np.ndarray | None) -> np.ndarray | None:
    """Return the offset (m,) that all samples of a problem have in common, or None if there is none.

    Raises
    ------
    ValueError
        If it differs between samples.
    """
    if offset is None:
        return None
    if not np.all(offset == offset[0]):
        raise ValueError("the problem's offset differs between samples, so it cannot be part of a model")
    return np.array(offset[0])

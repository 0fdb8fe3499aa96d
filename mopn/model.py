"""A fitted model on its own: outputs, predictions, probabilities, and a plain .npz file; needs NumPy and SciPy only."""

from __future__ import annotations

import os
import zipfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mopn.designs import make_design
from mopn.kernels import get_kernel
from mopn.losses import get_loss
from mopn.ordinal import expected_level, level_probabilities
from mopn.ridge import linear_design
from mopn.solvers.memory import keep_freed_memory

__all__ = ["Model", "Predictor", "load"]

_FORMAT = 1
_TARGETS = ("outputs", "vector", "labels", "indicator", "ordinal")
# Predictions work through the rows in blocks of so many entries of (rows, k + m), which stay in the cache: no (n, k)
# array is ever formed beyond a block.
_BLOCK_ENTRIES = 1 << 18
# Outputs below this have probabilities proportional to exp(output), and some digits to spare before underflow.
_DEEP = -500.0


class Predictor(ABC):
    """A dataclass that turns outputs into predictions.

    Attributes
    ----------
    loss : str
    classes : ndarray or None
    target : str
    """

    loss: str
    classes: np.ndarray | None
    target: str | None

    @abstractmethod
    def outputs(self, X: Any) -> np.ndarray:
        """Return the outputs, shape (n, m)."""

    def predict(self, X: Any) -> np.ndarray:
        """Return labels or expected levels (n,), outputs (n, m) or (n,), or indicators (n, m), as ``target`` says.

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
            return expected_level(get_loss(self.loss).probabilities(outputs), self.classes)
        if self.target == "indicator":
            return (outputs > 0).astype(np.int64)
        return outputs[:, 0] if self.target == "vector" else outputs

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities, of the classes or levels (n, c) or of each output being positive (n, m).

        Outputs that were trained each for one class against the rest are normalised to add up to 1.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Raises
        ------
        TypeError
            If the loss is not a probability model.
        """
        loss, outputs = get_loss(self.loss), self.outputs(X)
        if self.target == "ordinal":
            return level_probabilities(loss.probabilities(outputs))
        if self.target != "labels" or loss.multiclass:
            return loss.probabilities(outputs)
        if outputs.shape[1] == 1:
            return loss.probabilities(np.hstack([-outputs, outputs]))
        outputs += np.maximum(_DEEP - outputs.max(axis=1, keepdims=True), 0.0)
        P = loss.probabilities(outputs)
        return P / P.sum(axis=1, keepdims=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a plain ``.npz`` file, which :func:`mopn.load` reads without pickle.

        Parameters
        ----------
        path : str or path
            Name of the file; it is used as it is, and an existing file is overwritten.

        Raises
        ------
        TypeError
            If the classes are of mixed or of other types than strings and numbers.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        values["classes"] = _plain(self.classes)
        with open(path, "wb") as file:
            np.savez(file, format=_FORMAT, **{name: value for name, value in values.items() if value is not None})

    def _check_target(self, m: int) -> None:
        """Check classes and target against the number of outputs."""
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


@dataclass(frozen=True, eq=False)
class Model(Predictor):
    """A multi-output polynomial network or factorization machine.

    Attributes
    ----------
    basis : ndarray of shape (k, d) or (k, ones + d)
        Units H; the leading columns belong to the 1-features if ``augment``.
    weights : ndarray of shape (k, m)
        Output weights V.
    kernel : str
        ``"homogeneous"`` or ``"anova"``.
    loss : str
        The loss it was trained with; decides how outputs become probabilities.
    augment : bool
        Whether 1-features stand in front of X.
    offset : ndarray of shape (m,) or float
        Added to the outputs.
    classes : ndarray of shape (m,) or None
        Labels, if the model predicts labels: one for each output, or two for a single output, whose sign decides. For
        ordered levels (m + 1,), ascending.
    target : {"outputs", "vector", "labels", "indicator", "ordinal"}
        What ``predict`` returns: the outputs (n, m); a single output as (n,); labels (n,); whether each output is
        positive, as 0 and 1 (n, m); or the expected level (n,), if output c is for a level of at most classes[c]. By
        default ``"labels"`` if there are classes, else ``"outputs"``.
    linear : ndarray of shape (m, 1 + d), optional
        Coefficients W of a linear term, constants first.

    Raises
    ------
    ValueError
        If shapes do not fit together or a name is unknown.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.array([[1.0, 0.0]]), np.array([[2.0]]), target="vector")
    >>> model.predict([[3.0, 5.0]])
    array([18.])
    """

    basis: np.ndarray
    weights: np.ndarray
    kernel: str = "homogeneous"
    loss: str = "logistic"
    augment: bool = False
    offset: np.ndarray | float = 0.0
    classes: np.ndarray | None = None
    target: str | None = None
    linear: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.basis.ndim != 2 or self.weights.ndim != 2 or len(self.basis) != len(self.weights):
            raise ValueError(
                f"basis must be (k, d) and weights (k, m), got shapes {self.basis.shape} and {self.weights.shape}"
            )
        get_kernel(self.kernel)
        if self.n_features < 1:
            raise ValueError(f"basis of shape {self.basis.shape} has no column beside those of the 1-features")
        m = self.weights.shape[1]
        if np.shape(self.offset) not in ((), (m,)):
            raise ValueError(f"offset must be a number or of shape ({m},), got shape {np.shape(self.offset)}")
        if self.linear is not None and self.linear.shape != (m, 1 + self.n_features):
            raise ValueError(f"linear must have shape {(m, 1 + self.n_features)}, got {self.linear.shape}")
        self._check_target(m)

    @classmethod
    def from_result(cls, problem: Any, result: Any, *, classes: Any = None, target: str | None = None) -> Model:
        """Return the model of a solved ``NetworkProblem``; a constant offset of the problem is kept.

        Parameters
        ----------
        problem : NetworkProblem
            What was solved.
        result : Result, or anything with ``basis`` and ``weights``
            The network; ``linear`` too, if it has one.
        classes : array-like of shape (m,), optional
            Labels in place of the problem's; two of them for a single output.
        target : str, optional
            What ``predict`` returns; see :class:`Model`.

        Returns
        -------
        Model
            It shares no array with the result.

        Raises
        ------
        ValueError
            If the problem's offset differs between samples.
        """
        offset = problem.fit.offset
        if offset is not None and not np.all(offset == offset[0]):
            raise ValueError("the problem's offset differs between samples, so it cannot be part of a model")
        linear = getattr(result, "linear", None)
        return cls(
            basis=np.array(result.basis),
            weights=np.array(result.weights),
            linear=None if linear is None or not linear.size else np.array(linear),
            kernel=problem.kernel.name,
            loss=problem.fit.loss.name,
            augment=problem.augment,
            offset=0.0 if offset is None else np.array(offset[0]),
            classes=problem.classes if classes is None else np.asarray(classes),
            target=target,
        )

    @property
    def n_features(self) -> int:
        """Number of columns that X must have."""
        return self.basis.shape[1] - (get_kernel(self.kernel).ones if self.augment else 0)

    def outputs(self, X: Any) -> np.ndarray:
        """Return K(X, H) V + [1, X] W' + offset, shape (n, m).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Raises
        ------
        ValueError
            If X has another number of columns than in training, or NaN or infinity.
        """
        kernel = get_kernel(self.kernel)
        ones = kernel.ones if self.augment else 0
        design = make_design(X, ones)
        n, d = design.shape
        if d != self.basis.shape[1]:
            raise ValueError(f"X has {d - ones} features, but the model was trained with {self.n_features}")
        keep_freed_memory()
        out = np.empty((n, self.weights.shape[1]))
        for rows, block in design.blocks(max(1, _BLOCK_ENTRIES // sum(self.weights.shape))):
            np.matmul(kernel.features(block, self.basis), self.weights, out=out[rows])
            if self.linear is not None:
                out[rows] += linear_design(block).project(self.linear)
        out += self.offset
        return out


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``save`` wrote; neither pickle nor scikit-learn is needed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Model or FactorizationModel

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If the file is not such a model, or of a newer format.
    """
    name = os.fspath(path)
    with open(path, "rb") as stream:
        try:
            file = np.load(stream, allow_pickle=False)
        except (ValueError, EOFError, zipfile.BadZipFile):
            file = None
        if not isinstance(file, np.lib.npyio.NpzFile) or "format" not in file:
            raise ValueError(f"{name!r} is not a mopn model")
        if int(file["format"]) > _FORMAT:
            raise ValueError(f"{name!r} was written by a newer mopn (format {int(file['format'])}); update mopn")
        values = {key: _field(file[key]) for key in file if key != "format"}
    if "basis" in values:
        return Model(**values)
    if "factors" in values:
        from mopn.factorization_model import FactorizationModel

        return FactorizationModel(**values)
    raise ValueError(f"{name!r} is not a mopn model")


def _field(value: np.ndarray) -> Any:
    """Return a field as it was before it was saved."""
    return value.item() if value.ndim == 0 and value.dtype.kind in "Ubi" else value


def _plain(classes: np.ndarray | None) -> np.ndarray | None:
    """Return labels as an array that needs no pickle."""
    if classes is None:
        return None
    if classes.dtype == object and len({type(label) for label in classes}) == 1:
        classes = np.array(classes.tolist())
    if classes.dtype == object:
        raise TypeError("classes of mixed types cannot be saved without pickle; use strings or numbers as labels")
    return classes

"""The common base of fitted models: predictions and probabilities from outputs, and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from mopn.core.blocks import rows_at_once
from mopn.core.designs import Design, make_design
from mopn.core.links import LINKS, check_link
from mopn.models.fields import check_choice, check_labels
from mopn.models.files import write
from mopn.models.formula import Formula
from mopn.models.ordinal import expected_level, level_probabilities
from mopn.solvers.numerics.memory import keep_freed_memory

if TYPE_CHECKING:
    import onnx

__all__ = ["Predictor", "blocks", "common_offset"]

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

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns that X must have."""

    @abstractmethod
    def _outputs(self, design: Design) -> np.ndarray:
        """Return the outputs (n, m) for a design without dummies."""

    @abstractmethod
    def _formula(self) -> Formula:
        """Return what the outputs are, in terms that other languages have."""

    def outputs(self, X: Any) -> np.ndarray:
        """Return the outputs, the values of the polynomials, shape (n, m).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Raises
        ------
        TypeError
            If X is not numeric.
        ValueError
            If X has another number of columns than in training, or NaN or infinity, or numbers so large that outputs
            overflow.
        """
        design = make_design(X)
        if design.shape[1] != self.n_features:
            raise ValueError(f"X has {design.shape[1]} features, but the model was trained with {self.n_features}")
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = self._outputs(design)
        finite = np.isfinite(outputs)
        if not finite.all():
            row = int(np.argmin(finite.all(axis=1)))
            raise ValueError(
                f"the outputs of row {row} of X overflow, as its numbers are too large; scale X as in training"
            )
        return outputs

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
            Name of the file, without any change. A file that is there is replaced in a single step, when the new one
            is complete: if writing fails or is interrupted, it stays as it was.

        Raises
        ------
        OSError
            If no file can be written in this folder.
        TypeError
            If the classes are not strings, numbers or dates, all of one type, or would not come back equal.
        """
        write(path, self._fields())

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, which :func:`mopn.load` reads too, and programs in other languages.

        It holds what :meth:`save` writes, each number with as many digits as bring it back bit for bit. Arrays are
        objects with their ``dtype``, ``shape`` and ``data``, the entries by rows.

        Parameters
        ----------
        path : str or path
            Name of the file; see :meth:`save`.

        Raises
        ------
        OSError
            If no file can be written in this folder.
        TypeError
            If the classes cannot be saved; see :meth:`save`.
        """
        write(path, self._fields(), as_json=True)

    def to_onnx(self, *, dtype: str = "float32") -> onnx.ModelProto:
        """Return the model as an ONNX graph of plain operators, for onnxruntime and other engines.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default "float32"
            The type of the input ``X`` (n, d), of the arithmetic and of the outputs.

        Returns
        -------
        onnx.ModelProto
            Of operator set 18. Its outputs: ``prediction``, what :meth:`predict` returns; ``probabilities``, what
            :meth:`predict_proba` returns, if the model has a link; ``outputs``, what :meth:`outputs` returns, if that
            is not the prediction. Store it by ``onnx.save(graph, path)``.

        Raises
        ------
        ImportError
            If the package onnx is not installed.
        TypeError
            For labels that ONNX has no type for, such as dates.
        ValueError
            For another dtype, or numbers beyond it.

        Notes
        -----
        X is dense. A graph does not check its input: NaN, infinity and overflow give NaN, not an error. The ANOVA
        kernel of degree 3 and above and the all-subsets kernel form an array (n, d, k).
        """
        from mopn.models.onnx_graph import make_onnx

        return make_onnx(self, dtype)

    def to_c(self, path: str | os.PathLike[str], *, name: str = "model", dtype: str = "float32") -> None:
        """Write the model as a C99 header, which needs no memory but the stack and no library but ``math.h``.

        Parameters
        ----------
        path : str or path
            Name of the file; an existing file is replaced.
        name : str, default "model"
            The prefix of all names in the header.
        dtype : {"float32", "float64", "int16"}, default "float32"
            The type of the parameters. The features, the arithmetic and the outputs are ``double`` for "float64" and
            ``float`` for the others.

        Raises
        ------
        OSError
            If no file can be written in this folder.
        ValueError
            For a name that C does not take, another dtype, or numbers beyond it.

        Notes
        -----
        The functions: ``model_outputs(x, out)``, ``model_probabilities(x, p)`` if the model has a link,
        ``model_predict`` unless the outputs are the prediction, and ``model_self_test()``, which returns 0 if the
        outputs of a row in the header are what they were here. Labels are an index in ``model_classes``. Arrays are as
        long as the comments say, and x holds all features, zeros too. Nothing is checked: NaN gives NaN.
        """
        from mopn.models.c_header import write_c

        write_c(self, path, name, dtype)

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _set(self, **values: Any) -> None:
        """Set fields of the frozen dataclass, when it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_target(self, m: int) -> None:
        """Validate the link, and that classes and target fit the number of outputs."""
        check_link(self.link)
        classes = check_labels(self.classes)
        if self.target is None:
            self._set(target="outputs" if classes is None else "labels")
        check_choice(self.target, "target", _TARGETS)
        got = None if classes is None else classes.shape
        if self.target == "vector" and m != 1:
            raise ValueError(f"target='vector' is for a single output, got {m} outputs")
        if self.target == "ordinal":
            if classes is None or classes.shape != (m + 1,):
                raise ValueError(f"{m} outputs of ordered levels need classes of shape ({m + 1},), got {got}")
            if classes.dtype.kind not in "iuf" or not np.all(classes[:-1] < classes[1:]):
                raise ValueError(f"classes of ordered levels must be ascending numbers, got {classes!r}")
        count = 2 if m == 1 else m
        if self.target == "labels" and (classes is None or classes.shape != (count,)):
            raise ValueError(f"labels from {m} outputs need classes of shape ({count},), got {got}")


def blocks(design: Design, entries: int) -> Iterator[tuple[slice, Design]]:
    """Cut a design into blocks of rows that stay in the cache, for a number of entries per row."""
    size = rows_at_once(entries)
    if design.shape[0] > size:
        keep_freed_memory()
    return design.blocks(size)


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

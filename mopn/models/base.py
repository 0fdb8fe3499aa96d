"""The common base of fitted models: predictions and probabilities from outputs, and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mopn.core.blocks import rows_at_once
from mopn.core.designs import Design, make_design
from mopn.core.links import LINKS, check_link
from mopn.models.fields import check_choice, check_labels, check_numbers
from mopn.models.files import write
from mopn.models.formula import Formula
from mopn.models.games import Background, Game, dense_rows
from mopn.models.ordinal import expected_level, level_probabilities
from mopn.solvers.display import Displayed
from mopn.solvers.numerics.memory import keep_freed_memory

if TYPE_CHECKING:
    import onnx

__all__ = ["Predictor", "blocks", "common_offset"]

_TARGETS = ("outputs", "vector", "labels", "indicator", "ordinal")
# Logistic probabilities of outputs below this are proportional to exp(output), and far from underflow.
_DEEP = -500.0
# Arrays of up to so many entries are shown.
_FEW = 3


def _in_short(value: Any) -> str:
    """Return the shape of an array that is long, and the value of any other."""
    if isinstance(value, np.ndarray):
        return str(value.tolist()) if value.size <= _FEW else f"array{value.shape}"
    return repr(value)


class Predictor(Displayed, ABC):
    """A dataclass that turns outputs into predictions.

    Attributes
    ----------
    link : {"softmax", "logistic", "log"} or None
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

    @abstractmethod
    def _game(self, background: Background) -> Game:
        """Return the games of the outputs whose players are the features."""

    def _entries(self) -> dict[str, str]:
        """Return the shapes of arrays and the values of other fields, without those that are None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: _in_short(value) for name, value in values.items() if value is not None}

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
        design = self._design(X)
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = self._outputs(design)
        finite = np.isfinite(outputs)
        if not finite.all():
            row = int(np.argmin(finite.all(axis=1)))
            raise ValueError(
                f"the outputs of row {row} of X overflow, as its numbers are too large; scale X as in training"
            )
        return outputs

    @property
    def has_probabilities(self) -> bool:
        """Whether the model has a link from outputs to probabilities."""
        return self.link not in (None, "log")

    @property
    def predicts_means(self) -> bool:
        """Whether predictions are means, whose logarithms are the outputs."""
        return self.link == "log" and self.target in ("outputs", "vector")

    def predict(self, X: Any) -> np.ndarray:
        """Return labels or expected levels (n,), outputs (n, m) or (n,), or indicators (n, m), depending on ``target``.

        With the link ``"log"`` they are means, the exponentials of outputs.

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
        if self.predicts_means:
            outputs = LINKS["log"](outputs)
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

    def _design(self, X: Any, name: str = "X") -> Design:
        """Validate X and wrap it."""
        design = make_design(X)
        if design.shape[1] != self.n_features:
            raise ValueError(f"{name} has {design.shape[1]} features, but the model was trained with {self.n_features}")
        return design

    def _background(self, background: Any, design: Design) -> Background:
        """Return the rows that those of a design are compared with, by default themselves."""
        if background is not None:
            background = background if sparse.issparse(background) else check_numbers(background, "background")
            return Background(self._design(background, "background"))
        if design.shape[0] == 1:
            raise ValueError("X has a single row, which cannot be compared with itself: give a background")
        return Background(design)

    def _probabilities(self, outputs: np.ndarray) -> np.ndarray:
        if not self.has_probabilities:
            raise TypeError(
                "the model has no link from outputs to probabilities, as the loss that it was trained with is not a "
                "probability model; use loss='logistic' or 'binary-logistic', or a Loss that declares a link"
            )
        return LINKS[str(self.link)](outputs)

    def shap_values(self, X: Any, background: Any = None) -> np.ndarray:
        """Return the exact SHAP values of the outputs: what each feature of a row adds to the output.

        They are Shapley values of the game in which features that are out of the coalition take the values of a
        background row, averaged over the background ("interventional"); those of a row add up to its output minus
        :meth:`base_values`. Nothing is sampled. Degree 2 needs the mean and the covariance of the background alone, and
        the values of an output take about two products with the units. Degrees above 2 take a sum over the
        background's rows: give a few.

        The outputs are those of :meth:`outputs`, before any link: log-odds, not probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        background : array-like or sparse matrix of shape (N, d), optional
            What the rows are compared with, such as the training data; default X itself. A row of zeros explains
            one-hot data by the categories that are present.

        Returns
        -------
        ndarray of shape (n, d, m), or (n, d) of a single output

        Raises
        ------
        ValueError
            If the number of columns is not that of the training data, or a single row would be compared with itself.

        See Also
        --------
        mopn.contributions : One row by fields, such as user, item and user x item.

        Notes
        -----
        For f(x) = c + <w, x> + x'Ax and a background of mean mu and covariance S,
        phi = (x - mu) * (w + A (x + mu)) - diag(A S). The game: Lundberg and Lee (NIPS 2017). Higher degrees: Owen's
        diagonal formula (Management Science, 1972). docs/mathematics.md derives both.

        Examples
        --------
        >>> import numpy as np, mopn
        >>> model = mopn.Model(np.array([[1.0, 1.0]]), np.array([[0.5]]), kernel="homogeneous", target="vector")
        >>> model.shap_values([[1.0, 2.0]], background=[[0.0, 0.0]])  # (x_1 + x_2)^2 / 2
        array([[1.5, 3. ]])
        """
        design = self._design(X)
        return _outputs_last(self._game(self._background(background, design)).values(design))

    def shap_interaction_values(self, X: Any, background: Any = None) -> np.ndarray:
        """Return the exact SHAP interaction values of the outputs.

        Entry (i, j) is half of what the features i and j add together, beyond what each adds alone; (i, i) is what
        remains of feature i. Rows add up to the SHAP values. Degrees above 2 take 2 d times the work of those.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            A few rows: the result is large.
        background : array-like or sparse matrix of shape (N, d), optional
            As for :meth:`shap_values`.

        Returns
        -------
        ndarray of shape (n, d, d, m), or (n, d, d) of a single output

        Raises
        ------
        ValueError
            As :meth:`shap_values`.

        Notes
        -----
        Degree 2: Phi_ij = A_ij ((x_i - mu_i) (x_j - mu_j) + S_ij) for i != j, in the terms of :meth:`shap_values`. The
        definition: Lundberg et al. (Nature Machine Intelligence, 2020).

        Examples
        --------
        >>> import numpy as np, mopn
        >>> model = mopn.Model(np.array([[1.0, 1.0]]), np.array([[0.5]]), kernel="homogeneous", target="vector")
        >>> model.shap_interaction_values([[1.0, 2.0]], background=[[0.0, 0.0]])
        array([[[0.5, 1. ],
                [1. , 2. ]]])
        """
        design = self._design(X)
        return _outputs_last(self._game(self._background(background, design)).interactions(design))

    def base_values(self, background: Any) -> np.ndarray:
        """Return the mean outputs of a background, to which SHAP values are added: shape (m,), or () of one output.

        Parameters
        ----------
        background : array-like or sparse matrix of shape (N, d)
        """
        means = self.outputs(background).mean(axis=0)
        return means if len(means) > 1 else means[0]

    def feature_importances(self, X: Any, background: Any = None) -> np.ndarray:
        """Return the mean modulus of the SHAP values of every feature, over the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        background : array-like or sparse matrix of shape (N, d), optional
            As for :meth:`shap_values`.

        Returns
        -------
        ndarray of shape (d, m), or (d,) of a single output

        Raises
        ------
        ValueError
            As :meth:`shap_values`.
        """
        design = self._design(X)
        game = self._game(self._background(background, design))
        total = sum(np.abs(game.values(block)).sum(axis=1) for _, block in blocks(design, self.n_features))
        return _outputs_last(total / design.shape[0])

    def to_shap(self, X: Any, background: Any = None, *, names: Any = None) -> Any:
        """Return the SHAP values as a ``shap.Explanation``, for the plots of the package shap.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        background : array-like or sparse matrix of shape (N, d), optional
            As for :meth:`shap_values`.
        names : sequence of d strings, optional
            Names of the features.

        Returns
        -------
        shap.Explanation
            With values (n, d, m), or (n, d) of a single output, base values, data and names.

        Raises
        ------
        ImportError
            If shap is missing.
        ValueError
            As :meth:`shap_values`.
        """
        try:
            from shap import Explanation
        except ImportError:
            raise ImportError("explanations as objects of shap need it: pip install 'mopn[shap]'") from None
        values = self.shap_values(X, background)
        base = self.base_values(X if background is None else background)
        outputs = None if self.classes is None or len(self.classes) != np.size(base) else list(map(str, self.classes))
        return Explanation(
            values,
            base_values=np.broadcast_to(base, (len(values), *np.shape(base))),
            data=dense_rows(self._design(X)),
            feature_names=None if names is None else list(names),
            output_names=outputs,
        )

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
            :meth:`predict_proba` returns, if the model has probabilities; ``outputs``, what :meth:`outputs` returns, if
            that is not the prediction. Store it by ``onnx.save(graph, path)``.

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
        The functions: ``model_outputs(x, out)``, ``model_probabilities(x, p)`` if the model has them,
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


def _outputs_last(values: np.ndarray) -> np.ndarray:
    """Return values (m, ...) with the outputs as the last axis, or without it if there is one output."""
    return np.moveaxis(values, 0, -1) if len(values) > 1 else values[0]


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

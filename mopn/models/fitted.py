"""What fitted models and fitted estimators both answer: explanations, files, exports."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from mopn.data.designs import Design
from mopn.data.values import to_host
from mopn.models.explanations.flips import Flips, certified_flips
from mopn.models.explanations.games import Game
from mopn.models.explanations.robustness import certified_radius
from mopn.models.files import write
from mopn.models.formula import blocks
from mopn.solvers.tools.checks import choice
from mopn.solvers.tools.door import doors

if TYPE_CHECKING:
    import onnx

    from mopn.models.exports.integers import IntegerModel
    from mopn.models.exports.qubo import Qubo

__all__ = ["Fitted", "fitted_model"]


@doors
class Fitted(ABC):
    """A fitted model, or an estimator that has one: explanations, files, exports."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make doors of the public methods of models and estimators."""
        super().__init_subclass__(**options)
        doors(cls, special=())

    @abstractmethod
    def _fitted_model(self) -> Any:
        """Return the model."""

    def _explained(self, X: Any, background: Any) -> tuple[Design, Game]:
        """Return the rows and the games of the outputs, in which they are compared with a background."""
        model = self._fitted_model()
        design = model._design(to_host(X))
        return design, model._game(model._background(to_host(background), design))

    def shap_values(self, X: Any, background: Any = None) -> np.ndarray:
        """Return the exact SHAP values of the outputs: what each feature of a row adds to the output.

        They are Shapley values of the game in which features that are out of the coalition take the values of a
        background row, averaged over the background ("interventional"); those of a row add up to its output minus
        :meth:`base_values`. Nothing is sampled. Degree 2 needs the mean and the covariance of the background alone, and
        the values of an output take about two products with the units. Degrees above 2 take a sum over the
        background's rows: give a few.

        The outputs are those of :meth:`mopn.Model.outputs`, before any link: log-odds, not probabilities.

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
        design, game = self._explained(X, background)
        return _outputs_last(game.values(design))

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
        design, game = self._explained(X, background)
        return _outputs_last(game.interactions(design))

    def base_values(self, background: Any) -> np.ndarray:
        """Return the mean outputs of a background, to which SHAP values are added: shape (m,), or () of one output.

        Parameters
        ----------
        background : array-like or sparse matrix of shape (N, d)
        """
        means = self._fitted_model().outputs(to_host(background)).mean(axis=0)
        return means if len(means) > 1 else means[0]

    def feature_importances(self, X: Any, background: Any = None) -> np.ndarray:
        """Return the mean absolute SHAP value of every feature, over the rows of X.

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
        design, game = self._explained(X, background)
        total = sum(np.abs(game.values(block)).sum(axis=1) for _, block in blocks(design, design.shape[1]))
        return _outputs_last(total / design.shape[0])

    def to_shap(self, X: Any, background: Any = None, *, names: Any = None) -> Any:
        """Return the SHAP values as a ``shap.Explanation``, for the plots of the package shap.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        background : array-like or sparse matrix of shape (N, d), optional
            As for :meth:`shap_values`.
        names : sequence of d strings, optional
            Names of the features; default those of the training data, or the columns of X if it is a DataFrame.

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
            raise ImportError("explanations as objects of shap need it: pip install shap") from None
        model = self._fitted_model()
        values = self.shap_values(X, background)
        base = self.base_values(X if background is None else background)
        labelled = model.classes is not None and len(model.classes) == np.size(base)
        if names is None:
            names = getattr(X, "columns", None) if model.feature_names is None else model.feature_names
        return Explanation(
            values,
            base_values=np.broadcast_to(base, (len(values), *np.shape(base))),
            data=model._cells(to_host(X)),
            feature_names=None if names is None else list(map(str, names)),
            output_names=list(map(str, model.classes)) if labelled else None,
        )

    def certified_radius(
        self, X: Any, norm: str = "l2", *, scale: Any = None, return_attack: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return how far the features of a row may change, all at once, while the predicted class provably stays.

        Within this radius :meth:`predict` returns the same label at every point, rounding errors included. Nothing is
        assumed of the data, nor bounds of features: all points around the row count, whether they occur or not. One-hot
        columns are treated as numbers; :meth:`certified_flips` is for these.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        norm : {"l2", "linf"}, default "l2"
            Of changes: the root of the sum of their squares, or the largest. The radius in l2 is the distance to
            the nearest other class up to rounding; that in linf is a lower bound of it.
        scale : array-like of shape (d,), optional
            What a change by 1 is in each feature, such as standard deviations; 0 for features that do not change.
            Default: 1, so that radii are in the units of X.
        return_attack : bool, default False
            Whether to return points of other classes as well.

        Returns
        -------
        radii : ndarray of shape (n,), or (n, m) for m labels that are predicted separately
            0 where nothing is proven, as at a tie; inf if the prediction does not depend on the features.
        attack : ndarray of shape (n, d) or (n, m, d), if ``return_attack``
            Points with other predictions, NaN where none was found. The distance to the nearest other prediction is
            at least the radius, and at most that to this point: in l2 the two are nearly equal. There is no such
            point where two outputs become level without a change of the class; the l2 radius ends there.

        Raises
        ------
        TypeError
            If the model predicts no classes, reads a table, or has outputs of a degree above 2.
        ValueError
            As :meth:`mopn.Model.outputs`; for another norm; if ``scale`` does not hold d numbers of at least 0.

        Notes
        -----
        Two outputs are equal on a quadric. The distance to it has an exact dual with one multiplier, and each pair of
        classes takes one decomposition into eigenvectors, for any number of rows, in the span of the units. Boxes are
        bounded by a convex relaxation; they, and anova kernels, take a matrix (d, d) for each pair of classes.
        docs/mathematics.md, section 15. The question, for discrete features: Liu et al. (SIGIR 2020), *Certifiable
        Robustness to Discrete Adversarial Perturbations for Factorization Machines*.

        Examples
        --------
        >>> import numpy as np, mopn
        >>> model = mopn.Model(np.eye(2), np.ones((2, 1)), offset=-1.0, classes=np.array(["inside", "outside"]))
        >>> model.certified_radius([[3.0, 4.0], [0.0, 0.25]]).round(6)  # the circle of radius 1
        array([4.  , 0.75])
        """
        return certified_radius(self._fitted_model(), to_host(X), norm, scale, return_attack)

    def certified_flips(self, X: Any, *, one_hot: Any = (), fixed: Any = (), return_attack: bool = False) -> Flips:
        """Return how many categories, or features of 0 and 1, may change while the predicted class provably stays.

        Of a model of tables, columns of levels change, each to any level of the training data, or to missing if it had
        missing values; columns of numbers stay. Of a model of features, each is 0 or 1 and may flip, and of a group of
        one-hot features another one becomes the 1. A change of a column, or group, counts as one, whatever it becomes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or a table
        one_hot : sequence of tuples, optional
            Of a model of features, groups of these, by index or name, of which exactly one is 1.
        fixed : sequence of int or str, optional
            Features, or columns of a table, that do not change; such features may hold any numbers.
        return_attack : bool, default False
            Whether to return rows of other classes as well.

        Returns
        -------
        Flips
            A tuple of ``proven``, the number of columns that may change, whichever they are; ``found``, the number of
            columns of a change to another class; and ``attack``, rows after that change: an array of shape (n, d), or a
            dictionary of the columns of a table. For m labels that are predicted separately, all have another axis, of
            length m, after the rows.

        Raises
        ------
        TypeError
            If the model predicts no classes, or has outputs of a degree above 2.
        ValueError
            As :meth:`mopn.Model.outputs`; for invalid groups or names, features that are not 0 or 1, and if there
            is nothing that can change.

        Notes
        -----
        Flips gain a number each, and one for each pair. Half of what a pair gains is given to either, so that the best
        of these sums bound what r flips gain; branch and bound closes what that leaves open, for a few milliseconds a
        row and class. Rounding errors count against the flips. A row and a pair of classes take a matrix over all
        options that its columns have. docs/mathematics.md, section 15. The question, and relaxations of it: Liu et al.
        (SIGIR 2020), *Certifiable Robustness to Discrete Adversarial Perturbations for Factorization Machines*.

        Examples
        --------
        >>> import numpy as np, mopn
        >>> votes = mopn.Model(np.ones((1, 5)), np.ones((1, 1)), offset=-6.0, classes=np.array(["no", "yes"]))
        >>> votes.predict([[1, 1, 1, 1, 1]])  # 25 - 6 > 0; of two votes it is 4 - 6
        array(['yes'], dtype='<U3')
        >>> proven, found, attack = votes.certified_flips([[1, 1, 1, 1, 1]], return_attack=True)
        >>> proven, found, votes.predict(attack)
        (array([2]), array([3.]), array(['no'], dtype='<U3'))
        """
        return certified_flips(self._fitted_model(), to_host(X), one_hot, fixed, return_attack)

    def to_qubo(
        self, X: Any = None, *, output: int | None = None, one_hot: Any = (), penalty: float | None = None
    ) -> Qubo:
        """Return an output as a function of features that are 0 or 1, in dimod's convention, to be minimised.

        For the solvers of quadratic unconstrained binary optimisation (QUBO): simulated annealing, tabu search,
        quantum annealers. Of any model of degree 2: products of features, linear terms, and squares, as x^2 = x.

        The function is the output before any link, that of :meth:`mopn.Model.outputs`. A logistic link or a logarithm
        increases with it, so the minimum is that of the probability, of the second class if there are two, or of the
        mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), optional
            Rows, such as the training data, whose features are checked to be 0 or 1: models do not remember.
        output : int, optional
            The number of the output, of models of several.
        one_hot : sequence of tuples, optional
            Groups of features, by index or name, of which exactly one is to be 1: those of the levels of a category,
            say. Each adds penalty * (1 - sum of its features)^2.
        penalty : float, optional
            By default there is one for each group, with which all minimisers are proven to satisfy all constraints:
            a bound on what breaking one can gain, and a thousandth of it and of the largest weight. If groups share
            features, the bound is the range of the function, and some x must satisfy them all.

        Returns
        -------
        Qubo
            A tuple of ``weights``, a dictionary {(i, j): weight}, and ``offset``; ``matrix()`` is upper triangular.

        Raises
        ------
        TypeError
            For a model of a table, whose features are not 0 and 1.
        ValueError
            For degrees above 2, features of X that are not 0 or 1, invalid groups, several outputs without ``output``,
            or the outputs of a softmax, which have no meaning alone.

        Notes
        -----
        With all weights Q (symmetric off the diagonal), x_i = 1 changes the function by at most
        u_i = Q_ii + sum_j max(Q_ij, 0) and at least l_i = Q_ii + sum_j min(Q_ij, 0). The bound for groups that share no
        feature is the larger of min_i u_i and max_i -l_i over the group, or 0.

        To maximise, fit the model to -y; or take ``mopn.FactorizationModel.from_outputs(model, [-1.0])``.

        Examples
        --------
        >>> import mopn, numpy as np
        >>> model = mopn.Model(np.array([[1.0, -2.0, 1.0]]), np.array([[-1.0]]), target="vector")
        >>> weights, offset = model.to_qubo(one_hot=[(0, 1)])
        >>> round(weights[0, 1], 3), round(offset, 3)  # 4 of the model and two penalties; a penalty
        (12.016, 4.008)

        ``dimod.BinaryQuadraticModel.from_qubo(*model.to_qubo())`` is the same for dimod and its samplers.
        """
        from mopn.models.exports.qubo import make_qubo

        return make_qubo(self._fitted_model(), X, output, one_hot, penalty)

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
        write(path, self._fitted_model()._fields())

    def to_onnx(self, *, dtype: str = "float32") -> onnx.ModelProto:
        """Return the model as an ONNX graph of plain operators, for onnxruntime and other engines.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default "float32"
            The type of the input ``X`` (n, d), of the arithmetic and of the outputs. Numbers of a table are float64 in
            a graph of float32, too, where float32 would lose digits of a column, such as milliseconds since 1970.

        Returns
        -------
        onnx.ModelProto
            Of operator set 18. Its outputs: ``prediction``, what :meth:`predict` returns; ``probabilities``, what
            ``predict_proba`` returns, if the model has probabilities; ``outputs``, what :meth:`mopn.Model.outputs`
            returns, if that is not the prediction. If the features have names, the metadata hold them in the order of
            the columns of X, as ``feature_names``, a JSON list. Store the graph by ``onnx.save(graph, path)``.

            A model of a table takes its columns: one input ``X`` (n, c), NaN where a number is missing, if all are
            numbers; if not, an input (n, 1) for each column, of its name (with an underscore, if the graph has this
            name), in their order: of numbers or, for levels, of texts, empty where they are missing. Dates are days
            since 1970. An unknown text counts as the mean of the known ones.

        Raises
        ------
        ImportError
            If the package onnx is not installed.
        TypeError
            For labels that ONNX has no type for, such as dates.
        ValueError
            For another dtype, or numbers beyond it.

        Warns
        -----
        UserWarning
            If float32 changes outputs of rows like the training data by more than 0.1 % of their range: rows drawn
            from the encoding of a table, or about the center of the features that the fit scaled. And where a column
            has the empty text and missing values, which are one text in a graph.

        Notes
        -----
        X is dense. A graph does not check its input: NaN, infinity and overflow give NaN, not an error. Outputs agree
        with those of the model to about 1e-4 of the largest in float32, 1e-11 in float64. The ANOVA kernel of degree 3
        and above and the all-subsets kernel form an array (n, d, k).
        """
        from mopn.models.exports.onnx_graph import make_onnx

        return make_onnx(self._fitted_model(), dtype)

    def to_c(
        self,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        dtype: str | None = None,
        arithmetic: str = "float",
        X: Any = None,
    ) -> IntegerModel | None:
        """Write the model as a C99 header, which needs no memory but the stack and no library but ``math.h``.

        Parameters
        ----------
        path : str or path
            Name of the file; an existing file is replaced.
        name : str, optional
            The prefix of all names in the header, ``model`` below; by default from the name of the file: ``left_hand``
            for "left-hand.h". A compiler refuses two headers of one prefix in a program.
        dtype : {"float32", "float64", "int16", "int8"}, optional
            The type of the parameters. Of floats, with the features, the arithmetic and the outputs: "float32", the
            default, for ``float``, or "float64" for ``double``. Of integers: "int8", the default, or "int16".
        arithmetic : {"float", "integer"}, default "float"
            With "integer" the header has no float and no division, and includes only ``stdint.h``; for models of
            degree 1 and 2.
        X : array-like or sparse matrix of shape (n, d), optional
            For integers: rows from which ranges are taken, such as the training data.

        Returns
        -------
        IntegerModel or None
            For integers what the header computes, bit for bit, with its :class:`mopn.Agreement` with
            the model; print it.

        Raises
        ------
        OSError
            If no file can be written in this folder.
        TypeError
            If integers are asked for a model of a table or of a higher degree, or for predictions that need
            exponentials.
        ValueError
            For a name that C does not take, another dtype, or numbers whose digits it does not hold; for integers, if
            32 bits cannot hold the sums, or without X.

        Warns
        -----
        UserWarning
            If ``float`` changes outputs of rows like the training data by more than 0.1 % of their range; see
            :meth:`to_onnx`.

        Notes
        -----
        The functions: ``model_outputs(x, out)``, ``model_probabilities(x, p)`` if the model has them,
        ``model_predict`` unless the outputs are the prediction, and ``model_self_test()``, which returns 0 if the
        outputs of a row in the header are what they were here. Labels are an index in ``model_classes``. Arrays are as
        long as the comments say, and x holds all features, zeros too, in the order of their names in
        ``model_features``, if they have names. They are ``float`` or ``double`` as the
        dtype says. Nothing is checked: NaN gives NaN. A comment says how many bytes the constants take.

        For a model of a table x holds its columns, ``model_columns``: numbers, ``NAN`` where they are missing, dates as
        days since 1970, and for a level a constant such as ``MODEL_CITY_ROME``, the index of its text in
        ``model_levels_j`` for column j, or else ``MODEL_CITY_MISSING`` or ``MODEL_CITY_UNKNOWN``.
        ``model_encode(x, z)`` computes the features, and the other functions call it.

        In integers x is of the type ``model_input``. Features with integer values only are these numbers, and any other
        feature j is the nearest integer to ``x[j] * 2 ** model_bits[j]``, minus ``model_zero[j]``. Numbers out of the
        range of all of X are clamped to it, and ``model_check(x)`` returns 0 if there are none. Outputs are integers
        times a power of 2, which the header says, and there are no probabilities. On an AVR parameters stay in flash.
        docs/mathematics.md derives the bound.

        Examples
        --------
        >>> import numpy as np, mopn, tempfile
        >>> X = np.random.default_rng(0).integers(-128, 128, (100, 2))
        >>> H, V = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> model = mopn.Model(H, V, classes=np.array(["unlike", "alike"]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     integers = model.to_c(f"{folder}/model.h", arithmetic="integer", X=X)
        >>> integers.predict([[9, 7], [-100, -90], [100, -20]]).tolist()
        ['alike', 'alike', 'unlike']
        """
        choice(("float", "integer"))(arithmetic, "arithmetic")
        if arithmetic == "float":
            from mopn.models.exports.c_header import write_c

            if X is not None:
                raise ValueError("X is for arithmetic='integer', which takes ranges from it; leave it out for floats")
            write_c(self._fitted_model(), path, name, "float32" if dtype is None else dtype)
            return None
        from mopn.models.exports.c_integer import write_integer_c

        if X is None:
            raise ValueError(
                "arithmetic='integer' needs X, rows from which ranges are taken, such as the training data"
            )
        return write_integer_c(self._fitted_model(), path, name, "int8" if dtype is None else dtype, to_host(X))


def fitted_model(value: Any) -> Any:
    """Return the model that a function is given, or that of a fitted estimator.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if not isinstance(value, Fitted):
        raise TypeError(
            f"model must be a Model, a FactorizationModel or a fitted estimator, got {type(value).__name__}"
            + "; give its last step, pipeline[-1]" * hasattr(value, "steps")
        )
    return value._fitted_model()


def _outputs_last(values: np.ndarray) -> np.ndarray:
    """Return values (m, ...) with the outputs as the last axis, or without it if there is one output."""
    return np.moveaxis(values, 0, -1) if len(values) > 1 else values[0]

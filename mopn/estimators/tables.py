"""Estimators of tables: columns of numbers, categories and dates, with missing values, in frames or arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, get_args

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_X_y, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import Chunks
from mopn.data.row_blocks import RowBlocks
from mopn.data.validation import filled_targets
from mopn.data.values import to_host
from mopn.estimators.base import check_parameters, raise_interruption
from mopn.estimators.callbacks import begin_fit, print_progress, samples_of, with_callbacks
from mopn.estimators.classifiers import ClassifierMethods
from mopn.estimators.fit_policy import FitPolicy
from mopn.estimators.fit_warnings import warn_of_network
from mopn.estimators.network_estimator import NetworkAttributes
from mopn.estimators.network_fit import NetworkFit, NetworkOptions, Samples
from mopn.estimators.parameters import COMMON, MAX_UNITS, warn_of_small_weights
from mopn.estimators.regressors import RegressorMethods
from mopn.estimators.strength_choice import SHARE_OF_CHOICE, choose_strength
from mopn.estimators.table_encoder import TableReader, features_of, is_named
from mopn.estimators.targets import samples_of_chunks, targets_of_all_rows
from mopn.estimators.training_answers import training_answers
from mopn.losses.losses import Loss, LossName
from mopn.models.table import TableModel
from mopn.network.problem import NetworkProblem
from mopn.solvers import Status, minimize
from mopn.solvers.result import parts_in_words
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.checks import Rule, check_flag, check_positive, choice
from mopn.solvers.tools.decorators import quiet
from mopn.tables.effects import Response
from mopn.tables.reading import read_table

# Rows times features times outputs up to which gaps are proven to ``tol``: beyond, half of the time would be for the
# proof alone.
_MAX_PROVEN_SIZE = 500_000


def _strength(value: Any) -> Any:
    if isinstance(value, Ratio) or (isinstance(value, str) and value == "auto"):
        return value
    return check_positive.convert(value)


class TableEstimator(TableReader, NetworkAttributes):
    """Base of the estimators of tables: an encoding of the columns, and a network of their features."""

    model_: TableModel
    basis_: np.ndarray
    """Units H (k, 1 + d) of the d features of ``encoding_``; the first column belongs to the constant."""

    # At the default ``tol`` predictions in single precision are as good; to 1e-6 or less refits are in double.
    _policy = FitPolicy(single_precision=True, max_proven_size=_MAX_PROVEN_SIZE)
    _rules = COMMON | {
        "norm": choice(get_args(NormName)),
        "strength": Rule("'auto', a number > 0 or a mopn.Ratio", _strength),
        "max_units": MAX_UNITS.or_auto(),
        "prove": check_flag.or_auto(),
    }

    def __init__(
        self,
        *,
        loss: LossName | Loss = "squared",
        norm: NormName = "l1",
        strength: float | Ratio | Literal["auto"] = "auto",
        curves: int | None = None,
        smoothness: float = 1.0,
        categorical_features: Collection[str | int] = (),
        max_units: int | Literal["auto"] | None = "auto",
        tol: float = 1e-2,
        prove: bool | Literal["auto"] = "auto",
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.norm = norm
        self.strength = strength
        self.curves = curves
        self.smoothness = smoothness
        self.categorical_features = categorical_features
        self.max_units = max_units
        self.tol = tol
        self.prove = prove
        self.max_time = max_time
        self.verbose = verbose

    @quiet()
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Learn the encoding of the columns, choose the strength if it is "auto", and fit the network.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, c), dict, or RowBlocks of these
        y : array-like of shape (n,) or (n, m), optional
            None if the blocks bring it. Classifiers: labels, or an indicator matrix of 0 and 1. Regressors: numbers.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 equals a repeated row, and a weight of 0 a missing one. A common factor changes nothing, but
            where ``strength`` is a number: a warning says so of weights below 0.1. With ``strength="auto"`` rows that
            occur ten times or more on average, or are one for every class, are split individually; pass them
            repeated, not weighted. Which rows are held out depends on the order of the columns.
        X_val, y_val, sample_weight_val : array-like, optional
            Samples in memory whose ``score`` after every round chooses the network; the weights may be left out.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter are invalid, or if no sample can be held out to choose the strength.
        OSError
            If blocks cannot be read or have changed before there is a network; later the best one so far is kept.
        KeyboardInterrupt
            After Ctrl-C; the best network so far is kept, if there is one. Likewise if a callback raises.

        Warns
        -----
        ConvergenceWarning
            If a number overflowed, or the network was not found in a thousand rounds.
        UserWarning
            Of columns that are probably not meant as they came, as :meth:`TableEncoder.fit`.
        """
        check_parameters(self)
        deadline = Deadline(self.max_time)
        print_progress(self.verbose, "reading the samples")
        given = to_host(X)
        X, y, sample_weight, present = self._samples(given, y, sample_weight)
        task = begin_fit(self, samples_of(_rows(given, present), y, sample_weight), None)
        fit = self._network_fit()
        targets, held_out = self._encoded(fit, Samples(X, y, sample_weight), (X_val, y_val, sample_weight_val))
        choice = choose_strength(self.strength, fit, X, targets, deadline.share(SHARE_OF_CHOICE))
        fit = fit.with_options(strength=choice.strength)
        problem, targets = fit.problem_of_distinct_samples(X, targets)
        del X  # the problem has its own arrays
        warn_of_small_weights(problem.rows, strength=self.strength)
        run = fit.run(problem, targets, held_out)
        model = choice.model
        start = None
        if model is not None:
            start = fit.start_from(problem, model.basis, model.weights, model.linear, model.offset)
        limit = 0.0 if choice.ended == Status.INTERRUPTED else deadline.left  # after Ctrl-C the choice's model is kept
        with self._watched(task, run) as callback:
            result = minimize(run.problem, run.solver, start=start, max_time=limit, callback=callback, **run.limits)
        fitted = self._keep(run, result)
        self.model_ = replace(self.model_, answers=training_answers(problem, self.model_.model))
        choice.overrule(fitted.result)
        choice.warn()
        self.status_ = fitted.result.status
        print_progress(self.verbose, f"gap {parts_in_words(self.gap_, self.restricted_gap_, self.estimated_gap_)}")
        raise_interruption(fitted.result)
        task.end({})
        warn_of_network(fitted)
        return self

    def problem(self, X: Any, y: Any = None, sample_weight: Any = None) -> NetworkProblem:
        """Return the problem whose objective ``fit`` minimises, for :func:`mopn.minimize` and :func:`mopn.certify`.

        A fitted estimator encodes X by its ``encoding_`` and takes its ``strength_`` for "auto"; else the encoding is
        learned from X and a strength "auto" is chosen, as in ``fit``, and neither is kept. The problem has the rows of
        X, in the same order, so that ``dual_.point(problem)`` has a row for each: equal samples share their slope in
        proportion to their weights, and rows of weight 0 have 0.

        Parameters
        ----------
        X, y, sample_weight : as for ``fit``

        Returns
        -------
        NetworkProblem
            Of the features; in memory ``problem.design`` has them, centered and scaled, after the constant.
        """
        fitted = hasattr(self, "model_")
        reader = copy(self) if fitted else clone(self)
        check_parameters(reader)
        X, y, weights, present = reader._samples(to_host(X), y, sample_weight, reset=not fitted, every_row=True)
        fit = reader._network_fit()
        targets = fit.encode(y, weights)
        if fitted and self.strength == "auto":
            strength: float | Ratio = self.strength_
        else:
            samples = X if isinstance(X, RowBlocks | Chunks) else X[present]
            deadline = Deadline(self.max_time).share(SHARE_OF_CHOICE)
            choice = choose_strength(self.strength, fit, samples, targets, deadline)
            if choice.ended == Status.INTERRUPTED:
                raise KeyboardInterrupt
            strength = choice.strength
        return fit.with_options(strength=strength).problem(X, targets_of_all_rows(targets, present, sample_weight))

    def _network_fit(self) -> NetworkFit:
        options = NetworkOptions(
            norm=self.norm,
            max_units=self.max_units,
            scale="data",
            tol=self.tol,
            verbose=self.verbose,
        )
        policy = replace(self._policy, prove=None if self.prove == "auto" else bool(self.prove))
        return NetworkFit("homogeneous", self._encoding(), options, policy)

    def _presented(self, problem: NetworkProblem, fitted: dict[str, Any]) -> dict[str, Any]:
        model = replace(fitted["model_"], feature_names=self.encoding_.feature_names)
        model = replace(model, output_names=self._names_of_outputs(model))
        return fitted | {"model_": TableModel(model, self.encoding_)}

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, least: int = 2, every_row: bool = False
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Validate the samples, learn the encoding if it is to be ``reset``, and return features in place of X.

        With ``every_row``, and for blocks, they have all rows; else the rows of positive weight alone.
        """
        if isinstance(X, Chunks):
            X, y, sample_weight, present = samples_of_chunks(self._encoding(), X)
            if reset:
                self._learn_in_blocks(X, self._response(y, sample_weight))
            features = X.replaced(partial(features_of, encoding=self.encoding_), X.classes)
            return features, y, sample_weight, present
        if isinstance(X, RowBlocks):
            return self._samples_of_blocks(X.with_targets(y, sample_weight, self._plain_targets), reset)
        y = self._plain_targets(y, reset=reset)  # before X: an error leaves the names of the fit before
        table = self._read(X, reset=reset)
        checks: dict[str, Any] = {"multi_output": True, "y_numeric": self._numeric_y, "ensure_min_samples": least}
        y, sample_weight, present = self._weighted(
            check_X_y(np.zeros((table.n, 1)), y, estimator=self, **checks)[1], sample_weight, least, reset
        )
        whole = table
        if len(present) < table.n:
            table = table.rows(present)
        if reset:
            self._learn(table, sample_weight, y, is_labels=self._encoding().kind == "labels")
        features = self.encoding_.encode(whole, training=True) if every_row else self.encoding_.encode(table)
        return features, y, sample_weight, present

    def _samples_of_blocks(
        self, X: RowBlocks, reset: bool
    ) -> tuple[RowBlocks, np.ndarray, np.ndarray | None, np.ndarray]:
        """Learn the encoding if it is to be ``reset``; return blocks of features, and all targets and weights."""
        tables, y, sample_weight = X.read_by(read_table).with_targets_in_memory()
        y = filled_targets(self._plain_targets(y, reset=reset), sample_weight)
        if reset:
            self._learn_of_row_blocks(tables.with_targets(y, sample_weight), self._response(y, sample_weight))
        features = tables.read_by(partial(self.encoding_.encode, training=True))
        return features, y, sample_weight, np.arange(len(y))

    def _response(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Response:
        """Return the rule for the targets of blocks, given the targets of all rows, or all labels."""
        return Response.of(y, sample_weight, is_labels=self._encoding().kind == "labels")

    def _checked(self, X: Any) -> Any:
        """Return a table for a prediction; the model checks dictionaries, rows, and arrays like the fit's."""
        if not hasattr(self, "model_"):
            check_is_fitted(self)
        if self._is_plain(X):
            return X
        X = self._row(X, self.model_.encoding)
        return X if is_named(X) else self._read(X, reset=False)


def _rows(table: Any, present: Any) -> Any:
    """Return some rows of a table as it was given, for callbacks; blocks as they are."""
    if isinstance(table, RowBlocks | Chunks):
        return table
    if isinstance(table, Mapping) and not sparse.issparse(table):  # as a matrix of the format DOK is
        return {name: _safe_indexing(column, present) for name, column in table.items()}
    (table,) = indexable(table)
    return table if len(present) == _num_samples(table) else _safe_indexing(table, present)


class TableClassifier(ClassifierMethods, TableEstimator):
    r"""Classifier of tables: numbers, categories, dates and missing values, as they are.

    The outputs are sums of squares of additive models: a weight of each class times :math:`(g_1(x_1) + \dots +
    g_c(x_c))^2`, where :math:`g_j` is a smooth function of the column j, or a number for each of its categories. So a
    model has a smooth effect of every column and of every pair of columns, of low rank. They minimise a convex problem,
    and the distance to its minimum is bounded (``gap_``).

    Parameters
    ----------
    loss : str or Loss, default "logistic"
        Multi-class: "logistic", "smoothed-hinge", "squared-hinge". One against the rest: "binary-logistic",
        "binary-squared-hinge", "squared". For an indicator matrix y, "logistic" and "squared-hinge" mean their
        binary forms.
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1"
        Norm of the output weights, which makes most units zero. With "l1" every class has its own units, which are
        few, and the gap is proven quickly; "nonnegative-l1" is the same with weights >= 0, so that units only add.
        With the others classes share units, and hardly any gap is proven.
    strength : "auto", float or Ratio, default "auto"
        Strength of the penalty; larger means fewer units. "auto" chooses it by the loss on held-out samples. It tries
        six values of :class:`mopn.Ratio` from 0.1 down to 0.0003, until the loss rises twice or by 2 %, and keeps the
        best. If that is 0.1, it also tries 0.3, 0.6 and no units, and takes one whose loss is smaller by two standard
        errors. Last, it moves to the lowest point of a parabola through the losses of the best value and its
        neighbours.
    curves : int or None, default None
        Largest number of curves of a column of numbers. None means 8, and finer functions where y depends on them:
        up to 32 curves, or hats, one for each whole number that at least 48 rows share. Finer functions fade in where
        each explains 0.2 % of the variance of y, beyond the 8 and beyond chance; hats fade in from 24 rows on.
    smoothness : float, default 1.0
        Larger values give smoother effects: the k-th curve is scaled by 1 / k^smoothness.
    categorical_features : collection of str or int, default ()
        Names or indices of columns whose numbers, or texts of numbers, are codes of categories. Other texts,
        booleans and categories always are.
    max_units : int, None or "auto", default "auto"
        Limit on the units. With None, units are added until the gap is at most ``tol``. "auto" is 200 or, under "l1"
        and "nonnegative-l1", 10 for each output if that is more.
    class_weight : dict, "balanced" or None, default None
        Factors of the sample weights, by label.
    tol : float, default 0.01
        Relative tolerance of the objective.
    prove : "auto" or bool, default "auto"
        Whether a fit goes on until its relative gap is proven to be at most ``tol``. With False the gap is only
        estimated: the fit ends when the estimate is at most twenty times ``tol``, or when a round lowers the objective
        by at most half of ``tol``. The objective is then usually within ``tol`` of its minimum. With "auto", norm "l1"
        and up to 3,000 features in memory, the fit goes on to the proof, but ends unproven, with the status
        ``LEVELLED_OFF``, after at most three rounds that each lower the objective by at most half of ``tol``. In other
        cases "auto" means True for at most 500,000 rows times features times outputs, and False beyond. With
        ``max_units=None`` it always means True.
    max_time : float or None, default None
        Largest number of seconds for the whole call of ``fit``. The choice of the strength takes at most a third of
        them. If time ends it before the loss rises, the fit has the best strength so far, but at most the ratio
        0.01, and a warning says so if fewer than half of the strengths were tried.
    verbose : int, default 0
        Print a line for every strength, and every ``verbose``-th round of the last fit.

    See Also
    --------
    TableRegressor : The same for numbers.
    TableEncoder : The features alone, for pipelines.
    MultiOutputPNClassifier : Features as they are, and sparse matrices.

    Examples
    --------
    >>> from mopn.estimators import TableClassifier
    >>> table = {"size": [1.0, 2.0, None, 4.0] * 10, "color": ["red", "red", "blue", "blue"] * 10}
    >>> classifier = TableClassifier().fit(table, ["small", "large", "large", "large"] * 10)
    >>> classifier.predict({"size": [1.0, 3.9], "color": ["red", "blue"]})
    array(['small', 'large'], dtype='<U5')
    """

    def __init__(
        self,
        *,
        loss: LossName | Loss = "logistic",
        norm: NormName = "l1",
        strength: float | Ratio | Literal["auto"] = "auto",
        curves: int | None = None,
        smoothness: float = 1.0,
        categorical_features: Collection[str | int] = (),
        max_units: int | Literal["auto"] | None = "auto",
        class_weight: Any = None,
        tol: float = 1e-2,
        prove: bool | Literal["auto"] = "auto",
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            loss=loss,
            norm=norm,
            strength=strength,
            curves=curves,
            smoothness=smoothness,
            categorical_features=categorical_features,
            max_units=max_units,
            tol=tol,
            prove=prove,
            max_time=max_time,
            verbose=verbose,
        )
        self.class_weight = class_weight


class TableRegressor(RegressorMethods, TableEstimator):
    r"""Regressor of tables: numbers, categories, dates and missing values, as they are; one or several targets.

    Predictions are ``mean(y)`` plus sums of squares of additive models :math:`(g_1(x_1) + \dots + g_c(x_c))^2`,
    times a weight of each target; see :class:`TableClassifier`.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        "squared"; "huber" (:class:`mopn.Huber`), for outliers; "quantile" (:class:`mopn.Quantile`), by default the
        median; "poisson" (:class:`mopn.Poisson`), for counts; or a :class:`mopn.Loss`. Names take their parameters
        in the unit of y.
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1"
        Norm of the output weights, which makes most units zero. With "l1" every target has its own
        units, and the gap is proven quickly; "nonnegative-l1" is the same with weights >= 0, so that units only add.
        With the others targets share units.
    strength : "auto", float or Ratio, default "auto"
        Strength of the penalty; larger means fewer units. "auto" chooses it by the loss on held-out samples. It tries
        six values of :class:`mopn.Ratio` from 0.1 down to 0.0003, until the loss rises twice or by 2 %, and keeps the
        best. If that is 0.1, it also tries 0.3, 0.6 and no units, and takes one whose loss is smaller by two standard
        errors. Last, it moves to the lowest point of a parabola through the losses of the best value and its
        neighbours.
    curves : int or None, default None
        Largest number of curves of a column of numbers. None means 8, and finer functions where y depends on them:
        up to 32 curves, or hats, one for each whole number that at least 48 rows share. Finer functions fade in where
        each explains 0.2 % of the variance of y, beyond the 8 and beyond chance; hats fade in from 24 rows on.
    smoothness : float, default 1.0
        Larger values give smoother effects: the k-th curve is scaled by 1 / k^smoothness.
    categorical_features : collection of str or int, default ()
        Names or indices of columns whose numbers, or texts of numbers, are codes of categories. Other texts,
        booleans and categories always are.
    max_units : int, None or "auto", default "auto"
        Limit on the units. With None, units are added until the gap is at most ``tol``. "auto" is 200 or, under "l1"
        and "nonnegative-l1", 10 for each output if that is more.
    tol : float, default 0.01
        Relative tolerance of the objective.
    prove : "auto" or bool, default "auto"
        Whether a fit goes on until its relative gap is proven to be at most ``tol``. With False the gap is only
        estimated: the fit ends when the estimate is at most twenty times ``tol``, or when a round lowers the objective
        by at most half of ``tol``. The objective is then usually within ``tol`` of its minimum. With "auto", norm "l1"
        and up to 3,000 features in memory, the fit goes on to the proof, but ends unproven, with the status
        ``LEVELLED_OFF``, after at most three rounds that each lower the objective by at most half of ``tol``. In other
        cases "auto" means True for at most 500,000 rows times features times outputs, and False beyond. With
        ``max_units=None`` it always means True.
    max_time : float or None, default None
        Largest number of seconds for the whole call of ``fit``. The choice of the strength takes at most a third of
        them. If time ends it before the loss rises, the fit has the best strength so far, but at most the ratio
        0.01, and a warning says so if fewer than half of the strengths were tried.
    verbose : int, default 0
        Print a line for every strength, and every ``verbose``-th round of the last fit.

    See Also
    --------
    TableClassifier : The same for labels.
    TableEncoder : The features alone, for pipelines.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> x = np.linspace(0, 3, 100)
    >>> table = {"x": x, "kind": np.where(np.arange(100) % 2, "odd", "even")}
    >>> y = np.where(np.arange(100) % 2, np.sin(x), np.cos(x))
    >>> TableRegressor().fit(table, y).score(table, y) > 0.99
    True
    """

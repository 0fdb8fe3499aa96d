"""Factorization machines of one output and any degree, with polylearn's names: a regressor and a classifier.

Blondel, Fujino, Ueda and Ishihata: Higher-Order Factorization Machines. NIPS 2016.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from mopn.data.row_blocks import RowBlocks
from mopn.data.validation import distinct_labels, is_start_size
from mopn.estimators.base import check_parameters
from mopn.estimators.fold_in import FoldIn, NewFeature
from mopn.estimators.parameters import warn_of_small_weights
from mopn.estimators.single_output import (
    STRENGTH,
    BinaryClassifier,
    SingleLossName,
    SingleOutputEstimator,
    SingleOutputRegressor,
    SolverName,
)
from mopn.losses.losses import Loss
from mopn.solvers import SGD, Result, Solver
from mopn.solvers.driver import check_oracles
from mopn.solvers.tools.checks import check_flag, choice, count, shown
from mopn.solvers.tools.decorators import quiet, warn_caller

if TYPE_CHECKING:
    from mopn.factorization.direct import PenaltyName

_LAMBDAS = {"ones": "ones", "random_signs": "signs", "fit": "fit"}


def _is_stochastic(estimator: Any) -> bool:
    solver = estimator.solver
    if not (isinstance(solver, SGD) or (isinstance(solver, str) and solver in ("adagrad", "sgd"))):
        raise AttributeError(f"partial_fit needs solver='adagrad' or 'sgd', got {shown(solver)}")
    return True


class FactorizationMachine(FoldIn, SingleOutputEstimator):
    """Base of the factorization machines."""

    P_: np.ndarray
    """Units (n_orders, k, dummies + d); ``P_[0]`` has degree m, then m - 1, ... if "explicit"."""
    lams_: np.ndarray
    """The weights lambda (k,) of the units."""
    w_: np.ndarray
    """The linear term (d,), if it is fitted."""
    alpha_: float
    """The strength of the linear term."""
    theta_: np.ndarray
    """Weights (m,) of the degrees, if "shared"."""

    _rules = SingleOutputEstimator._rules | {
        "degree": count().or_none(),
        "fit_lower": choice(["explicit", "augment", "shared"]).or_none(),
        "alpha": STRENGTH,
        "fit_linear": check_flag,
        "init_lambdas": choice(_LAMBDAS),
    }

    def __init__(
        self,
        *,
        degree: int | None = 2,
        loss: SingleLossName | Loss | None = None,
        n_components: int = 10,
        alpha: float | Literal["auto"] = "auto",
        beta: float | Literal["auto"] = "auto",
        penalty: PenaltyName = "weighted",
        tol: float = 1e-3,
        fit_lower: Literal["explicit", "augment", "shared"] | None = "explicit",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        solver: SolverName | Solver = "cd",
        init_lambdas: Literal["ones", "random_signs", "fit"] = "ones",
        warm_start: bool = False,
        max_iter: int | None = 1000,
        max_time: float | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.degree = degree
        self.loss = loss
        self.n_components = n_components
        self.alpha = alpha
        self.beta = beta
        self.penalty = penalty
        self.tol = tol
        self.fit_lower = fit_lower
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.init_lambdas = init_lambdas
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    def _problem(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, seed: int) -> Any:
        from mopn.factorization.direct import FactorizationProblem  # it imports numba

        lams: Any = _LAMBDAS[self.init_lambdas]
        # Another number of units is refused by ``_start``, which checks P_.
        if self.warm_start and lams != "fit" and np.shape(getattr(self, "lams_", ())) == (self.n_components,):
            lams = self.lams_
        # For degree 2 the only lower degree is the linear term.
        lower = self.fit_lower
        if self.degree is None or (self.degree == 2 and (lower == "explicit" or self.fit_linear)):
            lower = None
        if self.init_lambdas == "fit" and lower in ("explicit", "shared"):
            raise ValueError(
                f"init_lambdas='fit' needs a single degree: set fit_lower to None or 'augment', not {lower!r}"
            )
        if self.init_lambdas == "fit" and self.penalty != "weighted":
            raise ValueError(f"init_lambdas='fit' needs penalty='weighted', got {shown(self.penalty)}")
        return FactorizationProblem(
            X,
            y,
            degree=self.degree or 2,
            n_components=self.n_components,
            kernel="all-subsets" if self.degree is None else "anova",
            loss=self.loss_,
            alpha=self.alpha_,
            beta=self.beta_,
            penalty=self.penalty,
            fit_lower=lower,
            fit_linear=self.fit_linear,
            fit_intercept=self.fit_intercept,
            lams=lams,
            sample_weight=sample_weight,
            init_scale=self._start_size(y, sample_weight),
            rng=seed,
        )

    def _new_feature(self, n: int) -> NewFeature:
        of_unit = np.full(len(self.lams_), 0.5) if self.penalty == "frobenius" else np.abs(self.lams_)
        units = self.beta_ * np.tile(of_unit, len(self.P_))
        return NewFeature(units, self.alpha_ if self.fit_linear else None)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Any:
        if isinstance(X, RowBlocks):
            X = self._in_known_order(X.with_targets(y, sample_weight), first)
            # Blocks are arrays in the order of the names, and scikit-learn would miss the names.
            self.__dict__.pop("feature_names_in_", None)
            try:
                for block in X:
                    self._partial_fit(block.X, block.y, block.sample_weight, first=first and block.number == 0)
            finally:
                self._set_names(X)
            self.model_ = self._named(self.model_)
            return self
        check_parameters(self)
        solver: Any = self._solver()
        X, y, sample_weight, _ = self._samples(X, y, sample_weight, reset=first, least=1)
        y = self._encode(column_or_1d(y, warn=True))
        if first:
            self.loss_ = self._loss(y, sample_weight)
            self.alpha_, self.beta_ = self._given_strengths()
        problem = self._problem(X, y, sample_weight, self._seed())
        check_oracles(problem, solver)
        if first:
            warn_of_small_weights(problem.rows, alpha=self.alpha_, beta=self.beta_)
        start = problem.start(self._constant(y, sample_weight) if first else self._start(problem))
        passes = problem.passes_over_part(start, None if first else self._sums)
        solver.do_pass(passes, np.random.default_rng(self._seed()))
        x = passes.point()
        if is_start_size(x):
            self._sums = passes.sums()
        else:
            x = start
            text = "A step led to NaN or huge parameters and was rejected; give a smaller step, or scale the features."
            warn_caller(text, ConvergenceWarning)
        self.__dict__.update(self._attributes(problem, Result(problem.unpack(x))))
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        return self


class FactorizationMachineRegressor(SingleOutputRegressor, FactorizationMachine):
    r"""Regressor: a factorization machine of any degree.

    Predictions are ``b + <w, x> + sum_s lambda_s A^m(p_s, x)``, and the same of lower degrees: sums over products of
    distinct features.

    Parameters
    ----------
    degree : int or None, default 2
        The largest number m of features in a product; None for any number (the all-subsets kernel).
    loss : str, Loss or None, default None
        "squared", half the squared error, by default; "huber" (:class:`mopn.Huber`), for outliers; "quantile"
        (:class:`mopn.Quantile`), by default the median; "poisson" (:class:`mopn.Poisson`), for counts, with another
        solver than "cd"; their parameters are in the unit of y. Or a :class:`mopn.Loss` per output.
    n_components : int, default 10
        Number k of units, for each degree if there are several.
    alpha : float or "auto", default "auto"
        Strength of :math:`\frac{\alpha}{2} \|w\|^2`. Losses are added up over the samples, not averaged: a number has
        the same effect only for weights of the same size. "auto": chosen together with ``beta``, as ``alpha_``; the
        mean squared length of the rows where ``beta`` is a number, and 1 where "auto" means 1 for ``beta``.
    beta : float or "auto", default "auto"
        Strength of :math:`\beta \sum_s |\lambda_s| \|p_s\|^2`, or of another penalty. "auto": the strength of least
        loss on held-out samples, ``beta_``, which costs some short fits; 1 for ``partial_fit`` and with
        :class:`mopn.RowBlocks`.
    penalty : {"weighted", "frobenius"}, default "weighted"
        This one; :math:`\frac{\beta}{2} \|P\|^2`.
    tol : float, default 0.001
        A fit stops when ten iterations together decrease the objective by less, relative. With 0 only the limits
        stop a fit.
    fit_lower : {"explicit", "augment", "shared", None}, default "explicit"
        Degrees 2 to m - 1: with their own units; by dummies, columns of ones in front of X; by the same units with
        weights theta on the simplex; or not in the model.
    fit_linear : bool, default True
        Fit a linear term ``<w, x>``.
    fit_intercept : bool, default True
        Fit a constant, without a penalty.
    solver : {"cd", "lbfgs", "adagrad", "sgd"} or Solver, default "cd"
        Coordinate descent, the only one whose steps are the same in any unit of y (with "auto" strengths and
        ``degree`` 2); L-BFGS; AdaGrad; stochastic gradient descent; or one with other options, such as
        ``mopn.solvers.CoordinateDescent(n_threads=2)``.
    init_lambdas : {"ones", "random_signs", "fit"}, default "ones"
        lambda: fixed to 1, to random signs, or fitted.
    warm_start : bool, default False
        Start from the fitted attributes, of an earlier fit or set by the user; missing ones have the default start.
    max_iter : int, default 1000
        Largest number of iterations: epochs of "cd", "adagrad" and "sgd", steps of "lbfgs".
    max_time : float or None, default None
        Largest number of seconds for ``fit``; default no limit.
    verbose : int, default 0
        Print every ``verbose``-th iteration as a row of a table; 0 prints nothing.
    random_state : int, RandomState or None, default None
        Seed of the random start (normal entries), of random signs and of the order of samples.

    See Also
    --------
    MultiOutputFMRegressor : Degree 2, several targets, with a bound on the distance to the global optimum.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import FactorizationMachineRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 4))
    >>> y = X[:, 0] * X[:, 1] * X[:, 2] - X[:, 3]
    >>> regressor = FactorizationMachineRegressor(degree=3, alpha=0.01, beta=0.01, random_state=0).fit(X, y)
    >>> regressor.P_.shape, regressor.score(X, y) > 0.95
    ((2, 10, 4), True)
    """

    @available_if(_is_stochastic)
    @quiet()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take one pass of AdaGrad or stochastic gradient descent over some samples, or one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or RowBlocks
            With :class:`mopn.RowBlocks`, a call is an epoch: a pass over each block, read one after the other.
        y : array-like of shape (n,), optional
            None if the blocks bring it.
        sample_weight : array-like of shape (n,), optional
            Factors of the gradients of the samples; a sample takes one step, whatever its weight.

        Returns
        -------
        self
            The estimator. The objective of a call has its samples and the penalty of their features.

        Raises
        ------
        ValueError, TypeError
            As ``fit``.
        AttributeError
            If ``solver`` is not "adagrad" or "sgd".
        """
        return self._partial_fit(X, y, sample_weight, first=not hasattr(self, "model_"))


class FactorizationMachineClassifier(BinaryClassifier, FactorizationMachine):
    r"""Classifier of two classes: a factorization machine of any degree.

    The outputs are ``b + <w, x> + sum_s lambda_s A^m(p_s, x)``, and the same of lower degrees: sums over products of
    distinct features.

    Parameters
    ----------
    degree : int or None, default 2
        The largest number m of features in a product; None for any number (the all-subsets kernel).
    loss : str, Loss or None, default None
        "squared-hinge", by default, "logistic" or "squared", of labels -1 and 1; or a :class:`mopn.Loss` per output.
    n_components : int, default 10
        Number k of units, for each degree if there are several.
    alpha : float or "auto", default "auto"
        Strength of :math:`\frac{\alpha}{2} \|w\|^2`. Losses are added up over the samples, not averaged: a number has
        the same effect only for weights of the same size. "auto": chosen together with ``beta``, as ``alpha_``; the
        mean squared length of the rows where ``beta`` is a number, and 1 where "auto" means 1 for ``beta``.
    beta : float or "auto", default "auto"
        Strength of :math:`\beta \sum_s |\lambda_s| \|p_s\|^2`, or of another penalty. "auto": the strength of least
        loss on held-out samples, ``beta_``, which costs some short fits; 1 for ``partial_fit`` and with
        :class:`mopn.RowBlocks`.
    penalty : {"weighted", "frobenius"}, default "weighted"
        This one; :math:`\frac{\beta}{2} \|P\|^2`.
    tol : float, default 0.001
        A fit stops when ten iterations together decrease the objective by less, relative. With 0 only the limits
        stop a fit.
    fit_lower : {"explicit", "augment", "shared", None}, default "explicit"
        Degrees 2 to m - 1: with their own units; by dummies, columns of ones in front of X; by the same units with
        weights theta on the simplex; or not in the model.
    fit_linear : bool, default True
        Fit a linear term ``<w, x>``.
    fit_intercept : bool, default True
        Fit a constant, without a penalty.
    solver : {"cd", "lbfgs", "adagrad", "sgd"} or Solver, default "cd"
        Coordinate descent, the only one whose steps are the same in any unit of y (with "auto" strengths and
        ``degree`` 2); L-BFGS; AdaGrad; stochastic gradient descent; or one with other options, such as
        ``mopn.solvers.CoordinateDescent(n_threads=2)``.
    init_lambdas : {"ones", "random_signs", "fit"}, default "ones"
        lambda: fixed to 1, to random signs, or fitted.
    warm_start : bool, default False
        Start from the fitted attributes, of an earlier fit or set by the user; missing ones have the default start.
    max_iter : int, default 1000
        Largest number of iterations: epochs of "cd", "adagrad" and "sgd", steps of "lbfgs".
    max_time : float or None, default None
        Largest number of seconds for ``fit``; default no limit.
    verbose : int, default 0
        Print every ``verbose``-th iteration as a row of a table; 0 prints nothing.
    random_state : int, RandomState or None, default None
        Seed of the random start (normal entries), of random signs and of the order of samples.

    See Also
    --------
    MultiOutputFMClassifier : Degree 2, any number of classes, with a bound on the distance to the global optimum.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import FactorizationMachineClassifier
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (100, 3))
    >>> y = np.where(X.prod(axis=1) > 0, "even", "odd")
    >>> classifier = FactorizationMachineClassifier(degree=3, beta=0.1, random_state=0).fit(X, y)
    >>> classifier.score(X, y)
    1.0
    """

    @available_if(_is_stochastic)
    @quiet()
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Take one pass of AdaGrad or stochastic gradient descent over some samples, or one.

        Parameters
        ----------
        X, y, sample_weight : as for ``fit``
            With :class:`mopn.RowBlocks`, a call is an epoch: a pass over each block, read one after the other.
        classes : array-like of shape (2,), optional
            Both labels; required in the first call if y does not contain both. Later calls may leave them out.

        Returns
        -------
        self
            The estimator. The objective of a call has its samples and the penalty of their features.

        Raises
        ------
        ValueError, TypeError, AttributeError
            As ``fit``; for labels that are not among the classes, other classes than in the first call, or a solver
            that is not "adagrad" or "sgd".
        """
        first = not hasattr(self, "model_")
        if isinstance(X, RowBlocks) and first and classes is None:
            classes = np.unique(X.with_targets(y, None).with_targets_in_memory()[1])
        self._classes = self._first_classes(y, classes) if first else self._same_classes(classes)
        try:
            return self._partial_fit(X, y, sample_weight, first=first)
        finally:
            self._classes = None

    def _first_classes(self, y: Any, classes: Any) -> np.ndarray:
        if classes is not None:
            return self._two_classes(distinct_labels(classes, "classes")[0], "classes")
        labels, _ = distinct_labels(y)
        if len(labels) == 1:
            raise ValueError(f"y has one class only ({labels[0]}); give both as classes in the first call")
        return self._two_classes(labels)

    def _same_classes(self, classes: Any) -> np.ndarray:
        if classes is not None and not np.array_equal(distinct_labels(classes, "classes")[0], self.classes_):
            raise ValueError(
                f"classes are {shown(classes)}, but {self.classes_} in the first call; leave them out, or fit anew"
            )
        return self.classes_

"""Factorization machines and polynomial networks of one output, with polylearn's names: regressors and classifiers."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mopn.estimators.base import Callback, ModelEstimator
from mopn.estimators.docs import filled
from mopn.factorization.direct import FactorizationProblem
from mopn.factorization.lifted import LiftedProblem
from mopn.models.single_output import FactorizationModel
from mopn.solvers import LBFGS, SGD, AdaGrad, CoordinateDescent, Result, Solver, Status, minimize

__all__ = [
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
]

_SOLVERS: dict[str, type[Solver]] = {"cd": CoordinateDescent, "lbfgs": LBFGS, "adagrad": AdaGrad, "sgd": SGD}
_NAMES = {"squared": "squared", "logistic": "binary-logistic", "squared_hinge": "binary-squared-hinge"}
_LAMBDAS = {"ones": "ones", "random_signs": "signs", "fit": "fit"}
_SEEDS = 2**31 - 1

_COMMON = """tol : float, default 1e-3
        Stop when ten iterations together decrease the objective by less than ``tol``, relative; 0 leaves it to the
        limits.
    fit_intercept : bool, default True
        Fit a constant, without a penalty.
    warm_start : bool, default False
        Start from the fitted attributes, those of an earlier fit or those that you set; what is missing is random.
    max_iter : int, default 1000
        Largest number of iterations: epochs of "cd", "adagrad" and "sgd", steps of "lbfgs".
    max_time : float, optional
        Largest number of seconds for the solver.
    verbose : int, default 0
        Print a table with every ``verbose``-th iteration.
    callback : callable, optional
        Called after every iteration as ``callback(intermediate_result=Result)``; ``StopIteration`` stops the fit.
    random_state : int, RandomState or None, default None
        Seed of the random start (entries from N(0, 0.01)), of random signs and of the order of samples."""

_FM_PARAMETERS = (
    """degree : int, default 2
        The largest number m of features in a product.
    {loss}n_components : int, default 10
        Number k of units, for each degree if there are several.
    alpha : float, default 1.0
        Strength of ``alpha / 2 * ||w||^2``. The losses are added up over the samples, not averaged.
    beta : float, default 1.0
        Strength of ``beta * sum_s |lambda_s| ||p_s||^2``.
    fit_lower : {{"explicit", "augment", "shared", None}}, default "explicit"
        Degrees 2 to m - 1: units of their own; by 1-features in front of X, whose weights are learned; by the same
        units with weights theta on the simplex; or left out.
    fit_linear : bool, default True
        Fit a linear term ``<w, x>``.
    kernel : {{"anova", "all-subsets"}}, default "anova"
        Products of ``degree`` distinct features, or of any number of them.
    solver : {{"cd", "lbfgs", "adagrad", "sgd"}} or Solver, default "cd"
        Coordinate descent; L-BFGS; AdaGrad; stochastic gradient descent; or one of ``mopn.solvers`` with options of
        its own, ``CoordinateDescent(n_threads=2)`` for instance.
    init_lambdas : {{"ones", "random_signs", "fit"}}, default "ones"
        lambda: fixed to 1, to random signs, or fitted.
    """
    + _COMMON
)
_PN_PARAMETERS = (
    """degree : int, default 2
        The degree m of the polynomial.
    {loss}n_components : int, default 10
        Number r of products.
    beta : float, default 1.0
        Strength of ``beta / 2 * sum_t ||U^t||^2``. The losses are added up over the samples, not averaged.
    fit_lower : {{"augment", None}}, default "augment"
        Lower degrees, by a 1-feature in front of X, or none.
    solver : {{"cd", "lbfgs"}} or Solver, default "cd"
        Coordinate descent; L-BFGS; or one of ``mopn.solvers`` with options of its own.
    """
    + _COMMON
)
_LOSS = {
    False: """loss : {"squared"} or None, default None
        The squared loss, half the squared error.
    """,
    True: """loss : {"squared_hinge", "logistic", "squared"} or None, default None
        Loss of labels -1 and 1; None means "squared_hinge".
    """,
}
_ATTRIBUTES = """{classes}{factors}
    intercept_ : float
        The constant; 0 if there is none.
    model_ : FactorizationModel
        The model on its own, which ``save`` writes.
    objective_ : float
        The objective.
    status_ : Status
        Why the solver stopped; ``status_.message`` is a sentence.
    n_iter_ : int
        Iterations done, at least 1.
    trace_ : Trace
        A row an iteration: time, objective.
    n_features_in_ : int
        Number of features d.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, if all are strings."""
_FM_FACTORS = """P_ : ndarray of shape (n_orders, k, dummies + d)
        Units; ``P_[0]`` are those of degree m, then m - 1, ... if "explicit".
    lams_ : ndarray of shape (k,)
        lambda.
    w_ : ndarray of shape (d,)
        The linear term, if it is fitted.
    theta_ : ndarray of shape (m,)
        Weights of the degrees, if "shared"."""
_PN_FACTORS = """U_ : ndarray of shape (m, r, d) or (m, r, 1 + d)
        Factors."""
_CLASSES = """classes_ : ndarray of shape (2,)
        Sorted labels; positive outputs mean the second one.
    """


def _sections(parameters: str, factors: str, *, classifier: bool) -> dict[str, str]:
    return {
        "parameters": parameters.format(loss=_LOSS[classifier]),
        "attributes": _ATTRIBUTES.format(classes=_CLASSES if classifier else "", factors=factors),
    }


def _is_stochastic(estimator: Any) -> bool:
    if estimator.solver not in ("adagrad", "sgd") and not isinstance(estimator.solver, SGD):
        raise AttributeError(f"partial_fit needs solver='adagrad' or 'sgd', got {estimator.solver!r}")
    return True


class SingleOutputEstimator(ModelEstimator):
    """Base of the estimators of one output: the steps of ``fit``."""

    loss: str | None
    # The losses there are, the default first.
    _losses: ClassVar[tuple[str, ...]]
    solver: str | Solver
    tol: float
    max_iter: int | None
    max_time: float | None
    warm_start: bool
    verbose: int
    callback: Callback | None
    random_state: Any
    # AdaGrad's sums of squared gradients, between passes over parts of the samples.
    _sums: np.ndarray | None = None
    # The fitted parameters, and what the problem calls them.
    _fitted: ClassVar[dict[str, str]] = {f"{name}_": name for name in ("w", "intercept", "lams", "theta", "P", "U")}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Training data. Sparse formats other than CSR and CSC are converted.
        y : array-like of shape (n,)
            Classifiers: labels of two classes. Regressors: numbers.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 equals a repeated sample, and a weight of 0 a missing one.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter are not what they should be.
        KeyboardInterrupt
            After Ctrl-C. The estimator is then fitted to the best parameters so far; likewise if ``callback`` raises.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` iterations of "cd" or "lbfgs" were not enough, or a number overflowed.
        """
        solver, self._sums = self._solver(), None
        X, y, sample_weight, _ = self._samples(X, y, sample_weight)
        problem = self._problem(X, self._encode(column_or_1d(y, warn=True)), sample_weight, self._seed())
        result = minimize(
            problem,
            solver,
            start=self._start() if self.warm_start else None,
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            callback=self.callback,
            verbose=self.verbose,
        )
        self._keep(problem, result)
        self.objective_, self.status_, self.trace_ = float(result.fun), result.status, result.trace
        self.n_iter_ = max(int(result.nit), 1)
        # Stochastic methods are meant to do all passes.
        if not (isinstance(solver, SGD) and result.status == Status.MAX_ITER):
            self._finish(result)
        return self

    @abstractmethod
    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Check y and turn it into numbers."""

    @abstractmethod
    def _problem(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, seed: int) -> Any:
        """Return the problem."""

    def _solver(self) -> Solver:
        if isinstance(self.solver, Solver):
            return self.solver
        if self.solver not in _SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(map(repr, _SOLVERS))} or a Solver, got {self.solver!r}")
        kind = _SOLVERS[self.solver]
        return kind(rng=self._seed()) if issubclass(kind, SGD) else kind()

    def _seed(self) -> int:
        if self.random_state is None:
            return int(np.random.default_rng().integers(_SEEDS))
        return int(check_random_state(self.random_state).randint(_SEEDS))

    def _start(self) -> dict[str, np.ndarray] | None:
        """Return the fitted parameters that are there."""
        return {
            name: np.atleast_1d(getattr(self, attribute))
            for attribute, name in self._fitted.items()
            if hasattr(self, attribute)
        }

    def _loss_name(self) -> str:
        loss = self._losses[0] if self.loss is None else self.loss
        if loss not in self._losses:
            raise ValueError(f"loss must be one of {', '.join(map(repr, self._losses))} or None, got {self.loss!r}")
        return _NAMES[loss]

    def _keep(self, problem: Any, result: Any) -> None:
        """Set the fitted parameters."""
        self.model_ = FactorizationModel.from_result(problem, result, classes=getattr(self, "classes_", None))
        for attribute, name in self._fitted.items():
            if name in result:
                value = np.array(result[name])
                setattr(self, attribute, float(value[0]) if name == "intercept" else value)
        if "intercept" not in result:
            self.intercept_ = 0.0


class FactorizationMachine(SingleOutputEstimator):
    """Base of the factorization machines."""

    def __init__(
        self,
        *,
        degree: int = 2,
        loss: str | None = None,
        n_components: int = 10,
        alpha: float = 1.0,
        beta: float = 1.0,
        tol: float = 1e-3,
        fit_lower: str | None = "explicit",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        kernel: str = "anova",
        solver: str | Solver = "cd",
        init_lambdas: str = "ones",
        warm_start: bool = False,
        max_iter: int | None = 1000,
        max_time: float | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
        random_state: Any = None,
    ) -> None:
        self.degree = degree
        self.loss = loss
        self.n_components = n_components
        self.alpha = alpha
        self.beta = beta
        self.tol = tol
        self.fit_lower = fit_lower
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.kernel = kernel
        self.solver = solver
        self.init_lambdas = init_lambdas
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def _problem(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, seed: int) -> FactorizationProblem:
        if self.init_lambdas not in _LAMBDAS:
            raise ValueError(f"init_lambdas must be one of {', '.join(map(repr, _LAMBDAS))}, got {self.init_lambdas!r}")
        lams: Any = _LAMBDAS[self.init_lambdas]
        if self.warm_start and lams != "fit" and hasattr(self, "lams_"):
            lams = self.lams_
        # Of degree 2, the lower degrees are those of the linear term.
        lower = self.fit_lower
        if self.kernel != "anova" or (self.degree == 2 and (lower == "explicit" or self.fit_linear)):
            lower = None
        return FactorizationProblem(
            X,
            y,
            degree=self.degree,
            n_components=self.n_components,
            kernel=self.kernel,
            loss=self._loss_name(),
            alpha=self.alpha,
            beta=self.beta,
            fit_lower=lower,
            fit_linear=self.fit_linear,
            fit_intercept=self.fit_intercept,
            lams=lams,
            sample_weight=sample_weight,
            rng=seed,
        )

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Any:
        """Take one pass over some samples."""
        solver: Any = self._solver()
        X, y, sample_weight, _ = self._samples(X, y, sample_weight, reset=first)
        problem = self._problem(X, self._encode(column_or_1d(y, warn=True)), sample_weight, self._seed())
        start = problem.start(None if first else self._start())
        passes = problem.passes_over_part(start, None if first else self._sums)
        solver.do_pass(passes, np.random.default_rng(self._seed()))
        x = passes.point()
        if np.isfinite(x).all():
            self._sums = passes.sums()
        else:
            x = start
            text = "A step led to NaN or infinity, and was not taken; take a smaller one, or scale the features."
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        self._keep(problem, Result(problem.unpack(x)))
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        return self


class PolynomialNetwork(SingleOutputEstimator):
    """Base of the polynomial networks."""

    def __init__(
        self,
        *,
        degree: int = 2,
        loss: str | None = None,
        n_components: int = 10,
        beta: float = 1.0,
        tol: float = 1e-3,
        fit_lower: str | None = "augment",
        fit_intercept: bool = True,
        solver: str | Solver = "cd",
        warm_start: bool = False,
        max_iter: int | None = 1000,
        max_time: float | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
        random_state: Any = None,
    ) -> None:
        self.degree = degree
        self.loss = loss
        self.n_components = n_components
        self.beta = beta
        self.tol = tol
        self.fit_lower = fit_lower
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def _problem(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, seed: int) -> LiftedProblem:
        if self.fit_lower not in ("augment", None):
            raise ValueError(f"fit_lower must be 'augment' or None, got {self.fit_lower!r}")
        return LiftedProblem(
            X,
            y,
            degree=self.degree,
            rank=self.n_components,
            loss=self._loss_name(),
            beta=self.beta,
            augment=self.fit_lower == "augment",
            fit_intercept=self.fit_intercept,
            sample_weight=sample_weight,
            rng=seed,
        )


class SingleOutputRegressor(RegressorMixin):
    """What the regressors of one output share."""

    _numeric_y = True
    _losses: ClassVar[tuple[str, ...]] = ("squared",)

    def _encode(self, y: np.ndarray) -> np.ndarray:
        return y.astype(np.float64, copy=False)


def _is_logistic(classifier: Any) -> bool:
    if classifier.loss != "logistic":
        raise AttributeError(f"loss={classifier.loss!r} is not a probability model; for predict_proba use 'logistic'")
    return True


class BinaryClassifier(ClassifierMixin):
    """What the classifiers of one output share: two classes."""

    _numeric_y = False
    _losses: ClassVar[tuple[str, ...]] = ("squared_hinge", "logistic", "squared")
    model_: Any
    classes_: np.ndarray
    # Those that a pass over a part of the samples must know.
    _classes: np.ndarray | None = None

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs (n,), positive for ``classes_[1]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        X = self._checked(X)
        return self.model_.outputs(X)[:, 0]

    @available_if(_is_logistic)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities (n, 2) of the classes; there are some for the loss "logistic" only.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        X = self._checked(X)
        return self.model_.predict_proba(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _encode(self, y: np.ndarray) -> np.ndarray:
        check_classification_targets(y)
        if self._classes is None:
            classes = np.unique(y)
            self._check_classes(classes)
        else:
            classes = self._classes
            unknown = np.setdiff1d(y, classes)
            if len(unknown):
                raise ValueError(f"y has labels {unknown} that are not among the classes {classes}")
        self.classes_ = classes
        return np.where(y == classes[1], 1.0, -1.0)

    def _check_classes(self, classes: np.ndarray) -> None:
        if len(classes) == 1:
            raise ValueError(f"y has one class only ({classes[0]!r}); classification needs 2 classes")
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y has "
                f"{len(classes)} classes; mopn.estimators.MultiOutputFMClassifier and MultiOutputPNClassifier take "
                "them all at once"
            )


@filled(**_sections(_FM_PARAMETERS, _FM_FACTORS, classifier=False))
class FactorizationMachineRegressor(SingleOutputRegressor, FactorizationMachine):
    """Regressor: a factorization machine of any degree.

    Predictions are ``b + <w, x> + sum_s lambda_s A^m(p_s, x)``, and the same of lower degrees: sums over products of
    distinct features.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    MultiOutputFMRegressor : Degree 2, several targets, with a bound on the distance to the global optimum.

    References
    ----------
    Blondel, Fujino, Ueda and Ishihata: Higher-Order Factorization Machines. NIPS 2016.

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
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Take one pass of AdaGrad or stochastic gradient descent over some samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
            The estimator. The objective of a call is that of its samples, the penalty of their features included.

        Raises
        ------
        ValueError, TypeError
            As ``fit``.
        AttributeError
            If ``solver`` is not "adagrad" or "sgd".
        """
        return self._partial_fit(X, y, sample_weight, first=not hasattr(self, "model_"))


@filled(**_sections(_FM_PARAMETERS, _FM_FACTORS, classifier=True))
class FactorizationMachineClassifier(BinaryClassifier, FactorizationMachine):
    """Classifier of two classes: a factorization machine of any degree.

    The outputs are ``b + <w, x> + sum_s lambda_s A^m(p_s, x)``, and the same of lower degrees: sums over products of
    distinct features.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    MultiOutputFMClassifier : Degree 2, any number of classes, with a bound on the distance to the global optimum.

    References
    ----------
    Blondel, Fujino, Ueda and Ishihata: Higher-Order Factorization Machines. NIPS 2016.

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
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Take one pass of AdaGrad or stochastic gradient descent over some samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (2,), optional
            Both labels; needed in the first call if y has not both.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
            The estimator. The objective of a call is that of its samples, the penalty of their features included.

        Raises
        ------
        ValueError, TypeError
            As ``fit``, or for labels that are not among the classes.
        AttributeError
            If ``solver`` is not "adagrad" or "sgd".
        """
        first = not hasattr(self, "model_")
        self._classes = np.unique(y if classes is None else classes) if first else self.classes_
        self._check_classes(self._classes)
        try:
            return self._partial_fit(X, y, sample_weight, first=first)
        finally:
            self._classes = None


@filled(**_sections(_PN_PARAMETERS, _PN_FACTORS, classifier=False))
class PolynomialNetworkRegressor(SingleOutputRegressor, PolynomialNetwork):
    """Regressor: a polynomial network of any degree, trained by the lifted approach.

    Predictions are ``b + sum_s prod_t <u_s^t, z>`` with ``z = [1, x]``: polynomials of degree m.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    MultiOutputPNRegressor : Degree 2, several targets, with a bound on the distance to the global optimum.

    References
    ----------
    Blondel, Ishihata, Fujino and Ueda: Polynomial Networks and Factorization Machines. ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import PolynomialNetworkRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 4))
    >>> y = X[:, 0] ** 2 * X[:, 1] - X[:, 3]
    >>> regressor = PolynomialNetworkRegressor(degree=3, beta=0.1, random_state=0).fit(X, y)
    >>> regressor.U_.shape, regressor.score(X, y) > 0.95
    ((3, 10, 5), True)
    """


@filled(**_sections(_PN_PARAMETERS, _PN_FACTORS, classifier=True))
class PolynomialNetworkClassifier(BinaryClassifier, PolynomialNetwork):
    """Classifier of two classes: a polynomial network of any degree, trained by the lifted approach.

    The outputs are ``b + sum_s prod_t <u_s^t, z>`` with ``z = [1, x]``: polynomials of degree m.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    MultiOutputPNClassifier : Degree 2, any number of classes, with a bound on the distance to the global optimum.

    References
    ----------
    Blondel, Ishihata, Fujino and Ueda: Polynomial Networks and Factorization Machines. ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import PolynomialNetworkClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    >>> y = (X**2).sum(axis=1) > 0.6
    >>> PolynomialNetworkClassifier(beta=0.1, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

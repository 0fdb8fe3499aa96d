"""Polynomial networks of one output and any degree, with polylearn's names: a regressor and a classifier.

Blondel, Ishihata, Fujino and Ueda: Polynomial Networks and Factorization Machines. ICML 2016.
"""

from typing import Any, Literal

import numpy as np

from mopn.estimators.single_output import (
    BinaryClassifier,
    SingleLossName,
    SingleOutputEstimator,
    SingleOutputRegressor,
    SolverName,
)
from mopn.losses.losses import Loss
from mopn.solvers import Solver
from mopn.solvers.tools.checks import choice, count


class PolynomialNetwork(SingleOutputEstimator):
    """Base of the polynomial networks."""

    U_: np.ndarray
    """Factors (m, r, d), or (m, r, 1 + d) with a dummy."""

    _rules = SingleOutputEstimator._rules | {"degree": count(2), "fit_lower": choice(["augment"]).or_none()}

    def __init__(
        self,
        *,
        degree: int = 2,
        loss: SingleLossName | Loss | None = None,
        n_components: int = 10,
        beta: float | Literal["auto"] = "auto",
        tol: float = 1e-3,
        fit_lower: Literal["augment"] | None = "augment",
        fit_intercept: bool = True,
        solver: SolverName | Solver = "cd",
        warm_start: bool = False,
        max_iter: int | None = 1000,
        max_time: float | None = None,
        verbose: int = 0,
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
        self.random_state = random_state

    def _problem(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, seed: int) -> Any:
        from mopn.factorization.lifted import LiftedProblem  # it imports numba

        return LiftedProblem(
            X,
            y,
            degree=self.degree,
            rank=self.n_components,
            loss=self.loss_,
            beta=self.beta_,
            augment=self.fit_lower == "augment",
            fit_intercept=self.fit_intercept,
            sample_weight=sample_weight,
            init_scale=self._start_size(y, sample_weight),
            rng=seed,
        )


class PolynomialNetworkRegressor(SingleOutputRegressor, PolynomialNetwork):
    r"""Regressor: a polynomial network of any degree, trained by the lifted approach.

    Predictions are ``b + sum_s prod_t <u_s^t, z>`` with ``z = [1, x]``: polynomials of degree m.

    Parameters
    ----------
    degree : int, default 2
        The degree m of the polynomial.
    loss : str, Loss or None, default None
        "squared", half the squared error, by default; "huber" (:class:`mopn.Huber`), for outliers; "quantile"
        (:class:`mopn.Quantile`), by default the median; "poisson" (:class:`mopn.Poisson`), for counts, with another
        solver than "cd"; their parameters are in the unit of y. Or a :class:`mopn.Loss` per output.
    n_components : int, default 10
        Number r of products.
    beta : float or "auto", default "auto"
        Strength of :math:`\frac{\beta}{2} \sum_t \|U^t\|^2`. "auto": the strength of least loss on held-out
        samples, ``beta_``, which costs some short fits; 1 with :class:`mopn.RowBlocks`.
    tol : float, default 0.001
        A fit stops when ten iterations together decrease the objective by less, relative. With 0 only the limits
        stop a fit.
    fit_lower : {"augment", None}, default "augment"
        Lower degrees by a dummy, a column of ones in front of X; or no lower degrees.
    fit_intercept : bool, default True
        Fit a constant, without a penalty.
    solver : {"cd", "lbfgs"} or Solver, default "cd"
        Coordinate descent; L-BFGS, whose steps depend on the unit of y; or one of ``mopn.solvers`` with other options.
    warm_start : bool, default False
        Start from the fitted attributes, of an earlier fit or set by the user; missing ones have the default start.
    max_iter : int, default 1000
        Largest number of iterations: epochs of "cd", steps of "lbfgs".
    max_time : float or None, default None
        Largest number of seconds for ``fit``; default no limit.
    verbose : int, default 0
        Print every ``verbose``-th iteration as a row of a table; 0 prints nothing.
    random_state : int, RandomState or None, default None
        Seed of the random start, with normal entries.

    See Also
    --------
    MultiOutputPNRegressor : Degree 2, several targets, with a bound on the distance to the global optimum.

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


class PolynomialNetworkClassifier(BinaryClassifier, PolynomialNetwork):
    r"""Classifier of two classes: a polynomial network of any degree, trained by the lifted approach.

    The outputs are ``b + sum_s prod_t <u_s^t, z>`` with ``z = [1, x]``: polynomials of degree m.

    Parameters
    ----------
    degree : int, default 2
        The degree m of the polynomial.
    loss : str, Loss or None, default None
        "squared-hinge", by default, "logistic" or "squared", of labels -1 and 1; or a :class:`mopn.Loss` per
        output.
    n_components : int, default 10
        Number r of products.
    beta : float or "auto", default "auto"
        Strength of :math:`\frac{\beta}{2} \sum_t \|U^t\|^2`. "auto": the strength of least loss on held-out
        samples, ``beta_``, which costs some short fits; 1 with :class:`mopn.RowBlocks`.
    tol : float, default 0.001
        A fit stops when ten iterations together decrease the objective by less, relative. With 0 only the limits
        stop a fit.
    fit_lower : {"augment", None}, default "augment"
        Lower degrees by a dummy, a column of ones in front of X; or no lower degrees.
    fit_intercept : bool, default True
        Fit a constant, without a penalty.
    solver : {"cd", "lbfgs"} or Solver, default "cd"
        Coordinate descent; L-BFGS, whose steps depend on the unit of y; or one of ``mopn.solvers`` with other options.
    warm_start : bool, default False
        Start from the fitted attributes, of an earlier fit or set by the user; missing ones have the default start.
    max_iter : int, default 1000
        Largest number of iterations: epochs of "cd", steps of "lbfgs".
    max_time : float or None, default None
        Largest number of seconds for ``fit``; default no limit.
    verbose : int, default 0
        Print every ``verbose``-th iteration as a row of a table; 0 prints nothing.
    random_state : int, RandomState or None, default None
        Seed of the random start, with normal entries.

    See Also
    --------
    MultiOutputPNClassifier : Degree 2, any number of classes, with a bound on the distance to the global optimum.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import PolynomialNetworkClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    >>> y = (X**2).sum(axis=1) > 0.6
    >>> PolynomialNetworkClassifier(beta=0.1, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

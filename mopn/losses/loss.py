"""The base class of losses, and links to probabilities or means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from mopn.compiled.codes import CompiledLoss
from mopn.losses.hessians import Hessian
from mopn.solvers.tools.checks import choice
from mopn.solvers.tools.members import data_member


def softmax(O: np.ndarray) -> np.ndarray:  # noqa: E741
    """Probabilities (n, m) of the classes, which add up to 1."""
    # Differences of finite outputs may overflow, to the exponent of a zero.
    with np.errstate(over="ignore"):
        P = np.exp(O - O.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def logistic(O: np.ndarray) -> np.ndarray:  # noqa: E741
    """Probabilities (n, m) that single outputs are positive."""
    return expit(O)


def means(O: np.ndarray) -> np.ndarray:  # noqa: E741
    """Means (n, m) whose logarithms are the outputs."""
    with np.errstate(over="ignore"):
        return np.exp(O)


# By their names in models and files.
LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"softmax": softmax, "logistic": logistic, "log": means}
_LINK = choice(LINKS).or_none()


def check_link(link: str | None) -> str | None:
    return _LINK(link, "link")


def _least_constant(loss: Loss, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the constant outputs (m,) of least mean loss; zeros if none is found."""
    kinds, kind = np.unique(y, axis=0, return_inverse=True)
    shares = np.bincount(kind.reshape(-1), weights)
    shares = shares / shares.sum()
    m = kinds.shape[1] if kinds.ndim > 1 else int(kinds.max()) + 1

    def mean_loss(constant: np.ndarray) -> tuple[float, np.ndarray]:
        values, gradients = loss.value_gradient(kinds, np.tile(constant, (len(kinds), 1)))
        return float(shares @ values), shares @ gradients

    found = minimize(mean_loss, np.zeros(m), jac=True, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 1e-10}).x
    return found if np.isfinite(found).all() else np.zeros(m)


class Loss(ABC):
    """Base class of losses, also of user-defined ones: convex, smooth functions of the outputs, at least 0, row by row.

    Required are the attribute ``targets`` and the methods ``value_gradient``, ``smoothness`` and ``conjugate``. With
    these, all solvers of networks and of output layers accept the loss, except ``InteriorPoint``, and the gaps are
    proven. The rest is optional:

    * ``hessian``: for ``InteriorPoint``. Without it, refits of the output layer use FISTA, which is slower.
    * ``value``: without it line searches compute gradients that they do not need.
    * ``link``: without it models have no ``predict_proba``, and predictions of numbers are the outputs.

    Built-in losses cannot be subclassed, as their proofs would be false; keep one as an attribute, and call its
    methods. Coordinate descent, SGD and AdaGrad, whose loops are compiled, are for built-in losses. Problems check
    values and gradients on a few rows; :func:`mopn.testing.check_loss` checks the whole contract.

    Attributes
    ----------
    targets : {"labels", "numbers", "signs", "counts"}
        The kind of y: labels (n,) in 0..m-1, for one loss over all outputs; or targets (n, m), any numbers, only -1
        and +1, or numbers that are at least 0, for a sum of losses per output.
    link : {"softmax", "logistic", "log"}, optional
        The map from outputs to probabilities, of the classes or of each output being positive, or to means.
    output_scale : float, default 1.0
        The size of outputs at which the loss is a fixed number, such as a margin of 1; 0 for a loss that scales with
        targets and outputs, such as the squared loss. Rounding errors are relative to it.
    name : str, optional
        The name of the loss in messages; default the name of the class.

    Notes
    -----
    Outputs may be of either memory order; sums over the outputs are fastest where each output is contiguous.

    Examples
    --------
    The Huber loss with the threshold 1 (``mopn.Huber`` has any). Its conjugate is finite for slopes in [-1, 1], and
    gradients are such slopes:

    >>> import numpy as np, mopn
    >>> class Huber(mopn.Loss):
    ...     targets = "numbers"
    ...
    ...     def smoothness(self, m):
    ...         return 1.0
    ...
    ...     def value_gradient(self, y, O):
    ...         R = O - y
    ...         G = np.clip(R, -1.0, 1.0)
    ...         return np.sum(G * (R - 0.5 * G), axis=1), G
    ...
    ...     def conjugate(self, y, G):
    ...         return np.sum(G * (0.5 * G + y), axis=1)
    >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1], loss=Huber(), norm="l1", strength=0.1)
    >>> mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-2).gap_is_proven
    True
    """

    targets: str
    link: str | None = None
    # The code of a built-in loss's derivative in mopn.compiled.coordinates.
    code: int | None = None
    # Width, least and largest slope, for the code CLIPPED.
    code_parameters: tuple[float, float, float] = (1.0, 0.0, 0.0)
    output_scale: float = 1.0

    @data_member
    def name(self) -> str:
        """The name of the loss in messages."""
        return type(self).__name__

    @abstractmethod
    def smoothness(self, m: int) -> float:
        """Lipschitz constant of o -> gradient for one row, in the 2-norm, with m outputs; inf if there is none.

        A loss without one needs ``hessian``, whose values at outputs of zero are the first guess of line searches, and
        has no coordinate descent.
        """

    def value(self, y: np.ndarray, O: np.ndarray) -> np.ndarray:  # noqa: E741
        """Loss of every row, (n,)."""
        return self.value_gradient(y, O)[0]

    @abstractmethod
    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        """Loss of every row (n,) and its gradient with respect to the outputs (n, m)."""

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Hessian:  # noqa: E741
        """Second derivative with respect to the outputs, generalised where it jumps: a :mod:`mopn.losses.hessians`."""
        raise NotImplementedError(f"the loss {self.name!r} has no hessian; use a first-order solver, such as FISTA")

    @property
    def compiled(self) -> CompiledLoss | None:
        """The loss for compiled functions; None if it declares no code."""
        return None if self.code is None else CompiledLoss(self.code, *self.code_parameters)

    @property
    def has_hessian(self) -> bool:
        """Whether the loss defines its second derivative."""
        return type(self).hessian is not Loss.hessian

    @abstractmethod
    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Conjugate of every row (n,) at G (n, m): gradients times some s in [0, 1], up to rounding.

        Bounds take the chord between the values at s = 0 and 1 by ``value_gradient``, and this conjugate in the rows
        where it is larger. Its rounding errors must be at most a few eps times its absolute value plus
        ``sum_c (u + |y_c|) |g_c|``, where u is ``output_scale``, without y_c if y is labels.
        """

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Return the constant outputs (m,) of least loss, around which estimators fit; y is as for ``value_gradient``.

        By default the mean of targets (n, m) that are numbers, and else the minimum as L-BFGS finds it. ``weights``
        (n,) weight the rows, None if all are 1; every label has a row.
        """
        if self.targets in ("numbers", "counts"):
            return np.average(y, axis=0, weights=weights)
        return _least_constant(self, y, weights)

    def scaled(self, size: float) -> Loss:
        """Return the loss with parameters in the unit of targets of a size, for regressors that are given its name."""
        return self

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({parameters})"

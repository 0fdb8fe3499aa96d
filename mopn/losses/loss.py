"""The base class of losses: what problems and solvers ask of one, and what it may leave out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from mopn.compiled.codes import CompiledLoss
from mopn.losses.hessians import Hessian

__all__ = ["Loss"]


class Loss(ABC):
    """Base class of losses, also of user-defined ones: convex, smooth functions of the outputs, at least 0, row by row.

    Required are the attribute ``targets`` and the methods ``value_gradient``, ``smoothness`` and ``conjugate``. With
    these, all solvers of networks and of output layers accept the loss, except ``InteriorPoint``, and the gaps are
    proven. The rest is optional:

    * ``hessian``: ``InteriorPoint`` needs it. Without it, refits of the output layer use FISTA, which is slower.
    * ``value``: without it line searches compute gradients that they do not need.
    * ``link``: without it models have no ``predict_proba``, and predictions of numbers are the outputs.

    Built-in losses cannot be subclassed, as what is proven of one is false of another; keep one as an attribute, and
    call its methods. Coordinate descent, SGD and AdaGrad, whose loops are compiled, are for built-in losses. Problems
    check values and gradients on a few rows; :func:`mopn.testing.check_loss` checks all that a loss defines.

    Attributes
    ----------
    targets : {"labels", "numbers", "signs", "counts"}
        The kind of y: labels (n,) in 0..m-1, for one loss over all outputs; or targets (n, m), any numbers, only -1
        and +1, or numbers that are at least 0, for a sum of losses per output.
    link : {"softmax", "logistic", "log"}, optional
        The map from outputs to probabilities, of the classes or of each output being positive, or to means. Default
        None.
    own_unit : float
        The size of outputs at which the loss is a fixed number, such as a margin of 1; 0 for a loss that scales with
        targets and outputs, as the squared loss does. Rounding errors are relative to it. Default 1.
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
    # The code of a built-in loss's derivative in mopn.compiled.losses.
    code: int | None = None
    # Width, least and largest slope, for the code CLIPPED.
    code_parameters: tuple[float, float, float] = (1.0, 0.0, 0.0)
    own_unit: float = 1.0

    @property
    def name(self) -> str:
        """The name of the loss in messages."""
        return type(self).__name__

    @abstractmethod
    def smoothness(self, m: int) -> float:
        """Lipschitz constant of o -> gradient for one row, in the 2-norm, with m outputs; inf where there is none.

        A loss without one needs ``hessian``, whose values at outputs of zero are the first guess of line searches.
        There is no coordinate descent for it, whose steps rest on the constant.
        """

    def value(self, y: np.ndarray, O: np.ndarray) -> np.ndarray:  # noqa: E741
        """Loss of every row, (n,)."""
        return self.value_gradient(y, O)[0]

    @abstractmethod
    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        """Loss of every row (n,) and its gradient with respect to the outputs (n, m)."""

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Hessian:  # noqa: E741
        """Second derivative with respect to the outputs, a generalised one where it jumps.

        Optional: Newton's methods need it, first-order methods do not. Return one of :mod:`mopn.losses.hessians`.
        """
        raise NotImplementedError(f"the loss {self.name!r} has no hessian; use a first-order solver, such as FISTA")

    @property
    def compiled(self) -> CompiledLoss | None:
        """What compiled functions know of the loss; None if it declares no code."""
        return None if self.code is None else CompiledLoss(self.code, *self.code_parameters)

    @property
    def has_hessian(self) -> bool:
        """Whether the loss defines its second derivative."""
        return type(self).hessian is not Loss.hessian

    @abstractmethod
    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Conjugate of every row (n,) at G (n, m): gradients times some s in [0, 1], up to rounding.

        Bounds take the chord between its values at s = 0 and 1 that ``value_gradient`` gives, and this conjugate in the
        rows where it is larger. Its own rounding errors must be at most a few eps times its absolute value plus
        ``sum_c (u + |y_c|) |g_c|``, where u is ``own_unit``, without y_c if y is labels.
        """

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Return the constant outputs (m,) around which regressors fit targets (n, m); by default their mean."""
        return np.average(y, axis=0, weights=weights)

    def scaled(self, size: float) -> Loss:
        """Return the loss with its parameters in the unit of targets of a size: regressors do so if it is named."""
        return self

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({parameters})"

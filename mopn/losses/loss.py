"""The base class of losses: what problems and solvers ask of one, and what it may leave out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mopn.compiled.codes import CompiledLoss
from mopn.losses.hessians import Hessian

__all__ = ["Loss"]

# Attributes that belong to one gradient and one kind of targets: a class with another of either inherits none.
_OF_THE_GRADIENT = (
    *("value", "hessian", "conjugate", "max_scale", "dual_point", "smoothness", "link", "own_unit"),
    *("constant", "scaled", "code_parameters"),
)


class Loss(ABC):
    """Base class of losses, also of user-defined ones: convex, smooth functions of the outputs, at least 0, row by row.

    Required are the attribute ``targets`` and the methods ``value_gradient``, ``smoothness`` and ``conjugate``. With
    these, all solvers of networks and of output layers accept the loss, except ``InteriorPoint``, and the gaps are
    proven. The rest is optional:

    * ``hessian``: ``InteriorPoint`` needs it. Without it, refits of the output layer use FISTA, which is slower.
    * ``value``: without it line searches compute gradients that they do not need.
    * ``link``: without it models have no ``predict_proba``, and predictions of numbers are the outputs.
    * ``code``: without it a ``FactorizationProblem`` has no coordinate descent, SGD and AdaGrad.

    A class that defines ``value_gradient`` or ``targets`` inherits nothing that belongs to another class's gradient:
    what it does not define is missing, or has the default of this class. To keep an inherited method, name it in the
    class: ``conjugate = Parent.conjugate``. ``code`` is never inherited. Problems check objects of such classes by
    :func:`mopn.check_loss`.

    Attributes
    ----------
    targets : {"labels", "numbers", "signs", "counts"}
        The kind of y: labels (n,) in 0..m-1, for one loss over all outputs; or targets (n, m), any numbers, only -1
        and +1, or numbers that are at least 0, for a sum of losses per output.
    link : {"softmax", "logistic", "log"}, optional
        The map from outputs to probabilities, of the classes or of each output being positive, or to means. Default
        None.
    code : int, optional
        The code of the loss's derivative in ``mopn.compiled.losses``. Default None.
    for_any_namespace : bool
        Whether all methods but ``hessian`` and ``constant`` take arrays of any namespace of the array API. Data on a
        device then stays there; else its outputs are copied to the host in every pass. Never inherited. Default False.
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

    name: str
    targets: str
    link: str | None = None
    code: int | None = None
    # Width, least and largest slope, for the code CLIPPED.
    code_parameters: tuple[float, float, float] = (1.0, 0.0, 0.0)
    own_unit: float = 1.0
    for_any_namespace: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        defining = [_owner(cls, name) for name in ("value_gradient", "targets") if hasattr(cls, name)]
        for name in _OF_THE_GRADIENT:
            # issubclass does not work on a class that is not yet complete.
            if not set(defining) <= set(_owner(cls, name).__mro__):
                setattr(cls, name, vars(Loss)[name])
        cls.name = vars(cls).get("name", cls.__name__)
        cls.code = vars(cls).get("code")
        cls.for_any_namespace = vars(cls).get("for_any_namespace", False)

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

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        """Return the largest s that keeps the conjugate finite at s * G, for a gradient G; inf where there is none.

        Of built-in losses alone: 1 is valid for every loss, as the conjugate is finite at gradients and at 0.
        """
        return 1.0

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return a point near G (n, m), any array, where the conjugate is finite: G itself if it is a gradient.

        Of built-in losses alone, for gradients that an interior-point method predicts.
        """
        raise NotImplementedError(f"the loss {self.name!r} has no dual_point")

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Return the constant outputs (m,) around which regressors fit targets (n, m); by default their mean."""
        return np.average(y, axis=0, weights=weights)

    def scaled(self, size: float) -> Loss:
        """Return the loss with its parameters in the unit of targets of a size: regressors do so if it is named."""
        return self

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({parameters})"


def _owner(cls: type, name: str) -> type:
    """Return the class from which another one has an attribute."""
    return next(base for base in cls.__mro__ if name in vars(base))

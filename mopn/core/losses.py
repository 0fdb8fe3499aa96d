"""Losses l(y, o) of outputs o (n, m): value, gradient, smoothness constant and conjugate, one value a row.

Multi-class losses (Table 3 of Blondel et al., NIPS 2017) take integer labels y (n,) in 0..m-1 and have gradients
whose rows sum to zero. Losses per output take targets Y (n, m) and add up over the outputs. Each is convex, smooth
and at least 0. The conjugate l*(y, g) = sup_o <g, o> - l(y, o) is infinite outside its domain; ``max_scale`` is the
largest factor that keeps a gradient inside it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from mopn.compiled import codes
from mopn.core.hessians import Diagonal, Hessian, Margins, Softmax
from mopn.core.links import LINKS
from mopn.solvers.checks import choice, shown

__all__ = ["LOSSES", "Loss", "get_loss"]

_TARGETS = ("labels", "numbers", "signs")
# Attributes that belong to one gradient and one kind of targets: a class with another of either inherits none.
_OF_THE_GRADIENT = ("value", "hessian", "conjugate", "max_scale", "dual_point", "smoothness", "link", "own_unit")


class Loss(ABC):
    """Base class of losses, also of user-defined ones: convex, smooth functions of the outputs, at least 0, row by row.

    Required are the attribute ``targets`` and the methods ``value_gradient``, ``smoothness`` and ``conjugate``. With
    these, all solvers of networks and of output layers accept the loss, except ``InteriorPoint``, and the gaps are
    proven. The rest is optional:

    * ``hessian`` and ``dual_point``: ``InteriorPoint`` needs both. Without them, refits of the output layer use FISTA,
      which is slower.
    * ``max_scale``: without it gradients are never scaled up to dual points, so gaps may be larger.
    * ``value``: without it line searches compute gradients that they do not need.
    * ``link``: without it models have no ``predict_proba``.
    * ``code``: without it a ``FactorizationProblem`` has no coordinate descent, SGD and AdaGrad.

    A class that defines ``value_gradient`` or ``targets`` inherits nothing that belongs to another class's gradient:
    what it does not define is missing, or has the default of this class. To keep an inherited method, name it in the
    class: ``conjugate = Parent.conjugate``. ``code`` is never inherited. Problems check objects of such classes by
    :func:`mopn.check_loss`.

    Attributes
    ----------
    targets : {"labels", "numbers", "signs"}
        The kind of y: labels (n,) in 0..m-1, for one loss over all outputs; or targets (n, m), any numbers or only -1
        and +1, for a sum of losses per output.
    link : {"softmax", "logistic"}, optional
        The map from outputs to probabilities: of the classes, or of each output being positive. Default None.
    code : int, optional
        The code of the loss's derivative in ``mopn.compiled.losses``. Default None.
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
    The Huber loss. Its conjugate is finite for slopes in [-1, 1], and gradients are such slopes:

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
    >>> mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-2).certified
    True
    """

    name: str
    targets: str
    link: str | None = None
    code: int | None = None
    own_unit: float = 1.0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        defining = [_owner(cls, name) for name in ("value_gradient", "targets") if hasattr(cls, name)]
        for name in _OF_THE_GRADIENT:
            # issubclass does not work on a class that is not yet complete.
            if not set(defining) <= set(_owner(cls, name).__mro__):
                setattr(cls, name, vars(Loss)[name])
        cls.name = vars(cls).get("name", cls.__name__)
        cls.code = vars(cls).get("code")

    @abstractmethod
    def smoothness(self, m: int) -> float:
        """Lipschitz constant of o -> gradient for one row, in the 2-norm, with m outputs."""

    def value(self, y: np.ndarray, O: np.ndarray) -> np.ndarray:  # noqa: E741
        """Loss of every row, (n,)."""
        return self.value_gradient(y, O)[0]

    @abstractmethod
    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        """Loss of every row (n,) and its gradient with respect to the outputs (n, m)."""

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Hessian:  # noqa: E741
        """Second derivative with respect to the outputs, a generalised one where it jumps.

        Optional: Newton's methods need it, first-order methods do not. Return one of :mod:`mopn.core.hessians`.
        """
        raise NotImplementedError(f"the loss {self.name!r} has no hessian; use a first-order solver, such as FISTA")

    @property
    def lacks_for_newton(self) -> tuple[str, ...]:
        """Names of the methods that an interior-point method needs and the loss does not define."""
        return tuple(name for name in ("hessian", "dual_point") if vars(Loss)[name] is getattr(type(self), name))

    @property
    def has_hessian(self) -> bool:
        """Whether the loss defines what an interior-point method needs."""
        return not self.lacks_for_newton

    @abstractmethod
    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Conjugate of every row (n,) at G (n, m): gradients times some s in [0, ``max_scale``], up to rounding.

        Its own rounding errors must be at most a few eps times its modulus plus sum_c (u + |y_c|) |g_c|, where u is
        ``own_unit``, without y_c if y is labels.
        """

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        """Return the largest s that keeps the conjugate finite at s * G, for a gradient G; inf where there is none.

        Optional: 1 is valid for every loss. The conjugate is finite at gradients, and at 0, as the loss is at least 0.
        """
        return 1.0

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return a point near G (n, m), any array, where the conjugate is finite: G itself if it is a gradient.

        Optional: an interior-point method needs it, as it predicts gradients.
        """
        raise NotImplementedError(f"the loss {self.name!r} has no dual_point; use a first-order solver, such as FISTA")

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({parameters})"


def _owner(cls: type, name: str) -> type:
    """Return the class from which another one has an attribute."""
    return next(base for base in cls.__mro__ if name in vars(base))


class Logistic(Loss):
    """Multi-class logistic: log(1 + sum_{c != y} exp(o_c - o_y))."""

    name, targets = "logistic", "labels"
    link: str | None = "softmax"
    # Added to o_c for c != y, as if it were an output: 0 here, 1 for the smoothed hinge.
    cost = 0.0

    def smoothness(self, m: int) -> float:
        return 0.5

    def value(self, y: np.ndarray, O: np.ndarray) -> np.ndarray:  # noqa: E741
        _, excess, largest = self._exponentials(y, O)
        return largest + np.log1p(excess)

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        P, excess, largest = self._exponentials(y, O)
        P /= (1.0 + excess)[:, None]
        P[np.arange(len(y)), y] = -P.sum(axis=1)
        return largest + np.log1p(excess), P

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Softmax:  # noqa: E741
        P, excess, largest = self._exponentials(y, O)
        P[np.arange(len(y)), y] = np.exp(-largest)
        P /= (1.0 + excess)[:, None]
        return Softmax(P)

    def _exponentials(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # noqa: E741
        """Return E = exp(z - max z) of the margins z_c = cost + o_c - o_y, with 0 in place of that of z_y = 0.

        Also the sum of all exponentials minus 1, and max z >= 0. Where y has the largest margin, E holds the small
        terms alone, which keeps the digits of small losses.
        """
        rows = np.arange(len(y))
        E = O - O[rows, y][:, None]
        if self.cost:
            E += self.cost
            E[rows, y] = 0.0
        largest = E.max(axis=1)
        E -= largest[:, None]
        np.exp(E, out=E)
        E[rows, y] = 0.0
        return E, E.sum(axis=1) + np.expm1(-largest), largest

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        # The mass of the other classes is their sum: 1 + g_y would lose small masses of rows of heavy weight.
        Q = np.maximum(G, 0.0)
        Q[np.arange(len(y)), y] = 0.0
        others = np.minimum(Q.sum(axis=1), 1.0)
        return xlogy(Q, Q).sum(axis=1) + xlog1py(1.0 - others, -others) - self.cost * others

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return _reciprocal(-G[np.arange(len(y)), y])

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        rows = np.arange(len(y))
        Q = np.maximum(G, 0.0)
        Q[rows, y] = 0.0
        # The other probabilities add up to 1 at most.
        others = Q.sum(axis=1)
        Q /= np.maximum(others, 1.0)[:, None]
        Q[rows, y] = -np.minimum(others, 1.0)
        return Q


class SmoothedHinge(Logistic):
    """Smoothed multi-class hinge: log(1 + sum_{c != y} exp(1 + o_c - o_y)); a cost-shifted logistic loss.

    Softmax of the outputs is not its probability model, as the shift depends on y.
    """

    name, link, cost = "smoothed-hinge", None, 1.0


class SquaredHinge(Loss):
    """Multi-class squared hinge: sum_{c != y} max(1 + o_c - o_y, 0)^2."""

    name, targets = "squared-hinge", "labels"

    def smoothness(self, m: int) -> float:
        return 2.0 * m

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        rows = np.arange(len(y))
        Z = np.maximum(1.0 + (O - O[rows, y][:, None]), 0.0)
        Z[rows, y] = 0.0
        value = np.einsum("ic,ic->i", Z, Z)
        Z *= 2.0
        Z[rows, y] = -Z.sum(axis=1)
        return value, Z

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Margins:  # noqa: E741
        rows = np.arange(len(y))
        H = np.where(1.0 + (O - O[rows, y][:, None]) > 0.0, 2.0, 0.0)
        H[rows, y] = 0.0
        return Margins(H, y)

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        rows = np.arange(len(y))
        terms = G * (0.25 * G - 1.0)
        return terms.sum(axis=1) - terms[rows, y]

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return math.inf

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        rows = np.arange(len(y))
        positive = np.maximum(G, 0.0)
        positive[rows, y] = 0.0
        positive[rows, y] = -positive.sum(axis=1)
        return positive


class Squared(Loss):
    """Squared loss per output: (o - y)^2 / 2."""

    name, targets, code = "squared", "numbers", codes.SQUARED
    own_unit = 0.0

    def smoothness(self, m: int) -> float:
        return 1.0

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        R = O - y
        return 0.5 * np.einsum("ic,ic->i", R, R), R

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(np.ones_like(O))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.sum(G * (0.5 * G + y), axis=1)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return math.inf

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return G


class BinaryLogistic(Loss):
    """Binary logistic loss per output: log(1 + exp(-y o)), y in {-1, 1}."""

    name, targets, link, code = "binary-logistic", "signs", "logistic", codes.LOGISTIC

    def smoothness(self, m: int) -> float:
        return 0.25

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        margins = y * O
        # log(1 + exp(-z)) = max(-z, 0) + log(1 + e) with e = exp(-|z|), which the gradient takes too.
        e = np.exp(-np.abs(margins))
        values = np.log1p(e) - np.minimum(margins, 0.0)
        G = np.where(margins > 0.0, e, 1.0)
        e += 1.0
        G /= e
        G *= -y
        return values.sum(axis=1), G

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(expit(O) * expit(-O))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        a = np.clip(-y * G, 0.0, 1.0)
        return np.sum(xlogy(a, a) + xlog1py(1.0 - a, -a), axis=1)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return _reciprocal(np.abs(G))

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return -y * np.clip(-y * G, 0.0, 1.0)


class BinarySquaredHinge(Loss):
    """Binary squared hinge per output: max(1 - y o, 0)^2, y in {-1, 1}."""

    name, targets, code = "binary-squared-hinge", "signs", codes.SQUARED_HINGE

    def smoothness(self, m: int) -> float:
        return 2.0

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        Z = np.maximum(1.0 - y * O, 0.0)
        return np.einsum("ic,ic->i", Z, Z), -2.0 * y * Z

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(np.where(y * O < 1.0, 2.0, 0.0))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        a = -y * G
        return np.sum(a * (0.25 * a - 1.0), axis=1)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return math.inf

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return -y * np.maximum(-y * G, 0.0)


def _reciprocal(a: np.ndarray) -> float:
    largest = float(a.max(initial=0.0))
    return 1.0 / largest if largest > 0 else math.inf


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Logistic(), SmoothedHinge(), SquaredHinge(), Squared(), BinaryLogistic(), BinarySquaredHinge())
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name; a loss object is returned as it is, if its declarations are valid."""
    if isinstance(loss, Loss):
        _check_declarations(loss)
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(f"loss must be {choice(LOSSES).takes} or a Loss, got {shown(loss)}")
    return LOSSES[loss]


def _check_declarations(loss: Loss) -> None:
    targets, known = getattr(loss, "targets", None), (codes.SQUARED, codes.LOGISTIC, codes.SQUARED_HINGE)
    if targets not in _TARGETS:
        raise TypeError(
            f"the loss {loss.name!r} must declare targets, one of {', '.join(map(repr, _TARGETS))}, got {targets!r}"
        )
    if loss.link is not None and loss.link not in LINKS:
        names = ", ".join(map(repr, LINKS))
        raise TypeError(f"the link of the loss {loss.name!r} must be one of {names} or None, got {loss.link!r}")
    if loss.code is not None and loss.code not in known:
        raise TypeError(f"the code of the loss {loss.name!r} must be one of {known} or None, got {loss.code!r}")

"""Losses l(y, o) of outputs o (n, m): value, gradient, smoothness constant and conjugate, one value a row.

Multi-class losses (Table 3 of Blondel et al., NIPS 2017) take integer labels y (n,) in 0..m-1 and have gradients
whose rows sum to zero. Losses per output take targets Y (n, m) and add up over the outputs. Each is convex, smooth
and at least 0. The conjugate l*(y, g) = sup_o <g, o> - l(y, o) is infinite outside its domain; ``max_scale`` says how
far a gradient may be scaled within it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit, xlogy

from mopn.core.hessians import Diagonal, Hessian, Margins, Softmax

__all__ = ["LOSSES", "Loss", "get_loss"]


class Loss(ABC):
    """A loss; ``value`` (n,), ``value_gradient`` (n,) and (n, m), ``conjugate`` (n,), ``max_scale`` a number.

    Outputs may be of either memory order; sums over the outputs are fastest where each output is contiguous.

    Attributes
    ----------
    name : str
    multiclass : bool
        Whether y is labels (n,) rather than targets (n, m).
    probabilistic : bool
        Whether the outputs define probabilities.
    """

    name: str
    multiclass: bool
    probabilistic: bool = False

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
        """Second derivative with respect to the outputs, one of its generalised ones where it jumps.

        Optional: Newton's methods need it, first-order ones do not.
        """
        raise NotImplementedError(f"the loss {self.name!r} has no hessian; use a first-order solver, such as FISTA")

    @property
    def has_hessian(self) -> bool:
        """Whether ``hessian`` is there; a class with a gradient of its own needs its own."""
        owners = [next(c for c in type(self).__mro__ if name in vars(c)) for name in ("hessian", "value_gradient")]
        return owners[0] is not Loss and issubclass(*owners)

    @abstractmethod
    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Conjugate of every row at G (n, m), for G in its domain up to rounding."""

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        """Largest s with the conjugate finite at s * G, for a gradient G; inf where there is no limit."""
        return math.inf

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return a point near G (n, m) where the conjugate is finite: G itself if it is a gradient."""
        return G

    def probabilities(self, O: np.ndarray) -> np.ndarray:  # noqa: E741
        """Probabilities (n, m) of the classes, or of each output being positive."""
        raise TypeError(f"the loss {self.name!r} is not a probability model; use loss='logistic'")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Logistic(Loss):
    """Multi-class logistic: log(1 + sum_{c != y} exp(o_c - o_y))."""

    name, multiclass, probabilistic = "logistic", True, True
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
        rows = np.arange(len(y))
        Q = np.maximum(G, 0.0)
        Q[rows, y] = np.maximum(1.0 + G[rows, y], 0.0)
        return xlogy(Q, Q).sum(axis=1) - self.cost * (1.0 - Q[rows, y])

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

    def probabilities(self, O: np.ndarray) -> np.ndarray:  # noqa: E741
        P = np.exp(O - O.max(axis=1, keepdims=True))
        return P / P.sum(axis=1, keepdims=True)


class SmoothedHinge(Logistic):
    """Smoothed multi-class hinge: log(1 + sum_{c != y} exp(1 + o_c - o_y)); a cost-shifted logistic loss.

    Softmax of the outputs is not its probability model, as the shift depends on y.
    """

    name, probabilistic, cost = "smoothed-hinge", False, 1.0

    def probabilities(self, O: np.ndarray) -> np.ndarray:  # noqa: E741
        return Loss.probabilities(self, O)


class SquaredHinge(Loss):
    """Multi-class squared hinge: sum_{c != y} max(1 + o_c - o_y, 0)^2."""

    name, multiclass = "squared-hinge", True

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

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        rows = np.arange(len(y))
        positive = np.maximum(G, 0.0)
        positive[rows, y] = 0.0
        positive[rows, y] = -positive.sum(axis=1)
        return positive


class Squared(Loss):
    """Squared loss per output: (o - y)^2 / 2."""

    name, multiclass = "squared", False

    def smoothness(self, m: int) -> float:
        return 1.0

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        R = O - y
        return 0.5 * np.einsum("ic,ic->i", R, R), R

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(np.ones_like(O))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.sum(G * (0.5 * G + y), axis=1)


class BinaryLogistic(Loss):
    """Binary logistic loss per output: log(1 + exp(-y o)), y in {-1, 1}."""

    name, multiclass, probabilistic = "binary-logistic", False, True

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
        return np.sum(xlogy(a, a) + xlogy(1.0 - a, 1.0 - a), axis=1)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return _reciprocal(np.abs(G))

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return -y * np.clip(-y * G, 0.0, 1.0)

    def probabilities(self, O: np.ndarray) -> np.ndarray:  # noqa: E741
        return expit(O)


class BinarySquaredHinge(Loss):
    """Binary squared hinge per output: max(1 - y o, 0)^2, y in {-1, 1}."""

    name, multiclass = "binary-squared-hinge", False

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
    """Return the loss of a name (a loss object is returned as it is)."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))} or a Loss, got {loss!r}")
    return LOSSES[loss]

"""The losses l(y, o) of outputs o (n, m): value, gradient, smoothness constant and conjugate, one value a row.

Multi-class losses (Table 3 of Blondel et al., NIPS 2017) take integer labels y (n,) in 0..m-1 and have gradients
whose rows sum to zero. Losses per output take targets Y (n, m) and add up over the outputs. Each is convex, smooth
and at least 0. The conjugate l*(y, g) = sup_o <g, o> - l(y, o) is infinite outside its domain; ``max_scale`` is the
largest factor that keeps a gradient inside it.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, xlog1py, xlogy

from mopn.compiled import codes
from mopn.core.hessians import Diagonal, Margins, Softmax
from mopn.core.links import LINKS
from mopn.core.loss import Loss
from mopn.solvers.checks import choice, number, shown

__all__ = ["LOSSES", "Clipped", "Huber", "Loss", "LossName", "Poisson", "Quantile", "get_loss"]

LossName = Literal[
    "logistic", "smoothed-hinge", "squared-hinge", "binary-logistic", "binary-squared-hinge",
    "squared", "huber", "quantile", "poisson",
]  # fmt: skip
_TARGETS = ("labels", "numbers", "signs", "counts")
# Relative differences of means below which expm1 and log1p keep digits.
_NEAR = 0.5
_POSITIVE = number("a finite number > 0", lambda x: x > 0)
_SHARE = number("a number between 0 and 1, both excluded", lambda x: 0 < x < 1)


class Logistic(Loss):
    """Multi-class logistic: log(1 + sum_{c != y} exp(o_c - o_y))."""

    name, targets = "logistic", "labels"
    link: str | None = "softmax"
    # Added to o_c for c != y, as if it were an output: 0 here, 1 for the smoothed hinge.
    cost = 0.0

    def smoothness(self, m: int) -> float:
        return 0.5

    def value(self, y: np.ndarray, O: np.ndarray) -> np.ndarray:  # noqa: E741
        _, _, excess, largest = self._exponentials(y, O)
        return largest + np.log1p(excess)

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        P, others, excess, largest = self._exponentials(y, O)
        P *= (1.0 / (1.0 + excess))[:, None]
        P[np.arange(len(y)), y] = -others / (1.0 + excess)
        return largest + np.log1p(excess), P

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Softmax:  # noqa: E741
        P, _, excess, largest = self._exponentials(y, O)
        P[np.arange(len(y)), y] = np.exp(-largest)
        P /= (1.0 + excess)[:, None]
        return Softmax(P)

    def _exponentials(
        self,
        y: np.ndarray,
        O: np.ndarray,  # noqa: E741
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return E = exp(z - max z) of the margins z_c = cost + o_c - o_y, with 0 in place of that of z_y = 0.

        Also their sum, the sum of all exponentials minus 1, and max z >= 0. Where y has the largest margin, E holds the
        small terms alone, which keeps the digits of small losses.
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
        others = E.sum(axis=1)
        return E, others, others + np.expm1(-largest), largest

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


class Clipped(Loss):
    """Squared loss per output whose slope is clipped: g = (o - y) / width, but at least ``low`` and at most ``high``.

    It is the supremum of g (o - y) - width g^2 / 2 over these slopes.
    """

    name, targets, code = "clipped", "numbers", codes.CLIPPED

    def __init__(self, width: float, low: float, high: float) -> None:
        self._width, self._low, self._high = width, low, high

    @property
    def code_parameters(self) -> tuple[float, float, float]:  # type: ignore[override]
        return self._width, self._low, self._high

    @property
    def own_unit(self) -> float:  # type: ignore[override]
        """The residual from which on the loss is linear."""
        return self._width * max(-self._low, self._high)

    def smoothness(self, m: int) -> float:
        return 1.0 / self._width

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        R = O - y
        G = np.clip(R / self._width, self._low, self._high)
        return np.sum(G * (R - 0.5 * self._width * G), axis=1), G

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        slopes = (O - y) / self._width
        return Diagonal(np.where((slopes > self._low) & (slopes < self._high), 1.0 / self._width, 0.0))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.sum(G * (0.5 * self._width * G + y), axis=1)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return min(_reciprocal(G / self._high), _reciprocal(G / self._low))

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.clip(G, self._low, self._high)

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        weights = np.ones(len(y)) if weights is None else weights
        return np.array([self._constant(targets, weights) for targets in y.T])

    def _constant(self, targets: np.ndarray, weights: np.ndarray) -> float:
        def slope(o: float) -> float:
            return float(weights @ np.clip((o - targets) / self._width, self._low, self._high))

        low, high = float(targets.min()), float(targets.max())
        return float(brentq(slope, low, high)) if slope(low) < 0.0 < slope(high) else low


class Huber(Clipped):
    """Huber loss per output: r^2 / 2 of residuals r = o - y up to delta, delta abs(r) - delta^2 / 2 of larger ones.

    Outliers have slopes of at most delta, so single ones do not decide the fit.

    Parameters
    ----------
    delta : float, default 1.0
        The threshold, in the unit of y. Regressors that are given the name ``"huber"`` take 1.35 robust standard
        deviations of y (its interquartile range / 1.349), as 1.35 keeps 95 % of the efficiency for normal errors.

    Raises
    ------
    ValueError
        If delta is not positive and finite.

    Notes
    -----
    Huber: Robust estimation of a location parameter (Annals of Mathematical Statistics, 1964).

    Examples
    --------
    >>> import numpy as np, mopn
    >>> mopn.Huber(delta=2.0).value(np.zeros((2, 1)), np.array([[1.0], [10.0]]))
    array([ 0.5, 18. ])
    """

    name, code = "huber", codes.CLIPPED

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = _POSITIVE(delta, "delta")
        super().__init__(1.0, -self.delta, self.delta)

    def scaled(self, size: float) -> Huber:
        return Huber(1.35 * self.delta * size)


class Quantile(Clipped):
    """Smoothed pinball loss per output: outputs estimate a quantile of y, given x.

    Residuals r = o - y cost (1 - level) r above y and -level r below it, but within ``width`` times these slopes of y
    it is r^2 / (2 width): the Moreau envelope of the pinball loss, which is at most width / 2 times the square of the
    larger slope below it.

    Parameters
    ----------
    level : float, default 0.5
        The share of targets that lie below the outputs, between 0 and 1.
    width : float, default 0.1
        The smoothing, in the unit of y: smaller is closer to the quantile and takes longer. Regressors that are given
        the name ``"quantile"`` take 0.1 robust standard deviations of y.

    Raises
    ------
    ValueError
        If the level is not strictly between 0 and 1, or the width not positive and finite.

    Notes
    -----
    Koenker and Bassett: Regression quantiles (Econometrica, 1978).

    Examples
    --------
    >>> import numpy as np, mopn
    >>> mopn.Quantile(0.9, width=0.01).value(np.zeros((2, 1)), np.array([[1.0], [-1.0]])).round(2)
    array([0.1, 0.9])
    """

    name, code = "quantile", codes.CLIPPED

    def __init__(self, level: float = 0.5, width: float = 0.1) -> None:
        self.level = _SHARE(level, "level")
        self.width = _POSITIVE(width, "width")
        super().__init__(self.width, -self.level, 1.0 - self.level)

    def scaled(self, size: float) -> Quantile:
        return Quantile(self.level, self.width * size)


class Poisson(Loss):
    """Half the Poisson deviance per output: exp(o) - y o, plus a constant that makes its minimum over o zero.

    Outputs are logarithms of means, and models predict the means. The curvature exp(o) has no bound, so there is no
    coordinate descent; line searches and the gaps need none. Beyond o = 300 the exponential is continued by its
    tangent, so that no trial step overflows.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> mopn.Poisson().value(np.array([[2.0]]), np.log([[2.0]]))
    array([0.])
    """

    name, targets, link, code = "poisson", "counts", "log", codes.POISSON

    def smoothness(self, m: int) -> float:
        return math.inf

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        means = self._means(O)
        d = O - _logarithms(y)
        # exp(o) - y - y d; where the mean is near y the first two cancel.
        near = (np.abs(d) < _NEAR) & (y > 0)
        relative = np.expm1(np.where(near, d, 0.0))
        values = np.where(near, y * np.maximum(relative - d, 0.0), means - y * (1.0 + d))
        values += means * np.maximum(O - codes.LARGEST_EXPONENT, 0.0)
        return values.sum(axis=1), np.where(near, y * relative, means - y)

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(self._means(O))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        # t log t - t - (y log y - y) with the mean t = y + g; where that is near y, as t log(t / y) + g (log y - 1).
        t, logarithms = np.maximum(G + y, 0.0), _logarithms(y)
        near = np.abs(G) < _NEAR * y
        r = np.where(near, G, 0.0) / np.where(near, y, 1.0)
        relative = np.where(near, t * np.log1p(r), xlogy(t, t) - t * logarithms)
        return np.sum(relative + G * (logarithms - 1.0), axis=1)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return _reciprocal(np.where(y > 0, -G, 0.0) / np.where(y > 0, y, 1.0))

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.maximum(G, -y)

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        total = float(len(y)) if weights is None else float(weights.sum())
        # Targets that are all zero have half a count.
        return np.log(np.maximum(np.average(y, axis=0, weights=weights), 0.5 / total))

    @staticmethod
    def _means(O: np.ndarray) -> np.ndarray:  # noqa: E741
        return np.exp(np.minimum(O, codes.LARGEST_EXPONENT))


def _logarithms(y: np.ndarray) -> np.ndarray:
    """Return log y, and 0 where y is 0."""
    return np.log(np.where(y > 0, y, 1.0))


def _reciprocal(a: np.ndarray) -> float:
    largest = float(a.max(initial=0.0))
    return 1.0 / largest if largest > 0 else math.inf


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        *(Logistic(), SmoothedHinge(), SquaredHinge(), BinaryLogistic(), BinarySquaredHinge()),
        *(Squared(), Huber(), Quantile(), Poisson()),
    )
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
    targets, known = getattr(loss, "targets", None), codes.KNOWN
    if targets not in _TARGETS:
        raise TypeError(
            f"the loss {loss.name!r} must declare targets, one of {', '.join(map(repr, _TARGETS))}, got {targets!r}"
        )
    if loss.link is not None and loss.link not in LINKS:
        names = ", ".join(map(repr, LINKS))
        raise TypeError(f"the link of the loss {loss.name!r} must be one of {names} or None, got {loss.link!r}")
    if loss.code is not None and loss.code not in known:
        raise TypeError(f"the code of the loss {loss.name!r} must be one of {known} or None, got {loss.code!r}")

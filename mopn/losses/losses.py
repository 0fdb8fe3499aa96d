"""The losses l(y, o) of outputs o (n, m): value, gradient, smoothness constant and conjugate, one value a row.

Multi-class losses (Table 3 of Blondel et al., NIPS 2017) take integer labels y (n,) in 0..m-1 and have gradients
whose rows sum to zero. Losses per output take targets Y (n, m) and add up over the outputs. Each is convex, smooth
and at least 0. The conjugate l*(y, g) = sup_o <g, o> - l(y, o) is infinite outside its domain; ``max_scale`` is the
largest factor that keeps a gradient inside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, xlog1py, xlogy

from mopn.compiled import codes
from mopn.losses.hessians import Diagonal, MarginHessian, Softmax
from mopn.losses.loss import LINKS, Loss
from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.tools.checks import check_positive, choice, number

__all__ = [
    "LOSSES", "Clipped", "Huber", "Loss", "LossDual", "LossName", "Poisson", "Quantile",
    "dual_of", "get_loss", "rowwise_inner",
]  # fmt: skip

LossName = Literal[
    "logistic", "smoothed-hinge", "squared-hinge", "binary-logistic", "binary-squared-hinge",
    "squared", "huber", "quantile", "poisson",
]  # fmt: skip
_TARGETS = ("labels", "numbers", "signs", "counts")
# Relative differences of means below which expm1 and log1p keep digits.
_NEAR_RELATIVE_DIFFERENCE = 0.5
# Fraction of the largest exponent below which sums of exponentials are far from overflow.
_MODERATE_EXPONENT_FRACTION = 0.85
# Share that a label without rows is given in constant outputs, and mean of counts that are all 0: logarithms need one.
_LEAST_SHARE = 1e-6
_WIDTH = number("a finite number > 0 whose reciprocal is finite", lambda x: x > 0 and 1.0 / x < math.inf)
_LEVEL = number("a number between 0 and 1, both excluded", lambda x: 0 < x < 1)


class Logistic(Loss):
    """Multi-class logistic: log(1 + sum_{c != y} exp(o_c - o_y))."""

    name, targets = "logistic", "labels"
    link: str | None = "softmax"
    # Added to o_c for c != y; 1 for the smoothed hinge.
    cost = 0.0

    def smoothness(self, m: int) -> float:
        return 0.5

    def value(self, y: np.ndarray, O: np.ndarray) -> np.ndarray:  # noqa: E741
        _, _, excess, top = self._exponentials(O, _label_places(O, y))
        return top + np.log1p(excess)

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        places = _label_places(O, y)
        P, others, excess, top = self._exponentials(O, places)
        share = 1.0 / (1.0 + excess)
        P *= share[:, None]
        return top + np.log1p(excess), _put(places, P, -others * share)

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Softmax:  # noqa: E741
        places = _label_places(O, y)
        P, _, excess, top = self._exponentials(O, places)
        P = _put(places, P, np.exp(-top))
        P /= (1.0 + excess)[:, None]
        return Softmax(P)

    def _exponentials(self, O: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:  # noqa: E741
        """Return E = exp(z - t) of the margins z_c = cost + o_c - o_y, and 0 for c = y; the sums of E; excess; and t.

        The excess is the sum of all exponentials minus 1; t is max z >= 0, or 0 where no exponential is too large. E
        without the entry of y keeps the digits of small losses.
        """
        E = O - _taken(places, O)[:, None]
        if self.cost:
            E += self.cost
            E = _put(places, E, 0.0)
        top: Any = 0.0
        moderate = E.max(initial=0.0) < _MODERATE_EXPONENT_FRACTION * np.log(np.finfo(E.dtype).max)
        if not moderate:
            top = E.max(axis=1)
            E -= top[:, None]
        E = _put(places, np.exp(E, out=E), 0.0)
        others = E.sum(axis=1)
        return E, others, others if moderate else others + np.expm1(-top), top

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        # 1 + g_y would lose small masses of the other classes in rows of heavy weight.
        Q = _put(_label_places(G, y), np.maximum(G, 0.0), 0.0)
        others = np.minimum(Q.sum(axis=1), 1.0)
        return xlogy(Q, Q).sum(axis=1) + xlog1py(1.0 - others, -others) - self.cost * others

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        if self.cost:
            return super().constant(y, weights)
        counts = np.bincount(y, weights)
        logarithms = np.log(np.maximum(counts / counts.sum(), _LEAST_SHARE))
        return logarithms - logarithms.mean()

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return _reciprocal(-_taken(_label_places(G, y), G))

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        places = _label_places(G, y)
        Q = _put(places, np.maximum(G, 0.0), 0.0)
        others = Q.sum(axis=1)
        Q /= np.maximum(others, 1.0)[:, None]
        return _put(places, Q, -np.minimum(others, 1.0))


class SmoothedHinge(Logistic):
    """Smoothed multi-class hinge: log(1 + sum_{c != y} exp(1 + o_c - o_y)), without a probability model."""

    name, link, cost = "smoothed-hinge", None, 1.0


class SquaredHinge(Loss):
    """Multi-class squared hinge: sum_{c != y} max(1 + o_c - o_y, 0)^2."""

    name, targets = "squared-hinge", "labels"

    def smoothness(self, m: int) -> float:
        return 2.0 * m

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        places = _label_places(O, y)
        Z = self._hinges(O, places)
        value = rowwise_inner(Z, Z)
        Z *= 2.0
        return value, _put(places, Z, -Z.sum(axis=1))

    def hessian(self, y: np.ndarray, O: np.ndarray) -> MarginHessian:  # noqa: E741
        return MarginHessian(np.where(self._hinges(O, _label_places(O, y)) > 0.0, 2.0, 0.0), y)

    def _hinges(self, O: np.ndarray, places: np.ndarray) -> np.ndarray:  # noqa: E741
        """Return max(1 + o_c - o_y, 0), and 0 for c = y."""
        Z = O - _taken(places, O)[:, None]
        Z += 1.0
        return _put(places, np.maximum(Z, 0.0), 0.0)

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        terms = G * (0.25 * G - 1.0)
        return terms.sum(axis=1) - _taken(_label_places(G, y), terms)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return math.inf

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        places = _label_places(G, y)
        Q = _put(places, np.maximum(G, 0.0), 0.0)
        return _put(places, Q, -Q.sum(axis=1))


class Squared(Loss):
    """Squared loss per output: (o - y)^2 / 2."""

    name, targets, code = "squared", "numbers", codes.SQUARED
    output_scale = 0.0

    def smoothness(self, m: int) -> float:
        return 1.0

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        R = O - y
        return 0.5 * rowwise_inner(R, R), R

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(np.ones_like(O))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return (G * (0.5 * G + y)).sum(axis=1)

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
        e = abs(margins)
        e *= -1.0
        np.exp(e, out=e)
        values = np.log1p(e)
        values -= np.minimum(margins, 0.0)
        G = np.maximum(e, margins <= 0.0)
        e += 1.0
        G /= e
        G *= y
        G *= -1.0
        return values.sum(axis=1), G

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(expit(O) * expit(-O))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        a = np.clip(-y * G, 0.0, 1.0)
        return (xlogy(a, a) + xlog1py(1.0 - a, -a)).sum(axis=1)

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        shares = np.average(y > 0.0, axis=0, weights=weights)
        return logit(np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE))

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return _reciprocal(abs(G))

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return -y * np.clip(-y * G, 0.0, 1.0)


class BinarySquaredHinge(Loss):
    """Binary squared hinge per output: max(1 - y o, 0)^2, y in {-1, 1}."""

    name, targets, code = "binary-squared-hinge", "signs", codes.SQUARED_HINGE

    def smoothness(self, m: int) -> float:
        return 2.0

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        Z = y * O
        Z -= 1.0
        Z = np.minimum(Z, 0.0)
        G = 2.0 * y
        G *= Z
        return rowwise_inner(Z, Z), G

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(np.where(y * O < 1.0, 2.0, 0.0))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        a = -y * G
        return (a * (0.25 * a - 1.0)).sum(axis=1)

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        return np.average(y, axis=0, weights=weights)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return math.inf

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return -y * np.maximum(-y * G, 0.0)


class Clipped(Loss):
    """Squared loss per output with clipped slopes: sup of g (o - y) - width g^2 / 2 over g from ``low`` to ``high``."""

    name, targets, code = "clipped", "numbers", codes.CLIPPED

    def __init__(self, width: float, low: float, high: float) -> None:
        self._width = width
        self._low = low
        self._high = high

    @property
    def code_parameters(self) -> tuple[float, float, float]:  # type: ignore[override]
        return self._width, self._low, self._high

    @property
    def output_scale(self) -> float:  # type: ignore[override]
        """The residual beyond which the loss is linear."""
        return self._width * max(-self._low, self._high)

    def smoothness(self, m: int) -> float:
        return 1.0 / self._width

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        R = O - y
        G = np.clip(R / self._width, self._low, self._high)
        return rowwise_inner(G, R) - 0.5 * self._width * rowwise_inner(G, G), G

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        slopes = (O - y) / self._width
        return Diagonal(np.where((slopes > self._low) & (slopes < self._high), 1.0 / self._width, 0.0))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return (G * (0.5 * self._width * G + y)).sum(axis=1)

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

        low = float(targets.min())
        high = float(targets.max())
        if not slope(low) < 0.0 < slope(high):
            return low
        return float(brentq(slope, low, high, xtol=TINY, rtol=4.0 * EPS))  # for targets of any size


class Huber(Clipped):
    """Huber loss per output: r^2 / 2 of residuals r = o - y up to delta, delta abs(r) - delta^2 / 2 of larger ones.

    Parameters
    ----------
    delta : float, default 1.0
        The threshold, the largest slope of an outlier, in the unit of y. Regressors with ``loss="huber"`` take 1.35
        robust standard deviations of y (its weighted interquartile range / 1.349), which keeps 95 % of the efficiency
        for normal errors.

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
        self.delta = check_positive(delta, "delta")
        super().__init__(1.0, -self.delta, self.delta)

    def scaled(self, size: float) -> Huber:
        # At 1.35 deviations the estimate of a normal mean loses 5 % of the efficiency of least squares.
        return Huber(1.35 * self.delta * size)


class Quantile(Clipped):
    """Smoothed pinball loss per output: outputs estimate a quantile of y, given x.

    Residuals r = o - y cost (1 - level) r above y and -level r below it, but r^2 / (2 width) within ``width`` times
    these slopes: the Moreau envelope of the pinball loss, at most width / 2 times the larger squared slope below it.

    Parameters
    ----------
    level : float, default 0.5
        The fraction of targets that lie below the outputs, between 0 and 1.
    width : float, default 0.1
        The smoothing, in the unit of y: smaller is closer to the quantile and takes longer. Regressors with
        ``loss="quantile"`` take 0.1 weighted robust standard deviations of y.

    Raises
    ------
    ValueError
        If the level is not strictly between 0 and 1, or the width or its reciprocal not positive and finite.

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
        self.level = _LEVEL(level, "level")
        self.width = _WIDTH(width, "width")
        super().__init__(self.width, -self.level, 1.0 - self.level)

    def scaled(self, size: float) -> Quantile:
        return Quantile(self.level, self.width * size)


class Poisson(Loss):
    """Half the Poisson deviance per output: exp(o) - y o, plus a constant that makes its minimum over o zero.

    Outputs are logarithms of means, and models predict the means. The curvature exp(o) has no bound, so there is no
    coordinate descent. Beyond o = 300 the exponential is continued by its tangent, so that no trial step overflows.

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
        near = (abs(d) < _NEAR_RELATIVE_DIFFERENCE) & (y > 0)
        nearby = np.clip(d, -_NEAR_RELATIVE_DIFFERENCE, _NEAR_RELATIVE_DIFFERENCE)
        relative = np.expm1(nearby)
        values = _either(near, y * np.maximum(relative - nearby, 0.0), means - y * (1.0 + d))
        values += means * np.maximum(O - codes.LARGEST_EXPONENT, 0.0)
        return values.sum(axis=1), _either(near, y * relative, means - y)

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(self._means(O))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        # t log t - t - (y log y - y) with the mean t = y + g; for t near y, as t log(t / y) + g (log y - 1).
        logarithms = _logarithms(y)
        t = np.maximum(G + y, 0.0)
        near = abs(G) < _NEAR_RELATIVE_DIFFERENCE * y
        r = np.where(near, G, 0.0) / np.where(near, y, 1.0)
        relative = np.where(near, t * np.log1p(r), xlogy(t, t) - t * logarithms)
        return (relative + G * (logarithms - 1.0)).sum(axis=1)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return _reciprocal(np.where(y > 0, -G, 0.0) / np.where(y > 0, y, 1.0))

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.maximum(G, -y)

    def constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        means = np.average(y, axis=0, weights=weights)
        return np.log(np.where(means > 0.0, means, _LEAST_SHARE))

    @staticmethod
    def _means(O: np.ndarray) -> np.ndarray:  # noqa: E741
        return np.exp(np.minimum(O, codes.LARGEST_EXPONENT))


def _logarithms(y: np.ndarray) -> np.ndarray:
    """Return log y, and 0 for y = 0."""
    return np.log(np.maximum(y, y == 0.0))


def _reciprocal(a: np.ndarray) -> float:
    """Return 1 / max(a), or infinity if no entry is positive."""
    top = float(a.max())
    return 1.0 / top if top > 0 else math.inf


# Losses are computed thousands of times, on few rows too: these are the fastest forms of NumPy.


def _label_places(O: np.ndarray, y: np.ndarray) -> np.ndarray:  # noqa: E741
    """Return the places (n,), in flat O', of the entries o_iy of the labels y (n,)."""
    return np.multiply(y, len(y), dtype=np.intp) + np.arange(len(y))


def _taken(places: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the entries a_iy (n,)."""
    return A.T.reshape(-1)[places]


def _put(places: np.ndarray, A: np.ndarray, values: np.ndarray | float) -> np.ndarray:
    """Return A (n, m), which may be changed, with values as the entries a_iy."""
    # One index is several times as fast as two. Where outputs are contiguous, the usual case, this is no copy.
    flat = A.T.reshape(-1)
    flat[places] = values
    return flat.reshape(A.shape[::-1]).T


def _either(mask: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A where a mask is true, and B elsewhere: ``np.where`` branches on every entry."""
    return A * mask + B * ~mask


def rowwise_inner(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return <a_i, b_i> (n,) of the rows of two arrays."""
    return np.einsum("ic,ic->i", A, B)


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        *(Logistic(), SmoothedHinge(), SquaredHinge(), BinaryLogistic(), BinarySquaredHinge()),
        *(Squared(), Huber(), Quantile(), Poisson()),
    )
}
_BUILT_IN = (Clipped, *map(type, LOSSES.values()))


class LossDual(NamedTuple):
    """Functions of targets and slopes of a built-in loss, which bounds trust.

    ``max_scale`` is the largest s with a finite conjugate at s * G, for a gradient G; ``dual_point`` is a point near
    any G with a finite conjugate, G itself if it is a gradient.
    """

    conjugate: Callable[[np.ndarray, np.ndarray], np.ndarray]
    max_scale: Callable[[np.ndarray, np.ndarray], float]
    dual_point: Callable[[np.ndarray, np.ndarray], np.ndarray]


def dual_of(loss: Any) -> LossDual | None:
    """Return the dual side of a built-in loss, and None for all others."""
    if type(loss) not in _BUILT_IN or any(map(partial(hasattr, type(loss)), vars(loss))):
        return None
    return LossDual(loss.conjugate, loss.max_scale, loss.dual_point)


def get_loss(loss: str | Loss, names: Iterable[str] | None = None) -> Loss:
    """Return the loss of one of ``names``, by default of all, or a loss with valid declarations as it is."""
    if not isinstance(loss, Loss):
        rule = choice(LOSSES if names is None else names)
        return LOSSES[replace(rule, takes=f"{rule.takes} or a Loss")(loss, "loss")]
    if type(loss) not in _BUILT_IN:
        _check_declarations(loss)
    return loss


def _check_declarations(loss: Loss) -> None:
    for kind in _BUILT_IN:
        if isinstance(loss, kind):
            raise TypeError(
                f"the loss {type(loss).__name__!r} must be a subclass of mopn.Loss, not of {kind.__name__}, whose "
                f"conjugate and code are of another loss; keep a {kind.__name__} as an attribute, and call its methods"
            )
    if (targets := getattr(loss, "targets", None)) not in _TARGETS:
        names = ", ".join(map(repr, _TARGETS))
        raise TypeError(f"the loss {loss.name!r} must declare targets, one of {names}, got {targets!r}")
    if loss.link is not None and loss.link not in LINKS:
        names = ", ".join(map(repr, LINKS))
        raise TypeError(f"the link of the loss {loss.name!r} must be one of {names} or None, got {loss.link!r}")
    if loss.code is not None:
        raise TypeError(f"the loss {loss.name!r} must leave out code, which built-in losses have, got {loss.code!r}")

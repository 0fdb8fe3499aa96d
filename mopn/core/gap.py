"""The gap: how far an objective is from the minimum at most, proven by weak duality, rounding included.

The problem is to minimise F(O) + R(V) + Q(W) over weights V and coefficients W that the outputs O = Phi V + X W'
depend on linearly, with the losses F, a regulariser R and a ridge Q. For every dual point D (n, m), Fenchel's
inequality for each of the three gives

    F(O) + R(V) + Q(W) >= -F*(D) - R*(-Phi' D) - Q*(-D' X),

and where Phi runs over all units, R* is known from the dual norm of D pulled back to them, which an oracle bounds. The
dual point is s G, the gradient G = dF/dO scaled: s = 1 is right at the minimum, where both sides are equal
(Rockafellar, Convex Analysis, section 31); elsewhere the best s in [0, ``max_scale``] is searched, in which the
right-hand side is concave. A penalty wants s <= strength / dual norm; a ball pays radius times s times the dual norm.

The conjugates are evaluated at the array s G itself, so no error of G matters. What does are the roundings of the two
sums, of which each may have larger terms than its sum: they are bounded by the sum of the moduli of all terms, sample
weights included.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from mopn.core.datafit import DataFit
from mopn.core.regularizers import Regularizer

__all__ = ["gap", "lower_bound"]

_EPS = float(np.finfo(float).eps)
# Scales of the dual point beyond this are not tried.
_MAX_SCALE = 4.0
# Scales closer than this, relative, are not told apart.
_NEARBY = 1e-3
# A term of a sum errs by so many eps: logarithms of rounded masses near 1 have 36.7 = -log(eps), the others fewer.
_OF_TERMS = 64


def gap(fit: DataFit, regularizer: Regularizer, fun: float, G: np.ndarray, dual: float, ridge: float = 0.0) -> float:
    """Return an upper bound of an objective minus the minimum; inf where there is no certificate.

    Parameters
    ----------
    fit : DataFit
        F.
    regularizer : Regularizer
        R.
    fun : float
        The objective as it was computed.
    G : ndarray of shape (n, m)
        The gradient of F there.
    dual : float
        A proven upper bound of the dual norm of G pulled back to the weights.
    ridge : float, default 0
        Upper bound of the conjugate of the ridge at G.

    Returns
    -------
    float
        At least 0, and it holds for ``fun`` and for the exact objective at the outputs that were given to F.
    """
    lower = lower_bound(fit, regularizer, G, dual, ridge)
    return max(fun - lower, 0.0) + _rounding(fit, abs(fun), fit.slope_size(G)) if math.isfinite(lower) else math.inf


def lower_bound(
    fit: DataFit, regularizer: Regularizer, G: np.ndarray, dual: float, ridge: float = 0.0, *, search: bool = True
) -> float:
    """Return a proven lower bound of the minimum: -F*(s G) - R*(s G) - s^2 ``ridge``, rounded down.

    Parameters
    ----------
    fit, regularizer, G, dual, ridge
        As for :func:`gap`; G may be any point whose multiples up to 1 are in the domain of F*.
    search : bool, default True
        Search s in one dimension; without it s is 1, or the largest admissible scale below 1.

    Returns
    -------
    float
        -inf where there is no certificate: without a regulariser (strength 0), or for a dual norm that is not finite.
    """
    if not regularizer.active or not math.isfinite(dual):
        return -math.inf
    limit = min(fit.max_scale(G), regularizer.max_scale(dual))

    def negative_dual(s: float) -> float:
        return fit.conjugate(G, s) + regularizer.conjugate(s * dual) + s * s * ridge

    s = _best_scale(negative_dual, min(1.0, limit), min(limit, _MAX_SCALE)) if search else min(1.0, limit)
    of_fit, size = fit.conjugate_and_size(G, s)
    of_rest = regularizer.conjugate(s * dual) + s * s * ridge
    return -(of_fit + of_rest) - _rounding(fit, size + of_rest, s * fit.slope_size(G))


def _best_scale(negative_dual: Callable[[float], float], s: float, upper: float) -> float:
    """Return about the minimiser in [0, upper] of a convex function: s itself if neither side is better nearby."""
    candidates = {s: negative_dual(s)}
    if negative_dual((1.0 - _NEARBY) * s) < candidates[s]:
        candidates.update([_least(negative_dual, 0.0, s)])
    elif upper > s and negative_dual(min((1.0 + _NEARBY) * s, upper)) < candidates[s]:
        candidates.update([_least(negative_dual, s, upper), (upper, negative_dual(upper))])
    return min(candidates, key=lambda scale: candidates[scale])


def _least(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    options = {"xatol": _NEARBY * (high - low), "maxiter": 20}
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options=options)
    return float(found.x), float(found.fun)


def _rounding(fit: DataFit, values: float, slopes: float) -> float:
    """Bound the rounding of F or F*, whose rows have the total modulus ``values`` and are made of terms of slopes.

    The terms of a row may be larger than its value, by twice (1 + |y| + |offset|) |g| at most: those of F* are squares
    or negative entropies of g less g (1 or y); outputs enter F in differences with 1 or y.
    """
    n, m = len(fit.y), fit.n_outputs
    return (n + _OF_TERMS) * m * _EPS * (values + 2.0 * slopes)

"""The maximum of ||q(h)||_p over the unit sphere, with its proof, for matrices without a problem to train."""

import math
from typing import Any, NamedTuple

import numpy as np

from mopn.solvers.interface import Effort
from mopn.solvers.sphere.dense_search import DenseSearch, Memory
from mopn.solvers.sphere.search import plan
from mopn.solvers.sphere.stack import DenseStack, symmetric_matrices
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.budgets import Budget
from mopn.solvers.tools.checks import check_fraction, number
from mopn.solvers.tools.decorators import quiet

# Relative tolerance of iterations towards a local maximum.
_LOCAL_TOL = 1e-6
# Fraction of the gap that a search must not leave; otherwise the next one would hardly help.
_MAX_REMAINING_GAP = 0.9
_EXPONENT = number("1, 2 or infinity", lambda p: p in (1, 2, math.inf), finite=False)
_SECONDS = number("a number of seconds > 0", lambda x: x > 0.0, finite=False)


class Maximum(NamedTuple):
    """A unit vector and a proof: ``value <= max ||q(h)||_p <= bound``, rounding errors included.

    Attributes
    ----------
    h : ndarray of shape (d,)
        The best unit vector found.
    value : float
        ``||q(h)||_p``.
    bound : float
        Upper bound over all unit vectors.
    """

    h: np.ndarray
    value: float
    bound: float


@quiet()
@limited_threads()
def maximise(matrices: Any, p: float = 2, tol: float = 1e-4, max_time: float = math.inf) -> Maximum:
    """Maximise ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p`` over unit vectors h.

    Parameters
    ----------
    matrices : array-like of shape (m, d, d)
        Symmetric matrices Gamma_c, of any scale.
    p : {1, 2, inf}, default 2
        2 maximises the quartic ``sum_c (h' Gamma_c h)^2`` (the result is its root), 1 ``sum_c |h' Gamma_c h|``, and
        inf the spectral norms.
    tol : float, default 1e-4
        Relative tolerance of the bound.
    max_time : float, default no limit
        Seconds. Without a limit the search ends when the bound comes no nearer to the value.

    Returns
    -------
    Maximum

    Raises
    ------
    TypeError, ValueError
        For matrices that are not finite, real and symmetric, another p, ``tol`` not in (0, 1), ``max_time`` not > 0.

    Examples
    --------
    >>> from mopn.solvers.sphere import maximise
    >>> found = maximise([[[1.0, 0.0], [0.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    >>> round(found.value, 6), 1.0 <= found.bound <= 1.0001 * found.value
    (1.0, True)
    """
    stack = DenseStack(symmetric_matrices(matrices, "matrices"))
    p = _EXPONENT(p, "p")
    tol = check_fraction(tol, "tol")
    time = Budget(seconds=_SECONDS(max_time, "max_time"))
    scaled, scale = stack.scaled()
    search_plan = plan(p, *stack.shape, "exact", formed=True)
    limits = Effort(min(tol, _LOCAL_TOL))
    memory: Memory = {}
    h = np.eye(stack.shape[1])[0]
    value = 0.0
    bound = math.inf
    last = math.inf
    while True:
        effort = Effort(tol, seconds=time.seconds)
        found = DenseSearch(scaled, p, search_plan, limits, effort, memory).maximise()
        best = int(np.argmax(found.values))
        if found.values[best] > value:
            h = found.H[best]
            value = float(found.values[best])
        bound = min(bound, found.bound)

        is_tight = bound <= value * (1.0 + tol)
        if is_tight or time.out_of_time or bound - value > _MAX_REMAINING_GAP * (last - value):
            return Maximum(h, value * scale, bound * scale)
        last = bound  # the next search, with new operations, goes on from these multipliers

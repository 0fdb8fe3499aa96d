"""A certificate for any network, however it was trained."""

from __future__ import annotations

from typing import Any

from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.point import unit_length
from mopn.network.problem import NetworkProblem
from mopn.solvers.interface import Measure
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import door


@door
def certify(
    problem: NetworkProblem,
    basis: Any = None,
    weights: Any = None,
    oracle: OracleName | BasisOracle = "auto",
    *,
    linear: Any = None,
    n_threads: int | None = None,
) -> Measure:
    """Evaluate a network on a convex problem: its objective, and an upper bound of its distance to the minimum.

    Parameters
    ----------
    problem : NetworkProblem
    basis : array-like of shape (k, d)
        Units of any length; K(c h, x) = c^2 K(h, x), so lengths go into the weights.
    weights : array-like of shape (k, m)
    oracle : str or oracle, default "auto"
        The method that bounds the dual norm; ``"exact"`` gives the tightest bound, at the highest cost. Beyond 3,000
        features ``"lanczos"`` gives one that holds with a probability of at least 1 - 1e-9 over new random starts
        (``proof`` says so), whatever was proven before.
    linear : array-like of shape (m, 1 + d), optional
        Coefficients of the linear term, constants first, if the problem has one; default zero.
    n_threads : int, optional
        Number of threads that compute blocks of rows, as in :func:`mopn.minimize`.

    Returns
    -------
    Measure
        ``fun``; ``gap``, a proven upper bound of ``fun`` minus the minimum over all networks; and ``restricted_gap``,
        the same for the minimum over the weights alone, with the units as they are.

    Raises
    ------
    TypeError
        If the problem is not a ``NetworkProblem``.
    ValueError
        For shapes that do not fit the problem, NaN or infinity, weights outside the problem's ball, or a strength of 0.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=1.0)
    >>> zero = mopn.certify(problem, np.zeros((0, 3)), np.zeros((0, 2)))
    >>> best = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full"), tol=1e-6)
    >>> zero.fun - zero.gap <= best.fun <= zero.fun
    True
    """
    if not isinstance(problem, NetworkProblem):
        fitted = "; a fitted estimator has its gap already, as relative_gap_" if hasattr(problem, "fit") else ""
        raise TypeError(f"problem must be a NetworkProblem, got {shown(problem)}{fitted}")
    if basis is None or weights is None:
        raise TypeError("basis and weights must be given: the network to certify, such as result.basis, result.weights")
    if not problem.regularized:
        raise ValueError("with strength=0 no certificate exists; give a positive strength, a ridge or a radius")
    with limited_threads(n_threads):
        basis, weights = unit_length(basis, weights, problem.rows.shape[1], problem.losses.n_outputs)
        problem.regularizer.check_feasible(weights)
        return problem.measure(problem.start((basis, weights, linear)), oracle)

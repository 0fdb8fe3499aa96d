"""Certificates for any network: of a problem, or for two matrices how far it is from the best one of its own norm."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mopn.core.gap import lower_bound
from mopn.core.kernels import KernelName
from mopn.core.norms import NormName, get_norm
from mopn.core.regularizers import Ball
from mopn.data.validation import check_start_size, finite_numbers
from mopn.losses.losses import Loss, LossName
from mopn.network.model_starts import NetworkParts, parts_of_start
from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.output_gradient import OutputGradient
from mopn.network.point import Network, unit_length
from mopn.network.problem import NetworkProblem
from mopn.network.segment import OutputRounding
from mopn.solvers.conditional_gradient.steps import line_search
from mopn.solvers.interface import Measure
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.result import relative
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.budgets import FailureBudget
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import quiet
from mopn.solvers.tools.display import Displayed

# Steps to better dual points after a network's own gradient, at most.
_DUAL_STEPS = 4


@dataclass(frozen=True, repr=False)
class NetworkCertificate(Displayed):
    """The certificate of :func:`certify_network`; printed, a line for each number.

    Attributes
    ----------
    objective : float
        The sum of the losses, with sample weights; no penalty is in it.
    lower : float
        Proven lower bound of the objective of all networks, of any number of units, whose norm and linear term are at
        most as large as this one's.
    gap : float
        Upper bound of the objective minus the objective of the best such network, rounding errors included.
    relative_gap : float
        The gap relative to the objective; 0 for a perfect fit, whose objective and gap are rounding errors.
    restricted_gap : float
        The same for the best such network with these units. If it is about as large as ``gap``, the weights are not
        yet trained; if it is much smaller, only other or more units help.
    norm : float
        Omega of the weights, for units of length 1.
    strength : float
        The dual norm of the loss gradient, as found: the largest slope of the objective along a unit. With a penalty of
        this strength no unit would be worth adding; the best network of its norm solves that problem.
    unit : ndarray of shape (d,) or (dummies + d,)
        The unit of that slope, of length 1: the best one to add. It has an entry for each column of H.
    unit_weights : ndarray of shape (m,)
        Weights to add it with, after a line search.
    kept : float
        Factor for the other weights, with which the norm does not grow.
    gain : float
        The decrease of the objective by both.
    proof : str
        The proof of ``lower``, as for :func:`certify`: "deterministic", or "probability 1 - 1e-09".
    rounding : float
        Bound of the rounding error of the objective, which ``gap`` includes.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> print(mopn.certify_network([[1, 1], [1, 0]], [[0.2], [-0.1]], X=X, y=y, loss="squared"))
    objective        3.60873
    best possible    at least 0.055116 with this norm
    gap              3.55 (98.5 %)
    with these units 1.46 (40.5 %)
    norm             0.5
    strength         15.3
    unit to add      lowers the objective by 1.59
    proof            deterministic
    """

    objective: float
    lower: float
    gap: float
    restricted_gap: float
    norm: float
    strength: float
    unit: np.ndarray
    unit_weights: np.ndarray
    kept: float
    gain: float
    proof: str
    rounding: float = 0.0

    @property
    def relative_gap(self) -> float:
        """The gap relative to the objective."""
        return self._relative(self.gap)

    def _relative(self, gap: float) -> float:
        return float(relative(gap, self.objective, self.rounding))

    def _entries(self) -> dict[str, str]:
        return {
            "objective": f"{self.objective:.6g}",
            "best possible": f"at least {self.lower + 0.0:.6g} with this norm",
            "gap": self._gap_in_words(self.gap),
            "with these units": self._gap_in_words(self.restricted_gap),
            "norm": f"{self.norm:.4g}",
            "strength": f"{self.strength:.4g}",
            "unit to add": f"lowers the objective by {self.gain:.3g}",
            "proof": self.proof,
        }

    def _gap_in_words(self, gap: float) -> str:
        return f"{gap:.3g} ({100.0 * self._relative(gap):.3g} %)"

    def __str__(self) -> str:
        entries = self._entries()
        width = max(map(len, entries)) + 1
        return "\n".join(f"{name:{width}}{text}" for name, text in entries.items())


@quiet()
def certify_network(
    H: Any,
    V: Any,
    linear: tuple[Any, Any] | None = None,
    *,
    X: Any,
    y: Any = None,
    loss: LossName | Loss = "logistic",
    kernel: KernelName = "homogeneous",
    norm: NormName = "l1/l2",
    sample_weight: Any = None,
    offset: Any = None,
    oracle: OracleName | BasisOracle = "auto",
    n_threads: int | None = None,
) -> NetworkCertificate:
    """Bound how far a network, trained by PyTorch or anything else, is from the best one of its norm.

    The network computes sum_r K(h_r, x) v_r, plus W x + b with a linear term. It is compared with all networks, of any
    number of units, whose norm and Euclidean lengths of W and b are at most its own: no strength need be known.

    Parameters
    ----------
    H : array-like of shape (k, d) or (k, dummies + d)
        Units of any length; K(c h, x) = c^2 K(h, x), so lengths go into the weights. With one more column than X has
        features (two more for ``"anova"``), the first is of biases: entries for a feature that is always 1.
    V : array-like of shape (k, m)
        Weights, a column for each output: the transpose of ``torch.nn.Linear(k, m).weight``. For multi-class
        losses the columns belong to the sorted labels of y.
    linear : pair (W, b), optional
        W of shape (m, d) and b of shape (m,), as a ``torch.nn.Linear(d, m)`` holds them; either may be None.
    X : array-like or sparse matrix of shape (n, d), or RowBlocks
        The training data, as the network sees them.
    y : array-like
        Labels (n,), or targets (n,) or (n, m), as for :class:`NetworkProblem`, as are ``loss``, ``kernel``, ``norm``,
        ``sample_weight`` and ``offset``.
    oracle : str or oracle, default "auto"
    n_threads : int, optional
        Both as for :func:`certify`.

    Returns
    -------
    NetworkCertificate
        Objective, bound, gap, norm, strength, and the best unit to add.

    Raises
    ------
    TypeError
        For arguments that are not numbers.
    ValueError
        For shapes that do not fit X, y or each other, NaN or infinity, a network whose norm is 0, or negative weights
        where the norm allows none.

    Notes
    -----
    Arrays of PyTorch and CuPy need no ``detach``; they are taken to the host. Losses are sums over the samples, not
    means. ``"squared"`` is half of the squared error, and ``"binary-logistic"`` takes -1 and +1.

    A free linear term allows no lower bound unless its slopes are exactly zero. So W and b are bounded by their own
    lengths, as the units are by their norm: docs/mathematics.md, 5.6.

    Examples
    --------
    Two units that fit a product; if one is missing, it is the unit to add:

    >>> import numpy as np, mopn
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    >>> H, y = np.array([[2.0, 2.0], [2.0, -2.0]]), X[:, 0] * X[:, 1]
    >>> mopn.certify_network(H, [[1 / 16], [-1 / 16]], X=X, y=y, loss="squared").gap < 1e-12
    True
    >>> one = mopn.certify_network(H[:1], [[1 / 16]], X=X, y=y, loss="squared")
    >>> print((one.unit / one.unit[0]).round(1))
    [ 1.  -1.1]
    """
    H = finite_numbers(H, "H")
    V = finite_numbers(V, "V")
    if not H.ndim == V.ndim == 2 or len(H) != len(V):
        raise ValueError(
            f"H must be (k, d) and V (k, m), with a row for each unit, got shapes {H.shape} and {V.shape}; "
            "a torch.nn.Linear(k, m) holds the transpose of V"
        )
    check_start_size(H, "H")
    check_start_size(V, "V")
    data = {"y": y, "sample_weight": sample_weight, "offset": offset}
    options = data | {"loss": loss, "kernel": kernel, "norm": norm}
    with limited_threads(n_threads):
        basis, weights = unit_length(H, V, H.shape[1], V.shape[1])
        omega_norm = get_norm(norm)
        omega_norm.check_feasible(weights)
        omega = omega_norm.value(weights)
        if not omega > 0.0:
            raise ValueError("H and V have norm 0: no unit has a weight, and there is no other network of that norm")
        radius = _rounded_up(omega, H.size + V.size)  # at least the exact norm
        alpha = None if linear is None else 1.0
        make_problem = partial(NetworkProblem, X, radius=radius, alpha=alpha, **options)
        problem = _problem_with_columns(make_problem, H.shape[1])
        _check_outputs(V.shape[1], problem)
        coefficients = None if linear is None else _coefficients(linear, problem)
        network = problem.network(basis, weights, coefficients)
        return _certificate(problem, network, omega, radius, oracle)


def _rounded_up(norm: float, n_terms: int) -> float:
    """Return an upper bound of the exact value of a computed norm, or product of two norms, of ``n_terms`` numbers."""
    return norm * (1.0 + 2 * (n_terms + 8) * EPS)


def _problem_with_columns(make: Any, columns: int) -> NetworkProblem:
    """Return the problem whose units have ``columns`` entries: for the features alone, or for biases and features."""
    for augment in (False, True):
        problem: NetworkProblem = make(augment=augment)
        if problem.rows.shape[1] == columns:
            return problem
    d = problem.rows.n_features
    most = problem.rows.shape[1]
    raise ValueError(f"H must have {d} columns, one for each feature of X, or {most} with biases first, got {columns}")


def _check_outputs(columns: int, problem: NetworkProblem) -> None:
    m, classes = problem.losses.n_outputs, problem.classes
    if columns != m:
        outputs = f"{m} targets" if classes is None else f"the {m} labels {shown(classes.tolist())}, with a column each"
        raise ValueError(
            f"V must be (k, m); it has {columns} columns, and y {outputs}; a torch.nn.Linear(k, m) holds its transpose"
        )


def _coefficients(linear: Any, problem: NetworkProblem) -> np.ndarray:
    """Return [b, W] (m, 1 + d) of a pair (W, b), with zeros in place of None."""
    if not (isinstance(linear, tuple | list) and len(linear) == 2):
        raise TypeError(f"linear must be a pair (W, b), where either may be None, got {shown(linear)}")
    m, d = problem.losses.n_outputs, problem.rows.n_features
    parts = []
    for part, name, shape in zip(linear, ("linear: W", "linear: b"), ((m, d), (m,)), strict=True):
        array = np.zeros(shape) if part is None else finite_numbers(part, name)
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
        check_start_size(array, name)
        parts.append(array)
    return np.column_stack(parts[::-1])


def _largest_gain(W: np.ndarray, slopes: np.ndarray) -> float:
    """Bound the gain along slopes of constants, and of other coefficients, that are no longer than in W."""
    gains = []
    for part, slope in zip(np.split(W, [1], axis=1), np.split(slopes, [1], axis=1), strict=True):
        gains.append(_rounded_up(float(np.linalg.norm(part) * np.linalg.norm(slope)), part.size))
    return sum(gains)


def _certificate(
    problem: NetworkProblem, network: Network, omega: float, radius: float, oracle: OracleName | BasisOracle
) -> NetworkCertificate:
    """Return the certificate of a network in the ball of a problem; its norm is ``omega``, rounded up ``radius``."""
    objective, G = problem.losses.value_gradient(network.outputs)
    rounding = OutputRounding(problem.rows, problem.linear_term)
    at = OutputGradient(objective, G, problem.losses, network, rounding)
    failure_budget = FailureBudget()
    atoms = problem.lmo(at, problem.oracle(oracle, failure_budget))
    of_linear = _largest_gain(network.linear, problem.linear_term.slopes(G)) if problem.linear_term.active else 0.0

    def lower(dual: float) -> float:
        return lower_bound(at.dual, Ball(problem.norm, 1.0), radius * dual + of_linear)

    restricted_lower = lower(problem.restricted_dual(network, at))
    measure = Measure(
        objective, lower(atoms.bound), at.rounding, restricted_lower, failure_budget.failure, failure_budget.seed
    )
    segment = problem.segment(network, at, atoms.basis[:1], whole=False)
    gamma = line_search(segment)
    return NetworkCertificate(
        objective=objective,
        lower=measure.lower,
        gap=measure.gap,
        restricted_gap=measure.restricted_gap,
        norm=omega,
        strength=float(atoms.values[0]),
        unit=atoms.basis[0],
        unit_weights=segment.point(gamma).weights[-1],
        kept=1.0 - gamma,
        gain=segment.value(0.0) - segment.value(gamma),
        proof=measure.proof,
        rounding=at.rounding,
    )


@quiet()
def certify(
    problem: Any,
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
    problem : NetworkProblem or ImplicitProblem
        Of an ``ImplicitProblem`` the two arrays are P and Q; a result may take their place.
    basis : array-like of shape (k, d), Model, fitted estimator or Result
        Units of any length; K(c h, x) = c^2 K(h, x), so lengths go into the weights. Arrays are in the coordinates of
        the problem, like results: with ``center`` or ``scale`` units for X as given are other numbers. So give a
        model or an estimator itself, without ``weights``: it is converted, by ``problem.start_of``.
    weights : array-like of shape (k, m), optional
        With arrays only.
    oracle : str or oracle, default "auto"
        The method that bounds the dual norm; ``"exact"`` gives the tightest bound, at the highest cost. Beyond 3,000
        features ``"lanczos"`` gives one that holds with a probability of at least 1 - 1e-9 over new random starts
        (``proof`` says so), whatever was proven before.
    linear : array-like of shape (m, 1 + d), optional
        With arrays only: coefficients of the linear term, constants first, if the problem has one; default zero.
    n_threads : int, optional
        Number of threads that compute blocks of rows, as in :func:`mopn.minimize`.

    Returns
    -------
    Measure
        ``fun``; ``gap``, a proven upper bound of ``fun`` minus the minimum over all networks; and ``restricted_gap``,
        the same for the minimum over the weights alone, with the units as they are. Under "l1" the gap is the smallest
        of the network's own gradient and of better dual points near it (docs/mathematics.md, 5.8).

    Raises
    ------
    TypeError
        If the problem is of another kind, or there is no network.
    ValueError
        For shapes that do not fit the problem, NaN or infinity, weights outside the problem's ball, a strength of 0, or
        a model that is no network of the problem.

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
    if "alternating" in getattr(problem, "oracles", ()):
        with limited_threads(n_threads):
            return problem.measure(problem.start(basis if weights is None else (basis, weights)))
    if not isinstance(problem, NetworkProblem):
        fitted = "; a fitted estimator has its gap already, as relative_gap_" if hasattr(problem, "fit") else ""
        raise TypeError(f"problem must be a NetworkProblem, got {shown(problem)}{fitted}")
    network = _given_network(problem, basis, weights, linear)
    if not problem.regularized:
        raise ValueError("with strength=0 no certificate exists; give a positive strength, a ridge or a radius")
    with limited_threads(n_threads):
        d, m = problem.n_inputs, problem.losses.n_outputs
        basis, weights = unit_length(network.basis, network.weights, d, m, dummies=problem.dummies, argument="")
        problem.regularizer.check_feasible(weights)
        return problem.measure_of((basis, weights, network.linear), oracle, _DUAL_STEPS)


def _given_network(problem: NetworkProblem, basis: Any, weights: Any, linear: Any) -> NetworkParts:
    """Return the network of arrays, or of a model, an estimator or a result in place of ``basis``."""
    if basis is not None and weights is not None:
        return NetworkParts(basis, weights, linear)
    if basis is None or weights is not None or linear is not None or isinstance(basis, np.ndarray | list | tuple):
        raise TypeError(
            "basis and weights must be given, such as result.basis and result.weights, or a Model, a fitted estimator "
            "or a Result alone"
        )
    return parts_of_start(problem, basis)

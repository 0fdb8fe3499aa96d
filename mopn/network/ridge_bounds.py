"""Conjugates for lower bounds of the minimum with a ridge: docs/mathematics.md, 5.7.

With the functions W of a network in the space of the kernel, R(W) = strength * Omega(W) + ridge / 2 * ||W||^2. Its
conjugate R*(Z) is the least ||Z - Y||^2 / (2 ridge) over all Y of a dual norm of at most ``strength``, so any such Y
bounds it from above, at the scales of Z = -Gamma.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from mopn.core.gap import Conjugate, dual_error
from mopn.core.norms import Norm
from mopn.core.regularizers import NormRegularizer
from mopn.network.gradient_forms import SMALLEST, GradientForms
from mopn.network.point import Network
from mopn.network.ridge import Ridge
from mopn.solvers.numerics.precision import EPS, proven_upper
from mopn.solvers.sphere import power_of_two
from mopn.solvers.sphere.bounds import eigen_error
from mopn.solvers.sphere.search import DENSE_LIMIT
from mopn.solvers.tools.decorators import cached_property


@dataclass(frozen=True)
class ShiftedConjugate:
    """By Y = -s S with the best s up to ``largest``, for S = Gamma + ridge W and the functions W of a network.

    All numbers are in the unit of the objective. ``of_slopes`` bounds ||S||^2 / (2 ridge) from above. A
    projection of S that changes no inner product with W may take its place; inf leaves s = t alone. ``crossed`` is
    <Gamma, W>, and ``of_network`` is ridge ||W||^2 / 2, with errors.
    """

    largest: float
    of_slopes: float
    crossed: float
    crossed_error: float
    of_network: float
    network_error: float

    active = True

    def conjugate(self, dual: float) -> float:
        # Z - Y = t ridge W - u S at t = dual and u = t - s, with <S, W> = crossed + 2 of_network.
        t = dual
        # The best u without a limit of s.
        best = 0.0
        if 0.0 < self.of_slopes < math.inf:
            best = t * (0.5 * self.crossed + self.of_network) / self.of_slopes
        s = min(max(t - best, 0.0), self.largest)
        u = t - s
        if u == 0.0:
            return t * t * (1.0 + 8.0 * EPS) * (self.of_network + self.network_error)
        of_network = t * (2.0 * s - t)
        parts = np.array([u * u * self.of_slopes, -u * t * self.crossed, of_network * self.of_network])
        errors = t * abs(u) * self.crossed_error + abs(of_network) * self.network_error
        return max(float(parts.sum()) + errors + 8.0 * EPS * float(np.abs(parts).sum()), 0.0)

    def max_scale(self, dual: float) -> float:
        return math.inf if self.of_slopes < math.inf else self.largest


@dataclass(frozen=True)
class EigenvalueConjugate:
    """Exactly, for l1 and ``homogeneous``: Y has the eigenvalues of Z, of moduli ``sizes``, clipped at the strength."""

    ridge: float
    strength: float
    sizes: np.ndarray

    active = True

    def conjugate(self, dual: float) -> float:
        rest = np.maximum((1.0 + 2.0 * EPS) * dual * self.sizes - (1.0 - 2.0 * EPS) * self.strength, 0.0)
        return half_square(_length(rest), self.ridge)

    def max_scale(self, dual: float) -> float:
        return math.inf


def half_square(length: float, ridge: float) -> float:
    """Return length^2 / (2 ridge), rounded up; the square alone might underflow."""
    root = length / math.sqrt(2.0 * ridge)
    return max(root * root * (1.0 + 8.0 * EPS), SMALLEST) if length > 0.0 else 0.0


def _length(array: np.ndarray) -> float:
    """Return the length of all entries, rounded up; their squares might underflow."""
    largest = float(np.abs(array).max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return largest
    return largest * float(np.linalg.norm(array / largest)) * (1.0 + (array.size + 8) * EPS)


def projected_length(kernel_matrix: np.ndarray, error: float, values: np.ndarray, values_error: float) -> float:
    """Bound the length of the projection of m functions onto the span of k units from above.

    Parameters
    ----------
    kernel_matrix : ndarray of shape (k, k)
        The inner products K(h_r, h_s).
    error : float
        Bound of the errors of their matrix, in the spectral norm.
    values : ndarray of shape (k, m)
        The inner products q of the functions and the units.
    values_error : float
        Bound of their errors, in the Frobenius norm.

    Returns
    -------
    float
        The root of the sum of all q_c' K^-1 q_c; inf where units are so nearly parallel that K may be singular.
    """
    k = len(kernel_matrix)
    if not k:  # SciPy 1.13 solves no systems of order 0
        return 0.0
    # The factor and the solutions are exact for a matrix that is nearer than this (Higham, 2002, 8.1 and 10.1), so that
    # the matrix shifted down is below K, and its inverse above.
    shift = error + (4 * k + 24) * EPS * float(np.trace(kernel_matrix))
    try:
        factor = np.linalg.cholesky(0.5 * (kernel_matrix + kernel_matrix.T) - shift * np.eye(k))
    except np.linalg.LinAlgError:
        return math.inf
    solved = solve_triangular(factor, np.hstack([values, np.eye(k)]), lower=True, check_finite=False)
    own, inverse = np.split(solved, [values.shape[1]], axis=1)
    return float(proven_upper(_length(own) + values_error * _length(inverse)))


def is_exact(ridge: Ridge, norm: Norm, shape: tuple[int, int]) -> bool:
    """Whether eigenvalues tell the conjugate exactly, for m outputs and d features: of l1 or one output."""
    m, d = shape
    return d <= DENSE_LIMIT and not ridge.kernel.distinct and (math.isinf(norm.exponent) or m == 1)


class RidgeBounds:
    """The conjugates of penalty and ridge at multiples of a loss gradient.

    ``forms`` are the matrices of losses and ridge, ``sizes`` (m,) the sums of |G_ic| ||x_i||^2.
    """

    def __init__(self, ridge: Ridge, network: Network, forms: GradientForms, sizes: np.ndarray) -> None:
        self.ridge, self.network, self.forms, self.sizes = ridge, network, forms, sizes

    @cached_property
    def of_network(self) -> tuple[float, float]:
        """The ridge of the network, and a bound of its error; their sum bounds its conjugate at its own slope."""
        H, V = self.network.basis, self.network.weights
        return self.ridge.value(H, V), self.ridge.error(H, V)

    def conjugates(self, regularizer: NormRegularizer, bound: float) -> list[Conjugate]:
        """Return conjugates that bound R* at multiples of -Gamma, given a bound of the dual norm over all units."""
        if not self._has_matrices and regularizer.active:
            return []
        if is_exact(self.ridge, regularizer.norm, self.forms.shape):
            values, errors = self._eigenvalues
            sizes = np.maximum(errors - values, 0.0) if regularizer.norm.nonnegative else np.abs(values) + errors
            return [EigenvalueConjugate(self.ridge.amount, regularizer.weight_cost(lambda: 0.0), sizes.ravel())]
        length = self._length if self._has_matrices else self._length_by(regularizer, bound)
        return [self._shifted(regularizer, bound, length)] if math.isfinite(length) else []

    def of_own_units(
        self, regularizer: NormRegularizer, bound: float, slopes: np.ndarray, errors: np.ndarray
    ) -> Conjugate:
        """Return a conjugate for weights of the network's own units alone.

        ``slopes`` (k, m) are the values of S = Gamma + ridge W at these units, with errors (m,), and ``bound`` is their
        dual norm. Only the projection of S on the units counts. Its length does not follow from ``bound``: nearly
        parallel units may have small slopes, and combinations of length 1 large ones.
        """
        H = self.network.basis
        # K(h, h') of any two units errs by (3 d + 8) eps of their squared lengths.
        matrix_error = len(H) * (3 * H.shape[1] + 8) * EPS * float(np.max(np.sum(H * H, axis=1), initial=0.0)) ** 2
        slopes_error = math.sqrt(len(H)) * _length(errors)
        length = projected_length(self.ridge.features(H, H), matrix_error, slopes, slopes_error)
        if self._has_matrices:
            length = min(length, self._length)
        return self._shifted(regularizer, bound, length)

    def _shifted(self, regularizer: NormRegularizer, bound: float, length: float) -> ShiftedConjugate:
        """Return the conjugate for a bound of the dual norm, and one of the length of S."""
        largest = regularizer.max_scale(bound) * (1.0 - 2.0 * EPS) if math.isfinite(bound) else 0.0
        of_slopes = half_square(length, self.ridge.amount)
        crossed, crossed_error = self._crossed
        value, value_error = self.of_network
        return ShiftedConjugate(min(largest, 1.0 / EPS), of_slopes, crossed, crossed_error, value, value_error)

    @property
    def _has_matrices(self) -> bool:
        return self.forms.shape[1] <= DENSE_LIMIT

    @cached_property
    def _eigenvalues(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues (m, d) of all Gamma_c, and bounds (m, 1) of their errors."""
        stack = self.forms.of_losses.dense
        scale = power_of_two(float(np.abs(stack.matrices).max(initial=0.0)))
        matrices = stack.matrices / scale
        errors = scale * np.array([eigen_error(matrix) for matrix in matrices]) + stack.error
        return scale * np.linalg.eigvalsh(matrices), errors[:, None]

    @cached_property
    def _crossed(self) -> tuple[float, float]:
        """<Gamma, W> = <G, the outputs of the units>, and a bound of its error."""
        network, (n, d), m = self.network, self.forms.rows.shape, len(self.sizes)
        if not network.n_units:
            return 0.0, 0.0
        crossed = self.forms.rows.inner(self.forms.G, network.unit_outputs)
        units = network.n_units + 3 * d + n + 16 + dual_error(m)
        return crossed, units * EPS * float(self.sizes @ np.abs(network.weights).sum(axis=0))

    @cached_property
    def _length(self) -> float:
        """Bound of the length of S, by its matrices."""
        stack = self.forms.dense
        lengths = np.array([_length(matrix) for matrix in stack.matrices]) + stack.error
        return _length(lengths) / math.sqrt(self.ridge.kernel.of_square)

    def _length_by(self, regularizer: NormRegularizer, bound: float) -> float:
        """Bound the length of S by its dual norm over all units, which bounds all eigenvalues."""
        if regularizer.norm.nonnegative:
            return math.inf
        m, d = self.forms.shape
        return math.sqrt(m * d / self.ridge.kernel.of_square) * bound * (1.0 + 8.0 * EPS)

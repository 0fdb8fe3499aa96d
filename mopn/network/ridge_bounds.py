"""Conjugates for lower bounds of the minimum with a ridge: docs/mathematics.md, 5.7.

With the functions W of a network in the space of the kernel, R(W) = strength * Omega(W) + ridge / 2 * ||W||^2. Its
conjugate R*(Z) is the least ||Z - Y||^2 / (2 ridge) over all Y of a dual norm of at most ``strength``, so any such Y
bounds it from above, at the scales of Z = -Gamma.
"""

import math
from dataclasses import dataclass

import numpy as np

from mopn.core.gap import Conjugate, dual_error
from mopn.core.norms import Norm
from mopn.core.regularizers import NormRegularizer
from mopn.network.gradient_forms import GradientForms
from mopn.network.point import Network
from mopn.network.ridge import Ridge
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.bounds import eigen_error
from mopn.solvers.sphere.search import DENSE_LIMIT
from mopn.solvers.tools.decorators import cached_property


@dataclass(frozen=True)
class ShiftedConjugate:
    """By Y = -s (Gamma + ridge W) with the best s up to ``largest``, for the functions W of a network.

    ``of_gradient`` and ``of_network`` bound ||Gamma||^2 and ||ridge W||^2 from above, ``crossed`` is <Gamma, ridge W>
    with the error ``crossed_error``.
    """

    ridge: float
    largest: float
    of_gradient: float
    of_network: float
    crossed: float
    crossed_error: float

    active = True

    def conjugate(self, dual: float) -> float:
        # Z - Y = s ridge W - (t - s) Gamma at t = dual; the best s without a limit projects Z.
        t, a, b, c = dual, self.of_gradient, self.of_network, self.crossed
        length = a + 2.0 * c + b
        s = min(max(t * (a + c) / length, 0.0), self.largest) if length > 0 else 0.0
        parts = np.array([(t - s) ** 2 * a, s * s * b, -2.0 * s * (t - s) * c])
        errors = 2.0 * s * abs(t - s) * self.crossed_error + 8.0 * EPS * float(np.abs(parts).sum())
        return max(float(parts.sum()) + errors, 0.0) / (2.0 * self.ridge)

    def max_scale(self, dual: float) -> float:
        return math.inf


@dataclass(frozen=True)
class EigenvalueConjugate:
    """Exactly, for l1 and ``homogeneous``: Y has the eigenvalues of Z, of moduli ``sizes``, clipped at the strength."""

    ridge: float
    strength: float
    sizes: np.ndarray

    active = True

    def conjugate(self, dual: float) -> float:
        rest = np.maximum((1.0 + 2.0 * EPS) * dual * self.sizes - (1.0 - 2.0 * EPS) * self.strength, 0.0)
        return float(rest @ rest) * (1.0 + (self.sizes.size + 8) * EPS) / (2.0 * self.ridge)

    def max_scale(self, dual: float) -> float:
        return math.inf


def is_exact(ridge: Ridge, norm: Norm, shape: tuple[int, int]) -> bool:
    """Whether eigenvalues tell the conjugate exactly, for m outputs and d features: of l1 or one output."""
    m, d = shape
    return d <= DENSE_LIMIT and not ridge.kernel.distinct and (math.isinf(norm.exponent) or m == 1)


class RidgeBounds:
    """The conjugates of penalty and ridge at multiples of a loss gradient.

    ``forms`` are the matrices of the losses alone, ``sizes`` (m,) the sums of |G_ic| ||x_i||^2.
    """

    def __init__(self, ridge: Ridge, network: Network, forms: GradientForms, sizes: np.ndarray) -> None:
        self.ridge, self.network, self.forms, self.sizes = ridge, network, forms, sizes

    @cached_property
    def of_network(self) -> float:
        """Upper bound of the ridge, which is its conjugate at its own slope."""
        H, V = self.network.basis, self.network.weights
        return self.ridge.value(H, V) + self.ridge.error(H, V)

    def conjugates(self, regularizer: NormRegularizer, bound: float) -> list[Conjugate]:
        """Return conjugates that bound R* at multiples of -Gamma, given a bound of the dual norm."""
        if self._stack is None and regularizer.active:
            return []
        if is_exact(self.ridge, regularizer.norm, self.forms.shape):
            values, errors = self._eigenvalues
            sizes = np.maximum(errors - values, 0.0) if regularizer.norm.nonnegative else np.abs(values) + errors
            return [EigenvalueConjugate(self.ridge.amount, regularizer.weight_cost(lambda: 0.0), sizes.ravel())]
        largest = regularizer.max_scale(bound) * (1.0 - 2.0 * EPS) if math.isfinite(bound) else 0.0
        crossed, error = self._crossed
        one_sided = regularizer.norm.nonnegative
        of_gradient = self._squared_length(math.inf if one_sided else bound, crossed, error)
        if not math.isfinite(of_gradient):
            return []
        amount, of_network = self.ridge.amount, 2.0 * self.ridge.amount * self.of_network
        return [ShiftedConjugate(amount, min(largest, 1.0 / EPS), of_gradient, of_network, crossed, error)]

    @cached_property
    def _stack(self) -> DenseStack | None:
        return self.forms.dense() if self.forms.shape[1] <= DENSE_LIMIT else None

    @cached_property
    def _eigenvalues(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues (m, d) of all Gamma_c, and bounds (m, 1) of their errors."""
        assert self._stack is not None
        errors = np.array([eigen_error(matrix) for matrix in self._stack.matrices]) + self._stack.error
        return np.linalg.eigvalsh(self._stack.matrices), errors[:, None]

    @cached_property
    def _crossed(self) -> tuple[float, float]:
        """<Gamma, ridge W> = ridge <G, the outputs of the units>, and a bound of its error."""
        network, (n, d), m = self.network, self.forms.rows.shape, len(self.sizes)
        if not network.n_units:
            return 0.0, 0.0
        crossed = self.forms.rows.inner(self.forms.G, network.unit_outputs)
        units = network.n_units + 3 * d + n + 16 + dual_error(m)
        error = units * EPS * float(self.sizes @ np.abs(network.weights).sum(axis=0))
        return self.ridge.amount * crossed, self.ridge.amount * error

    def _squared_length(self, bound: float, crossed: float, error: float) -> float:
        """Bound ||Gamma||^2 by its matrices or, without them, by the dual norm of Gamma + ridge W."""
        (m, d), share = self.forms.shape, self.ridge.kernel.of_square
        if self._stack is not None:
            lengths = np.linalg.norm(self._stack.matrices, axis=(1, 2)) * (1.0 + d * d * EPS) + self._stack.error
            return float(lengths @ lengths) * (1.0 + (m + 4) * EPS) / share
        # ||Gamma||^2 = ||S||^2 - 2 <Gamma, ridge W> - ||ridge W||^2 for S = Gamma + ridge W.
        amount, H, V = self.ridge.amount, self.network.basis, self.network.weights
        of_network = 2.0 * amount * (self.ridge.value(H, V) - self.ridge.error(H, V))
        parts = np.array([m * d * bound**2 / share, -2.0 * crossed, -of_network, 2.0 * error])
        return max(float(parts.sum()) + 16.0 * EPS * float(np.abs(parts).sum()), 0.0)

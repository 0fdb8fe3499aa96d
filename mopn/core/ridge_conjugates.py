"""The conjugate of a penalty with a ridge at multiples of a gradient: docs/mathematics.md, 5.7.

With the functions W of a network in the space of the kernel, R(W) = strength * Omega(W) + ridge / 2 * ||W||^2. Its
conjugate R*(Z) is the least ||Z - Y||^2 / (2 ridge) over all Y of a dual norm of at most ``strength``, so any such Y
bounds it from above. Either class is a ``Conjugate`` of :mod:`mopn.core.gap` at the scales of Z = -Gamma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mopn.solvers.numerics.precision import EPS


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
        """Return R* at the scale ``dual``."""
        # Z - Y = s ridge W - (t - s) Gamma at t = dual; the best s without a limit projects Z.
        t, a, b, c = dual, self.of_gradient, self.of_network, self.crossed
        length = a + 2.0 * c + b
        s = min(max(t * (a + c) / length, 0.0), self.largest) if length > 0 else 0.0
        parts = np.array([(t - s) ** 2 * a, s * s * b, -2.0 * s * (t - s) * c])
        errors = 2.0 * s * abs(t - s) * self.crossed_error + 8.0 * EPS * float(np.abs(parts).sum())
        return max(float(parts.sum()) + errors, 0.0) / (2.0 * self.ridge)

    def max_scale(self, dual: float) -> float:
        """Return that every scale will do."""
        return math.inf


@dataclass(frozen=True)
class EigenvalueConjugate:
    """Exactly, for l1 and ``homogeneous``: Y has the eigenvalues of Z, clipped at the strength.

    ``sizes`` bound the moduli of all eigenvalues of all Gamma_c, or for nonnegative weights the positive eigenvalues
    of all -Gamma_c.
    """

    ridge: float
    strength: float
    sizes: np.ndarray

    active = True

    def conjugate(self, dual: float) -> float:
        """Return R* at the scale ``dual``."""
        rest = np.maximum((1.0 + 2.0 * EPS) * dual * self.sizes - (1.0 - 2.0 * EPS) * self.strength, 0.0)
        return float(rest @ rest) * (1.0 + (self.sizes.size + 8) * EPS) / (2.0 * self.ridge)

    def max_scale(self, dual: float) -> float:
        """Return that every scale will do."""
        return math.inf

"""The minimum of a quadratic function and a trace norm: the model of a Newton step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

# Iterations of a minimisation, at most.
_MOST_ITERATIONS = 200
# The largest slope of the quadratic function at which a minimisation ends, relative to the weight of the norm, less 1.
_TOL_OF_SLOPES = 3e-3
# Iterations between two tests of the slopes.
_ITERATIONS_PER_TEST = 5
# Iterations between two changes of the penalty parameter. Each change factorises the curvature again.
_ITERATIONS_PER_PENALTY = 20
# Ratio of the two residuals, or its inverse, at which the penalty parameter changes.
_UNBALANCED = 4.0


class TraceNormModel:
    """Minimises x'Kx / 2 + b'x + ||x||_* for a curvature K (size, size) and slopes b that change from call to call.

    ``shrunk`` is the prox of the norm, a function of a point and a weight, and ``largest`` the dual norm of a point.
    The norm has weight 1.
    """

    def __init__(
        self, K: np.ndarray, shrunk: Callable[[np.ndarray, float], np.ndarray], largest: Callable[[np.ndarray], float]
    ) -> None:
        self.K = K
        self._shrunk = shrunk
        self._largest = largest
        self._set_penalty(math.exp(float(np.log(np.diag(K)).mean())))

    def _set_penalty(self, rho: float) -> None:
        self._rho = rho
        shifted = self.K.copy()
        shifted[np.diag_indices(len(shifted))] += rho
        self._factor: Any = cho_factor(shifted, overwrite_a=True, check_finite=False)

    def minimiser(self, slopes: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the minimiser, nearly, where the slopes of the quadratic function are ``slopes`` at ``x``.

        By ADMM, until the largest slope is 1, nearly (Boyd, Parikh, Chu, Peleato and Eckstein: Distributed Optimization
        and Statistical Learning via the Alternating Direction Method of Multipliers. 2011, section 3, with the penalty
        parameter of its section 3.4.1). The next call goes on with the penalty parameter of this one.
        """
        K = self.K
        z = x
        b = slopes - K @ z
        u = (self._shrunk(slopes, 1.0) - slopes) / self._rho
        for iteration in range(1, _MOST_ITERATIONS + 1):
            smooth = cho_solve(self._factor, self._rho * (z - u) - b, check_finite=False)
            before = z
            z = self._shrunk(smooth + u, 1.0 / self._rho)
            u = u + smooth - z
            is_tested = iteration % _ITERATIONS_PER_TEST == 0
            if is_tested and self._largest(K @ z + b) <= 1.0 + _TOL_OF_SLOPES:
                break
            if iteration % _ITERATIONS_PER_PENALTY == 0:
                change = float(np.linalg.norm(z - before)) or math.ulp(0.0)
                ratio = float(np.linalg.norm(smooth - z)) / change
                if not 1.0 / _UNBALANCED < ratio < _UNBALANCED:
                    growth = min(max(math.sqrt(ratio), 0.1), 10.0)
                    u = u / growth
                    self._set_penalty(self._rho * growth)
        return z

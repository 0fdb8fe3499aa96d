"""The few lines that one would write without mopn."""

import numpy as np
from benchmark_utils import random_units
from benchopt import BaseSolver
from scipy.optimize import minimize
from scipy.special import log_softmax


class Solver(BaseSolver):
    """Both layers by SciPy's L-BFGS from random units.

    ||h||^2 ||v|| is the least of (2 a^3 ||h||^3 + ||v||^3 / a^6) / 3 over scalings a, so the penalty may be replaced by
    a smooth one of h and v. For the norm l1 every unit serves one class, in turn.
    """

    name = "SciPy L-BFGS"
    sampling_strategy = "iteration"
    parameters = {"n_units": [10, 30]}

    def set_objective(self, X, y, norm, strength):
        """Draw the start."""
        m = y.max() + 1
        self.X, self.Y, self.strength = X, np.eye(m)[y], strength
        self.mask = np.ones((self.n_units, m)) if norm == "l1/l2" else np.eye(m)[np.arange(self.n_units) % m]
        rng = np.random.default_rng(self.get_seed())
        H = 0.3 * random_units(self.n_units, X.shape[1], self.get_seed())
        self.start = np.concatenate([H.ravel(), 0.1 * rng.standard_normal(self.mask.size)])

    def _layers(self, x):
        n_first = self.n_units * self.X.shape[1]
        return x[:n_first].reshape(self.n_units, -1), x[n_first:].reshape(self.mask.shape) * self.mask

    def _value_gradient(self, x):
        H, V = self._layers(x)
        Z = self.X @ H.T
        log_p = log_softmax(Z**2 @ V, axis=1)
        G = np.exp(log_p) - self.Y
        h, v = np.linalg.norm(H, axis=1, keepdims=True), np.linalg.norm(V, axis=1, keepdims=True)
        value = -np.sum(log_p * self.Y) + self.strength * np.sum(2.0 * h**3 + v**3) / 3.0
        of_H = 2.0 * (Z * (G @ V.T)).T @ self.X + 2.0 * self.strength * h * H
        of_V = ((Z**2).T @ G + self.strength * v * V) * self.mask
        return value, np.concatenate([of_H.ravel(), of_V.ravel()])

    def run(self, n_iter):
        """Take a number of iterations."""
        options = {"maxiter": n_iter, "maxfun": 10 * n_iter + 10, "gtol": 1e-12, "ftol": 0.0}
        self.x = minimize(self._value_gradient, self.start, jac=True, method="L-BFGS-B", options=options).x

    def get_result(self):
        """Return the network."""
        H, V = self._layers(self.x)
        return {"H": H, "V": V}

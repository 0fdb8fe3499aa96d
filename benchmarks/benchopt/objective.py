"""The objective: multinomial logistic loss of a polynomial network, with a norm of its output weights."""

import numpy as np
from benchopt import BaseObjective
from scipy.special import logsumexp


class Objective(BaseObjective):
    """sum_i log-loss(y_i, V' (H x_i)^2) + strength * Omega(V), over units H of length 1, of any number."""

    name = "Polynomial network, multinomial logistic"
    parameters = {"norm": ["l1/l2", "l1"], "reg": [0.1, 0.02]}
    min_benchopt_version = "1.9"

    def set_data(self, X, y):
        """Set the data with a column of ones, and the strength as a share of the spectral norm of the gradient at 0."""
        self.X = np.hstack([np.ones((len(X), 1)), X])
        classes, self.y = np.unique(y, return_inverse=True)
        self.m = len(classes)
        G = 1.0 / self.m - np.eye(self.m)[self.y]
        self.strength = self.reg * max(np.linalg.norm((self.X.T * g) @ self.X, 2) for g in G.T)

    def evaluate_result(self, H, V):
        """Return the objective at units of any length, which are scaled to length 1, and the number of units."""
        lengths = np.linalg.norm(H, axis=1)
        outputs, V = (self.X @ H.T) ** 2 @ V, V * lengths[:, None] ** 2
        loss = (logsumexp(outputs, axis=1) - outputs[np.arange(len(outputs)), self.y]).sum()
        penalty = np.abs(V).sum() if self.norm == "l1" else np.linalg.norm(V, axis=1).sum()
        return {"value": loss + self.strength * penalty, "units": int(np.any(V, axis=1).sum())}

    def get_one_result(self):
        """Return the empty network."""
        return {"H": np.zeros((0, self.X.shape[1])), "V": np.zeros((0, self.m))}

    def get_objective(self):
        """Return what solvers are given."""
        return {"X": self.X, "y": self.y, "norm": self.norm, "strength": self.strength}

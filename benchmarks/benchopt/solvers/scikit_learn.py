"""The convex problem in the weights of random units, by scikit-learn."""

import warnings

from benchmark_utils import random_units
from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

# Before scikit-learn 1.8 the share of the l1 norm did not choose the penalty.
_L1 = {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}


class Solver(BaseSolver):
    """Random units that stay as they are, and scikit-learn's SAGA with the l1 penalty."""

    name = "random units, scikit-learn"
    sampling_strategy = "iteration"
    parameters = {"n_units": [200]}
    requirements = ["scikit-learn"]
    test_config = {"objective": {"norm": "l1"}}

    def skip(self, X, y, norm, strength):
        """Group norms are not offered, and for two classes there is one output."""
        return norm != "l1" or y.max() < 2, "l1 and three classes or more only"

    def set_objective(self, X, y, norm, strength):
        """Compute the features."""
        self.H = random_units(self.n_units, X.shape[1], self.get_seed())
        self.features, self.y, self.strength = (X @ self.H.T) ** 2, y, strength

    def run(self, n_iter):
        """Take a number of epochs."""
        model = LogisticRegression(
            **_L1, C=1.0 / self.strength, solver="saga", fit_intercept=False, max_iter=n_iter + 1, tol=1e-14
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.V = model.fit(self.features, self.y).coef_.T

    def get_result(self):
        """Return the network."""
        return {"H": self.H, "V": self.V}

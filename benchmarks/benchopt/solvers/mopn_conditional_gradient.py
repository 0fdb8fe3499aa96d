"""mopn without a limit of units."""

from functools import partial

from benchmark_utils import follow
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

import mopn


class Solver(BaseSolver):
    """Conditional gradient over all units, with corrective refits, until its own proofs or benchopt end it."""

    name = "mopn"
    sampling_strategy = "callback"
    # A round may add units that the next refit drops again.
    stopping_criterion = SufficientProgressCriterion(patience=10)
    parameters = {"refit": ["full", "output", "none"], "oracle": ["auto", "refine"]}
    requirements = ["pip::mopn"]

    def set_objective(self, X, y, norm, strength):
        """Make the problem."""
        self.problem = mopn.NetworkProblem(X, y, norm=norm, strength=strength)
        self.result = self.problem.start()

    def warm_up(self):
        """Load all code."""
        mopn.minimize(self.problem, self._solver(), max_iter=1, tol=0)

    def _solver(self):
        return mopn.solvers.ConditionalGradient(refit=self.refit, oracle=self.oracle)

    def run(self, callback):
        """Run until the callback says no more."""
        follow(self.problem, self._solver(), callback, partial(setattr, self, "result"))

    def get_result(self):
        """Return the last network."""
        return {"H": self.result.basis, "V": self.result.weights}

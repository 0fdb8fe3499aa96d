"""
A loss of your own
==================

A loss is a value, a gradient and a conjugate; with these everything else works, the certificate included. Here is an
asymmetric squared loss: predictions that are too low cost more than those that are too high.
"""

import matplotlib.pyplot as plt
import numpy as np

import mopn


class Expectile(mopn.Loss):
    """Half the square of r = o - y, times ``level`` where r < 0 and 1 - level elsewhere."""

    targets = "numbers"

    def __init__(self, level):
        self.level = level

    def slope(self, r):
        """Return the second derivative, a step."""
        return np.where(r < 0, self.level, 1 - self.level)

    def smoothness(self, m):
        """Return the largest second derivative."""
        return max(self.level, 1 - self.level)

    def value_gradient(self, y, outputs):
        """Return values (n,) and gradients (n, m)."""
        R = outputs - y
        return 0.5 * np.sum(self.slope(R) * R**2, axis=1), self.slope(R) * R

    def conjugate(self, y, G):
        """Return sup_o <g, o> - l(y, o)."""
        return np.sum(G * y + 0.5 * G**2 / self.slope(G), axis=1)


rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-2, 2, 300))[:, None]
y = x[:, 0] ** 2 + rng.gamma(1.0, 1.0, 300)
mopn.testing.check_loss(Expectile(0.9), y)

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
ax.scatter(x[:, 0], y, s=6, color="0.7")
for level in (0.1, 0.5, 0.9):
    problem = mopn.NetworkProblem(
        x, y, loss=Expectile(level), norm="l1", strength=1.0, augment=True
    )
    result = mopn.minimize(
        problem, mopn.solvers.ConditionalGradient(refit="full"), tol=1e-4
    )
    model = mopn.Model.from_result(problem, result)
    print(
        f"level {level}: proven within {result.gap / result.fun:.1e} of the best "
        "network"
    )
    ax.plot(x[:, 0], model.outputs(x), label=f"level {level}")
ax.legend()
plt.show()

"""
Matrix completion: problems of your own
=======================================

Some entries of a matrix are known, and a matrix of low rank that fits them is wanted. Its nuclear norm, the sum of the
singular values, has a penalty or a bound; both problems are written here, and both are solved with a proof.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

import mopn
from mopn.solvers.interface import ActiveUnits, Atomic, Evaluation, Measure, Problem

# more than the rounding errors of sums and singular values, relative to the moduli of their terms
SLACK = 1e-12

rng = np.random.default_rng(0)
matrix = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
known = rng.uniform(size=matrix.shape) < 0.5
rows, cols = np.nonzero(known)
y = matrix[known]

# %%
# As a penalty, for FISTA
# -----------------------
# The image of the point is the known entries, with residuals r = o - y. For a scale s that keeps the spectral norm of
# s r, as a matrix, within the strength, s r is a dual point, so the minimum is at least -(s^2 ||r||^2 / 2 + s <r, y>).


class Completion(Problem):
    """Minimise sum (M_ij - y_ij)^2 / 2 over known entries + strength * nuclear norm of M."""

    oracles = frozenset({"composite"})
    curvature = 1.0  # the Lipschitz constant of the smooth part's gradient

    def __init__(self, rows, cols, y, shape, strength):
        self.known, self.y, self.shape, self.strength = (rows, cols), y, shape, strength

    def start(self, start=None):
        point = np.zeros(self.shape) if start is None else np.array(start, dtype=float)
        return point.ravel()

    def unpack(self, x):
        return {"x": x, "matrix": x.reshape(self.shape)}

    def image(self, x):
        return x.reshape(self.shape)[self.known]

    def scatter(self, r):
        matrix = np.zeros(self.shape)
        matrix[self.known] = r
        return matrix

    def smooth_value(self, image):
        return 0.5 * np.sum((image - self.y) ** 2)

    def smooth(self, image):
        r = image - self.y
        return Evaluation(0.5 * r @ r, self.scatter(r).ravel(), G=r)

    def regularizer_value(self, x):
        return self.strength * np.linalg.norm(x.reshape(self.shape), "nuc")

    def prox(self, x, step):
        U, s, Vt = np.linalg.svd(x.reshape(self.shape), full_matrices=False)
        return (U * np.maximum(s - step * self.strength, 0.0) @ Vt).ravel()

    def dual_bound(self, at):
        r = at.G
        spectral = np.linalg.norm(self.scatter(r), 2) * (1 + SLACK)
        s = min(1.0, self.strength / max(spectral, 1e-300))
        rounding = SLACK * (r @ r + np.abs(r) @ np.abs(self.y))
        return -s * (0.5 * s * r @ r + r @ self.y) - rounding

    def measure(self, x):
        at = self.smooth(self.image(x))
        fun = at.value + self.regularizer_value(x)
        return Measure(fun, self.dual_bound(at), rounding=SLACK * fun)


penalty = Completion(rows, cols, y, matrix.shape, strength=5.0)
found = mopn.minimize(penalty, mopn.solvers.FISTA(), tol=1e-8)
norm = np.linalg.norm(found.matrix, "nuc")
rank = np.linalg.matrix_rank(found.matrix, tol=1e-6)
print(f"{found.status.name}: proven gap {found.gap:.0e}, rank {rank}")
print(f"error {found.fun - 5.0 * norm:.4f} at nuclear norm {norm:.4f}")

# %%
# In a ball, for conditional gradient
# -----------------------------------
# The ball is the hull of the matrices radius * a b' with unit vectors a and b. The best unit for a gradient is its
# first pair of singular vectors, and its first singular value bounds all units. Along all segments the weights of the
# units change linearly, so one class serves plain, away and pairwise steps.


class LowRank:
    """The point: the matrix A' diag(w) B, with unit vectors in the rows of A and B, and weights w >= 0."""

    def __init__(self, A, B, w):
        self.A, self.B, self.w, self.n_units = A, B, w, len(w)

    def compact(self):
        return self

    def drop_zero_units(self, fraction=0.0):
        alive = self.w > max(fraction, 1e-14) * self.w.sum()
        return LowRank(self.A[alive], self.B[alive], self.w[alive])


class Segment:
    """The points whose weights are w + gamma * change, 0 <= gamma <= limit."""

    curvature = 1.0  # of the squared loss

    def __init__(self, problem, point, at, change, limit):
        self.y, self.origin, self.change, self.limit = problem.y, point, change, limit
        self.outputs = problem.outputs(point)
        self.step = problem.outputs(LowRank(point.A, point.B, change))
        self.gap, self.squared_length = -at.G @ self.step, self.step @ self.step

    def value(self, gamma):
        return 0.5 * np.sum((self.outputs + gamma * self.step - self.y) ** 2)

    def point(self, gamma):
        return LowRank(
            self.origin.A,
            self.origin.B,
            np.maximum(self.origin.w + gamma * self.change, 0.0),
        )


class BallCompletion(Atomic):
    """Minimise sum (M_ij - y_ij)^2 / 2 over known entries, where the nuclear norm of M is at most the radius."""

    oracles = frozenset({"atomic"})

    def __init__(self, rows, cols, y, shape, radius):
        self.rows, self.cols, self.y, self.shape, self.radius = (
            rows,
            cols,
            y,
            shape,
            radius,
        )

    def start(self, start=None):
        return LowRank(
            np.zeros((0, self.shape[0])), np.zeros((0, self.shape[1])), np.zeros(0)
        )

    def unpack(self, point):
        matrix = (point.A.T * point.w) @ point.B
        return {"x": matrix.ravel(), "matrix": matrix}

    def outputs(self, point):
        return np.einsum(
            "k,kn,kn->n", point.w, point.A[:, self.rows], point.B[:, self.cols]
        )

    def output_gradient(self, point):
        r = self.outputs(point) - self.y
        return SimpleNamespace(value=0.5 * r @ r, G=r)

    def oracle(self, spec, failure_budget, seed):
        return spec  # there is only one

    def lmo(self, at, oracle, effort):
        G = np.zeros(self.shape)
        G[self.rows, self.cols] = at.G
        U, s, Vt = np.linalg.svd(G, full_matrices=False)
        return SimpleNamespace(
            basis=[(-U[:, 0], Vt[0])],
            values=s[:1],
            bound=s[0] * (1 + SLACK),
            bound_is_best=True,
        )

    def bound(self, at, oracle, effort):
        return self.lmo(at, oracle, effort).bound

    def lower(self, at, bound):
        r = at.G
        return -(0.5 * r @ r + r @ self.y + self.radius * bound) - SLACK * (
            r @ r + np.abs(r) @ np.abs(self.y)
        )

    def rounding(self, point, at):
        return SLACK * np.sum(np.abs(at.G) * (np.abs(self.y) + self.radius))

    def measure(self, point):
        at = self.output_gradient(point)
        return Measure(
            at.value,
            self.lower(at, self.bound(at, None, None)),
            self.rounding(point, at),
        )

    def active_units(self, point, at, *, least=np.inf):
        shares = point.w / self.radius
        slopes = self.radius * (point.A[:, self.rows] * point.B[:, self.cols]) @ at.G
        rest = 1.0 - shares.sum()
        if rest <= SLACK:
            return ActiveUnits(shares, slopes)
        # the rest stays at 0
        return ActiveUnits(np.append(shares, rest), np.append(slopes, 0.0))

    def segment(self, point, at, units, *, least=np.inf, whole=True, away=None):
        change, limit = -point.w, 1.0  # towards a vertex
        if away is not None:
            share = self.active_units(point, at).coefficients[away]
            if units is None:  # away from one
                change, limit = (
                    point.w.copy(),
                    share / (1.0 - share) if 1.0 - share > SLACK else 0.0,
                )
            else:  # from one to another
                change, limit = np.zeros(point.n_units), share
            change -= self.radius * (np.arange(point.n_units) == away)
        if units is not None:
            a, b = units[0]
            point = LowRank(
                np.vstack([point.A, a]),
                np.vstack([point.B, b]),
                np.append(point.w, 0.0),
            )
            change = np.append(change, self.radius)
        return Segment(self, point, at, change, limit)


problem = BallCompletion(rows, cols, y, matrix.shape, radius=norm)
solver = mopn.solvers.ConditionalGradient(refit="none")
result = mopn.minimize(problem, solver, tol=1e-2)
print(f"{result.status.name}: error {result.fun:.1f}, gap {result.gap:.1f}")

# %%
# The error falls and the proven bound rises, and between them is the error of the penalty's solution.

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
rounds = 1 + result.trace["nit"]
lower = np.maximum.accumulate(result.trace["fun"] - result.trace["gap"])
ax.semilogx(rounds, result.trace["fun"], label="in the ball")
ax.semilogx(rounds, lower, ":", color="C0", label="its proven bound")
ax.axhline(found.fun - 5.0 * norm, color="C1", label="by the penalty")
ax.set(xlabel="round", ylabel="half of the squared error", ylim=(0, 200))
ax.legend()
plt.show()

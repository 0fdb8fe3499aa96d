"""A search for false certificates: gaps below the true distance to the minimum, and bounds below attained values.

``python -m benchmarks.certificates.search --draws 2000 --seed 1`` draws so many problems and stacks of matrices and
prints every violation; its exit status is 1 if there is one. The test suite runs a few draws.

The problems have one feature a sample (anova: one pair of features), so that the best units are known: the minimum is a
sum of convex problems of one variable, solved to 40 digits. Weights, scales, offsets, losses, norms, kernels, penalties
and balls, and storages are drawn over what floating point allows. Stacks are small ones of all kinds, and wide ones for
the bounds on principal directions and from random starts. No tolerance is granted to gaps, as they include what
rounding may do; values of stacks have that of their own evaluation.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy import sparse

import mopn
from mopn.oracles import METHODS, basis_oracle
from mopn.solvers import sphere
from mopn.solvers.interface import Effort
from mopn.solvers.sphere.probable import Chance, probable_bound

LOSSES = ("logistic", "smoothed-hinge", "squared-hinge", "squared", "binary-logistic", "binary-squared-hinge")
NORMS = ("l1", "l1/l2", "l1/linf")
STORAGES: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}
_DIGITS = 40
_BISECTIONS = 140
# Precision and work of proofs for wide stacks, and the probability with which random bounds may fail.
_ROUGH, _WORK, _SURE = 0.05, 3e9, 1e-12
# Wide stacks take most of the time: one of so many draws has one.
_SELDOM = 4
# Norms of (1/2, -1/2): what the difference of two classes' weights costs.
_OF_DIFFERENCE = {"l1": mpf(1), "l1/l2": 1 / mp.sqrt(2), "l1/linf": mpf(1) / 2}


@dataclass(frozen=True)
class Draw:
    """A problem, its best network (k, d) and (k, m), and the minimum."""

    problem: mopn.NetworkProblem
    basis: np.ndarray
    weights: np.ndarray
    minimum: mpf
    words: str


def loss_and_slope(loss: str, y: float, o: mpf) -> tuple[mpf, mpf]:
    """Return the loss and its derivative at o: an output, or for classes y = 1 and -1 the difference of two outputs."""
    if loss == "squared":
        return (o - y) ** 2 / 2, o - y
    sign = mpf(1) if y > 0 else mpf(-1)
    if "hinge" in loss and loss != "smoothed-hinge":
        excess = max(1 - sign * o, mpf(0))
        return excess**2, -2 * sign * excess
    e = mp.exp((1 if loss == "smoothed-hinge" else 0) - sign * o)
    return mp.log1p(e), -sign * e / (1 + e)


def minimise(loss: str, rows: list[tuple[float, mpf, mpf, mpf]], cost: mpf) -> tuple[mpf, mpf]:
    """Return the minimiser t and the minimum of sum w l(y, s t + o) + cost |t| over rows of (y, s, o, w)."""

    def value(t: mpf) -> mpf:
        return mp.fsum(w * loss_and_slope(loss, y, s * t + o)[0] for y, s, o, w in rows) + cost * abs(t)

    def slope(t: mpf) -> mpf:
        return mp.fsum(w * s * loss_and_slope(loss, y, s * t + o)[1] for y, s, o, w in rows)

    at_zero = slope(mpf(0))
    if abs(at_zero) <= cost:
        return mpf(0), value(mpf(0))
    sign = -mp.sign(at_zero)
    low, high = mpf(0), mpf(1) / max(s for _, s, _, _ in rows)
    while sign * slope(sign * high) + cost < 0:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if sign * slope(sign * middle) + cost < 0 else (low, middle)
    return sign * high, value(sign * high)


def draw(rng: np.random.Generator) -> Draw:
    """Draw a problem with a known minimum."""
    loss, norm, kernel = rng.choice(LOSSES), rng.choice(NORMS), rng.choice(["homogeneous", "anova"])
    storage, form = rng.choice(list(STORAGES)), rng.choice(["strength", "radius"])
    classes = loss in LOSSES[:3]
    m = 2 if classes else int(rng.integers(1, 3)) if norm == "l1" else 1
    n, groups, width = 6, int(rng.integers(1, 4)), 1 if kernel == "homogeneous" else 2
    unit = 2.0 ** rng.choice([rng.integers(-50, 51), 0, 0])
    a = unit * rng.uniform(0.2, 2.0, n).astype(np.float32).astype(np.float64)
    group = np.r_[np.arange(groups), rng.integers(groups, size=n - groups)]
    X = np.repeat(a[:, None] * (group[:, None] == np.arange(groups)), width, axis=1)
    weights = np.power(10.0, rng.uniform(-8, 16, n)) if rng.uniform() < 0.6 else rng.uniform(0.5, 2.0, n)
    weights[rng.uniform(size=n) < 0.1] = 0.0
    weights[:2] = np.maximum(weights[:2], 1.0)
    offset = rng.choice([0.0, 1.0, 30.0]) * rng.standard_normal((n, m))
    labels = np.r_[0, 1, rng.integers(2, size=n - 2)]
    y: Any = (
        labels if classes else rng.standard_normal((n, m)) if loss == "squared" else rng.choice([-1.0, 1.0], (n, m))
    )
    # The squared loss has no unit of its own: targets, offsets and strengths may have any.
    of_targets = 2.0 ** rng.integers(-40, 41) if loss == "squared" else 1.0
    y, offset = (y if classes else y * of_targets), offset * of_targets
    scales = [mpf(x) ** 2 / width for x in a]
    strength = float(of_targets * unit**2 * np.power(10.0, rng.uniform(-3, 1)))
    cost = mpf(strength) * (_OF_DIFFERENCE[norm] if classes else 1)
    minimum, T = mpf(0), np.zeros((groups, m))
    total = mpf(0)
    for j in range(groups):
        for c in range(1 if classes else m):
            rows = [
                (
                    (1.0 - 2.0 * labels[i]) if classes else float(y[i, c]),
                    scales[i],
                    mpf(offset[i, 0]) - mpf(offset[i, 1]) if classes else mpf(offset[i, c]),
                    mpf(weights[i]),
                )
                for i in np.flatnonzero(group == j)
            ]
            t, least = minimise(loss, rows, cost)
            minimum, total = minimum + least, total + abs(t) * cost / mpf(strength)
            T[j] = (float(t) / 2, -float(t) / 2) if classes else T[j]
            if not classes:
                T[j, c] = float(t)
    size = strength
    if form == "radius":
        # The penalty's minimum less strength * radius is the ball's, up to the square of the radius' rounding error.
        size = float(total)
        minimum -= mpf(strength) * mpf(size)
    basis = np.repeat(np.eye(groups), width, axis=1) / np.sqrt(width)
    problem = mopn.NetworkProblem(
        STORAGES[storage](X),
        y,
        loss=loss,
        kernel=kernel,
        norm=norm,
        sample_weight=weights,
        offset=offset,
        **{form: size},
    )
    words = f"{loss} {norm} {kernel} {storage} {form}={size:.3g} m={m} unit={unit:.1g} heaviest={weights.max():.1g}"
    return Draw(problem, basis, T, minimum, words)


def gap_violations(rng: np.random.Generator) -> Iterator[str]:
    """Yield what is false about the gaps of networks near, and far from, the minimum of a drawn problem."""
    drawn = draw(rng)
    for power in (-16, -12, -8, -4, 0):
        # Towards zero, so that a ball is not left.
        share = 1.0 - 10.0**power * rng.uniform(0.5, 1.0)
        for method in ("auto", "power"):
            measured = mopn.certify(drawn.problem, drawn.basis, share * drawn.weights, method)
            distance = mpf(measured.fun) - drawn.minimum
            # The minimum is attained by these very units, so the restricted gap, the smaller one, must hold as well.
            if not distance <= measured.restricted_gap <= measured.gap:
                yield (f"{drawn.words} share=1-1e{power} oracle={method}: {measured} distance={float(distance):.3g}")


def draw_stack(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Draw symmetric matrices (m, d, d): tied, of rank one, of very different sizes, opposite, in blocks."""
    m, d = int(rng.integers(1, 7)), int(rng.integers(1, 13))
    kind = rng.choice(["any", "tied", "rank one", "scaled", "opposite", "block", "sparse"])
    A = rng.standard_normal((m, d, d))
    if kind == "tied":
        A = A[:1] + 1e-9 * A
    elif kind == "rank one":
        h = rng.standard_normal((m, d))
        A = h[:, :, None] * h[:, None, :]
    elif kind == "scaled":
        A *= np.power(10.0, rng.uniform(-8, 8, m))[:, None, None]
    elif kind == "opposite":
        A = A[:1] * rng.choice([-1.0, 1.0], m)[:, None, None]
    elif kind == "block":
        A *= (np.arange(d)[:, None] < d // 2) == (np.arange(d) < d // 2)
    elif kind == "sparse":
        A *= rng.uniform(size=A.shape) < 0.2
    return 0.5 * (A + A.transpose(0, 2, 1)) * 10.0 ** rng.integers(-100, 101), f"{kind} m={m} d={d}"


def attained_values(A: np.ndarray, rng: np.random.Generator, starts: int) -> Iterator[tuple[str, float, float]]:
    """Yield norm, exponent, and a value that the stack attains, less what its own evaluation may err by."""
    stack, scale = sphere.DenseStack(A).scaled()
    m, d = stack.shape
    H = rng.standard_normal((starts, d))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    error = (2 * d + m + 4) * np.finfo(float).eps * float(np.abs(stack.matrices).sum())
    for norm, p in zip(NORMS, (np.inf, 2.0, 1.0), strict=True):
        _, values = sphere.refine(stack, H, p, tol=1e-10, max_iter=200)
        yield norm, p, (float(values.max()) - error) * scale


def bound_violations(rng: np.random.Generator) -> Iterator[str]:
    """Yield the bounds of a drawn stack that an attained value exceeds by more than its evaluation may err."""
    A, words = draw_stack(rng)
    for norm, _, attained in attained_values(A, rng, starts=20):
        for method in METHODS:
            if method == "enumerate" and norm != "l1/linf":
                continue
            bound = basis_oracle(norm, method=method, max_nodes=200)(A).bound
            if not attained <= bound:
                yield f"stack {words} {norm} {method}: bound={bound:.17g} attained={attained:.17g}"


def draw_wide_stack(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Draw matrices (m, d, d) of 27 to 60 features, bounded on some of their directions, that make this hard.

    Slow decay of the spectrum, equal matrices, almost nothing beyond the first directions, and maxima that nearly tie.
    """
    m, d = int(rng.integers(1, 6)), int(rng.integers(27, 61))
    kind = rng.choice(["slow decay", "equal", "tiny rest", "near ties", "any"])
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = rng.standard_normal((m, d, d))
    A = A + A.transpose(0, 2, 1)
    if kind == "slow decay":
        values = rng.choice([-1.0, 1.0], (m, d)) / np.log(np.arange(2, d + 2))
        A = np.einsum("ij,cj,kj->cik", Q, values, Q) + 0.01 * A
    elif kind == "equal":
        A = A[:1] * np.ones((m, 1, 1))
    elif kind == "tiny rest":
        r = int(rng.integers(1, 20))
        A = Q[:, :r] @ A[:, :r, :r] @ Q[:, :r].T + 10.0 ** rng.integers(-16, -2) * A
    elif kind == "near ties":
        values = 1.0 - 10.0 ** rng.integers(-14, -1) * rng.uniform(size=(m, d))
        A = np.einsum("ij,cj,kj->cik", Q, values * rng.choice([-1.0, 1.0], (m, d)), Q)
    return 0.5 * (A + A.transpose(0, 2, 1)) * 10.0 ** rng.integers(-100, 101), f"{kind} m={m} d={d}"


def wide_violations(rng: np.random.Generator) -> Iterator[str]:
    """Yield the false bounds among those on principal directions and those from random starts."""
    A, words = draw_wide_stack(rng)
    stack, scale = sphere.DenseStack(A).scaled()
    for norm, p, attained in attained_values(A, rng, starts=10):
        exact = basis_oracle(norm, method="exact", max_nodes=200)(A, Effort(_ROUGH, work=_WORK)).bound
        random = probable_bound(stack, p, 0.2, Chance(_SURE, rng))[1] * scale
        for method, bound in (("exact", exact), ("lanczos", random)):
            if not attained <= bound:
                yield f"stack {words} {norm} {method}: bound={bound:.17g} attained={attained:.17g}"


def violations(draws: int, seed: int) -> Iterator[str]:
    """Yield the violations found in so many draws of problems and of stacks."""
    for k in range(draws):
        with mp.workdps(_DIGITS):
            yield from (f"draw {k}: {found}" for found in gap_violations(np.random.default_rng((seed, k))))
        yield from (f"draw {k}: {found}" for found in bound_violations(np.random.default_rng((seed, k, 1))))
        if k % _SELDOM == 0:
            yield from (f"draw {k}: {found}" for found in wide_violations(np.random.default_rng((seed, k, 2))))


def main(arguments: list[str] | None = None) -> int:
    """Print the violations; return 1 if there is one."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.certificates.search", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--draws", type=int, default=1000, help="of problems, and of stacks (default 1000)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    count = 0
    for found in violations(options.draws, options.seed):
        print(found, flush=True)
        count += 1
    print(f"{count} violations in {options.draws} draws")
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())

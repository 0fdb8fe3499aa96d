"""Problems whose minimum is known to many digits, for the search for false certificates."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy import sparse

import mopn
from benchmarks.common import NORMS

LOSSES = ("logistic", "smoothed-hinge", "squared-hinge", "squared", "binary-logistic", "binary-squared-hinge")
STORAGES: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}
_BISECTIONS = 140
# Norms of (1/2, -1/2): the penalty of a difference of two classes' weights.
_OF_DIFFERENCE = {"l1": mpf(1), "l1/l2": 1 / mp.sqrt(2), "l1/linf": mpf(1) / 2}


@dataclass(frozen=True)
class Draw:
    """A problem, its best network (k, d) and (k, m), and the minimum."""

    problem: mopn.NetworkProblem
    basis: np.ndarray
    weights: np.ndarray
    minimum: mpf
    words: str


def loss_and_slope(loss: str, y: float, o: mpf, others: int = 1) -> tuple[mpf, mpf]:
    """Return the loss and its derivative at o: an output, or the difference of two classes' outputs.

    For classes y is 1 where the first of the two is the right one, and -1 otherwise; ``others`` is the number of wrong
    ones, of equal outputs.
    """
    if loss == "squared":
        return (o - y) ** 2 / 2, o - y
    sign = mpf(1) if y > 0 else mpf(-1)
    if "hinge" in loss and loss != "smoothed-hinge":
        excess = max(1 - sign * o, mpf(0))
        return others * excess**2, -2 * others * sign * excess
    e = others * mp.exp((1 if loss == "smoothed-hinge" else 0) - sign * o)
    return mp.log1p(e), -sign * e / (1 + e)


def minimise(
    loss: str | Callable[[float, mpf], tuple[mpf, mpf]],
    rows: list[tuple[float, mpf, mpf, mpf]],
    cost: mpf,
    others: int = 1,
    cost_below: mpf | None = None,
    ridge: float = 0.0,
) -> tuple[mpf, mpf]:
    """Return the minimiser t and the minimum of sum w l(y, s t + o) + cost |t| + ridge t^2 / 2 over (y, s, o, w).

    The loss is a name, or returns value and slope; t below 0 may have a cost of its own.
    """
    known = partial(loss_and_slope, loss, others=others) if isinstance(loss, str) else loss
    cost_below = cost if cost_below is None else cost_below

    def value(t: mpf) -> mpf:
        losses = mp.fsum(w * known(y, s * t + o)[0] for y, s, o, w in rows)
        return losses + (cost if t > 0 else cost_below) * abs(t) + mpf(ridge) * t * t / 2

    def slope(t: mpf) -> mpf:
        return mp.fsum(w * s * known(y, s * t + o)[1] for y, s, o, w in rows) + mpf(ridge) * t

    at_zero = slope(mpf(0))
    if -cost <= at_zero <= cost_below:
        return mpf(0), mp.fsum(w * known(y, o)[0] for y, s, o, w in rows)
    sign, cost = (1, cost) if at_zero < 0 else (-1, cost_below)
    low, high = mpf(0), mpf(1) / max(s for _, s, _, _ in rows)
    while sign * slope(sign * high) + cost < 0:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if sign * slope(sign * middle) + cost < 0 else (low, middle)
    return sign * high, value(sign * high)


def draw(rng: np.random.Generator, *, ridged: bool = False) -> Draw:
    """Draw a problem of one feature a sample, or one pair of features, with a known minimum; or one with a ridge."""
    loss, norm, kernel = rng.choice(LOSSES), rng.choice(NORMS), rng.choice(["homogeneous", "anova"])
    storage, form = rng.choice(list(STORAGES)), "strength" if ridged else rng.choice(["strength", "radius"])
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
    # The squared length of a unit's function is K(h, h), and the weights of two classes have half of the difference.
    ridge = float(np.clip(unit**4 * 10.0 ** rng.uniform(-12, 12), 1e-45, 1e45)) if ridged else 0.0
    of_difference = ridge / width**2 / (2 if classes else 1)
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
            t, least = minimise(loss, rows, cost, ridge=of_difference)
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
        ridge=ridge,
        **{form: size},
    )
    words = f"{loss} {norm} {kernel} {storage} {form}={size:.3g} m={m} unit={unit:.1g} heaviest={weights.max():.1g}"
    words += f" ridge={ridge:.3g}" if ridged else ""
    return Draw(problem, basis, T, minimum, words)


def draw_classes(rng: np.random.Generator) -> Draw:
    """Draw a problem of many classes and as many samples or a few more, one for every feature, with a known minimum.

    The weights of a sample's unit are one number for its class and another for all others, as those are equal.
    """
    loss, norm = rng.choice(LOSSES[:3]), rng.choice(NORMS)
    m = int(rng.integers(3, 13))
    n = m + int(rng.integers(3))
    unit = 10.0 ** rng.choice([rng.uniform(-15, 15), 0.0])
    a, weights = unit * rng.uniform(0.2, 2.0, n), np.power(10.0, rng.uniform(-6, 6, n))
    y = np.r_[:m, rng.integers(m, size=n - m)]
    strength = float(unit**2 * np.power(10.0, rng.uniform(-4, 2)))
    # The share of the right class in a difference of 1, and the norm of the weights.
    share = {"l1": mpf(1), "l1/l2": mpf(m - 1) / m, "l1/linf": mpf(1) / 2}[norm]
    cost = {"l1": mpf(1), "l1/l2": mp.sqrt(mpf(m - 1) / m), "l1/linf": mpf(1) / 2}[norm]
    minimum, V = mpf(0), np.zeros((n, m))
    for i in range(n):
        t, least = minimise(loss, [(1.0, mpf(a[i]) ** 2, mpf(0), mpf(weights[i]))], mpf(strength) * cost, m - 1)
        minimum += least
        V[i] = float(-t * (1 - share))
        V[i, y[i]] = float(t * share)
    problem = mopn.NetworkProblem(np.diag(a), y, loss=loss, norm=norm, strength=strength, sample_weight=weights)
    return Draw(problem, np.eye(n), V, minimum, f"{loss} {norm} n={n} m={m} unit={unit:.1g} strength={strength:.3g}")


def draw_outputs(rng: np.random.Generator) -> Draw:
    """Draw a problem of fewer samples than outputs, one for every feature, with a known minimum, at any scale."""
    norm = rng.choice(NORMS[:2])
    loss = rng.choice(LOSSES[3:]) if norm == "l1" else "squared"
    n, m = int(rng.integers(1, 4)), int(rng.integers(4, 41))
    unit, size = (10.0 ** rng.choice([rng.uniform(-15, 15), 0.0]) for _ in range(2))
    a, weights = unit * rng.uniform(0.2, 2.0, n), np.power(10.0, rng.uniform(-6, 6, n))
    y = size * rng.standard_normal((n, m)) if loss == "squared" else rng.choice([-1.0, 1.0], (n, m))
    strength = float((size if loss == "squared" else 1.0) * unit**2 * np.power(10.0, rng.uniform(-4, 2)))
    minimum, V = mpf(0), np.zeros((n, m))
    for i in range(n):
        s, w = mpf(a[i]) ** 2, mpf(weights[i])
        if norm == "l1":
            for c in range(m):
                t, least = minimise(loss, [(float(y[i, c]), s, mpf(0), w)], mpf(strength))
                minimum, V[i, c] = minimum + least, float(t)
        else:
            # The weights of the squared loss are along the targets, so that their length alone is free.
            length = mp.sqrt(mp.fsum(mpf(t) ** 2 for t in y[i]))
            t = max(w * s * length - mpf(strength), mpf(0)) / (w * s * s)
            minimum += w * (s * t - length) ** 2 / 2 + mpf(strength) * t
            V[i] = [float(t * mpf(target) / length) for target in y[i]]
    problem = mopn.NetworkProblem(np.diag(a), y, loss=loss, norm=norm, strength=strength, sample_weight=weights)
    words = f"{loss} {norm} n={n} m={m} unit={unit:.1g} size={size:.1g} strength={strength:.3g}"
    return Draw(problem, np.eye(n), V, minimum, words)


def exact_objective(
    loss: str, X: np.ndarray, y: np.ndarray, basis: np.ndarray, weights: np.ndarray, strength: float
) -> mpf:
    """Return the objective of a network of one output, to the digits that are set."""
    H = [[mpf(float(h)) for h in unit] for unit in basis]
    total = mp.fsum(
        mpf(strength) * abs(mpf(float(v))) * mp.fsum(h * h for h in unit) for unit, v in zip(H, weights, strict=True)
    )
    for row, target in zip(X, y, strict=True):
        x = [mpf(float(value)) for value in row]
        output = mp.fsum(mpf(float(v)) * mp.fdot(unit, x) ** 2 for unit, v in zip(H, weights, strict=True))
        total += loss_and_slope(loss, float(target), output)[0]
    return total

"""Problems that fall apart into one-dimensional ones, with all losses per output, kernels and storages."""

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy import sparse

import mopn
from benchmarks.certificates.drawn_problems import Draw, minimise

Rng = np.random.Generator
_NAMES = ("squared", "binary-logistic", "binary-squared-hinge", "huber", "quantile", "poisson")
# Exponentials are continued by tangents beyond.
_LARGEST_EXPONENT = 300
# Eigenvalues below this fraction of the largest are 0.
_ZERO = mpf(10) ** -30


def clipped(width: float, low: float, high: float) -> Callable[[float, mpf], tuple[mpf, mpf]]:
    """Return value and slope of a clipped loss, in as many digits as are at work."""

    def loss(y: float, o: mpf) -> tuple[mpf, mpf]:
        g = min(max((o - y) / mpf(width), mpf(low)), mpf(high))
        return g * (o - y) - mpf(width) * g * g / 2, g

    return loss


def poisson(y: float, o: mpf) -> tuple[mpf, mpf]:
    """Return value and slope of Poisson's loss."""
    mean = mp.exp(min(o, mpf(_LARGEST_EXPONENT)))
    value = mean * (1 + max(o - _LARGEST_EXPONENT, mpf(0))) - y * o
    return value + (mpf(y) * mp.log(y) - y if y > 0 else 0), mean - y


def draw_loss(rng: Rng, shape: tuple[int, int]) -> tuple[Any, Any, np.ndarray, float, float]:
    """Draw a loss, its value and slope, targets, and the sizes of outputs and of slopes."""
    name, size = str(rng.choice(_NAMES)), 2.0 ** rng.integers(-30, 31)
    y = size * rng.standard_normal(shape)
    if name == "huber":
        delta = float(size * 10.0 ** rng.uniform(-6, 2))
        return mopn.Huber(delta), clipped(1.0, -delta, delta), y, size, delta
    if name == "quantile":
        level, width = float(rng.choice([0.5, 0.999, 1e-6, 0.1])), float(size * 10.0 ** rng.uniform(-14, 2))
        return mopn.Quantile(level, width), clipped(width, -level, 1.0 - level), y, size, max(level, 1.0 - level)
    if name == "poisson":
        few = rng.poisson(3, shape).astype(float)
        return name, poisson, few if rng.uniform() < 0.5 else np.power(10.0, rng.uniform(-6, 6, shape)), 0.1, 1.0
    if name == "squared":
        return name, name, y, size, size
    return name, name, rng.choice([-1.0, 1.0], shape), 1.0, 1.0


def draw_features(rng: Rng, n: int, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """Draw X, whose rows are multiples of one vector of their group, the factors, the groups, and options."""
    kernel = str(rng.choice(["homogeneous", "anova"]))
    width = int(rng.integers(1 if kernel == "homogeneous" else 2, 6))
    group = np.r_[np.arange(groups), rng.integers(groups, size=n - groups)]
    unit = 2.0 ** rng.choice([rng.integers(-40, 41), 0, 0])
    factors = unit * np.rint(rng.uniform(0.2, 2.0, n) * 2**12) / 2**12
    parts = rng.choice([-1.0, 1.0], (groups, width)) * rng.integers(1, 8, (groups, width)) * 2.0 ** rng.integers(-6, 7)
    X = np.zeros((n, groups * width))
    for i, j in enumerate(group):
        X[i, j * width : (j + 1) * width] = factors[i] * parts[j]
    return X, factors, group, {"kernel": kernel}


def extreme_units(parts: np.ndarray, options: dict[str, Any]) -> list[tuple[mpf, np.ndarray]]:
    """Return the largest and the least eigenvalue of the form of one group, and unit vectors there."""
    x, d = [mpf(float(a)) for a in parts], len(parts)
    A = mp.matrix(d, d)
    for i, j in np.ndindex(d, d):
        same = x[i] * x[j]
        A[int(i), int(j)] = same if options["kernel"] == "homogeneous" else same / 2 if i != j else 0
    values, vectors = mp.eigsy(A)
    return [(values[k], np.array([float(vectors[i, k]) for i in range(d)])) for k in (d - 1, 0)]


def stored(rng: Rng, X: np.ndarray) -> tuple[Any, str]:
    """Draw a storage of X."""
    half = len(X) // 2 or 1
    kinds: dict[str, Callable[[], Any]] = {
        "dense": lambda: X,
        "float32": lambda: X.astype(np.float32),
        "csr": lambda: sparse.csr_array(X),
        "csc": lambda: sparse.csc_array(X),
        "blocks": lambda: mopn.RowBlocks(X, size=half),
        "sparse blocks": lambda: mopn.RowBlocks([sparse.csr_array(X[:half]), sparse.csr_array(X[half:])]),
        "relations": lambda: mopn.RelationBlocks([sparse.csr_array(X)], np.arange(len(X))[:, None]),
    }
    kind = str(rng.choice(list(kinds)))
    return kinds[kind](), kind


def draw_minimum(rng: Rng) -> Draw:
    """Draw a problem under a penalty whose minimum is known: every group of rows has a direction of its own."""
    norm = str(rng.choice(["l1", "nonnegative-l1", "l1/l2", "l1/linf"], p=[0.3, 0.5, 0.1, 0.1]))
    groups, m = int(rng.integers(1, 4)), int(rng.integers(1, 4)) if "/" not in norm else 1
    n = groups + int(rng.integers(1, 5))
    X, factors, group, options = draw_features(rng, n, groups)
    loss, known, y, size, slope = draw_loss(rng, (n, m))
    weights = np.power(10.0, rng.uniform(-6, 6, n)) if rng.uniform() < 0.5 else rng.uniform(0.5, 2.0, n)
    offset = rng.choice([0.0, 1.0, 30.0]) * size * rng.standard_normal(m)
    width, minimum, basis, V = X.shape[1] // groups, mpf(0), [], []
    columns = [slice(j * width, (j + 1) * width) for j in range(groups)]
    extremes = [extreme_units(X[j, part] / factors[j], options) for j, part in enumerate(columns)]
    top = max(float(abs(value)) for pair in extremes for value, _ in pair)
    strength = float(factors.max() ** 2 * top * slope * 10.0 ** rng.uniform(-5, 1))
    for j, c in np.ndindex(groups, m):
        up, down = extremes[j]
        if norm != "nonnegative-l1":
            # A weight may have any sign, so that the larger of the two serves both.
            up = down = max(extremes[j], key=lambda pair: abs(pair[0]))
        cost_below = mpf(strength) / abs(down[0]) if norm != "nonnegative-l1" or down[0] < -_ZERO * up[0] else mp.inf
        rows = [
            (float(y[i, c]), mpf(factors[i]) ** 2, mpf(offset[c]), mpf(weights[i])) for i in np.flatnonzero(group == j)
        ]
        t, least = minimise(known, rows, mpf(strength) / abs(up[0]), cost_below=cost_below)
        minimum += least
        value, unit = up if t >= 0 else down
        basis.append(np.pad(unit, (columns[j].start, X.shape[1] - columns[j].stop)))
        V.append(np.eye(m)[c] * float(t / value))
    data, kind = stored(rng, X)
    problem = mopn.NetworkProblem(
        data,
        y,
        loss=loss,
        norm=norm,
        strength=strength,
        sample_weight=weights,
        offset=offset,
        **options,
    )
    words = f"{loss} {norm} {options} {kind} n={n} m={m} strength={strength:.3g}"
    return Draw(problem, np.array(basis), np.array(V), minimum, words)

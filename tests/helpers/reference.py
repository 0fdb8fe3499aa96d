"""Slow, obvious references: losses, norms and derivatives, and the convex problems over symmetric matrices."""

import itertools
import math

import numpy as np


def by_differences(function, x, direction, h=1e-3):
    """Derivative along a direction: order 4, central."""
    first = function(x + h * direction) - function(x - h * direction)
    second = function(x + 2 * h * direction) - function(x - 2 * h * direction)
    return (8 * first - second) / (12 * h)


def derivatives(function, x, h=1e-3):
    """Those by the entries of x, in its shape."""
    found = [by_differences(function, x, e, h) for e in np.eye(x.size).reshape(x.size, *x.shape)]
    return np.reshape(found, (*x.shape, *np.shape(function(x))))


def on_grid(a):
    """Round to a grid whose sums and differences are exact."""
    return np.round(1024 * a) / 1024


def targets_of(loss, rng, n, m):
    """Draw targets that a built-in loss takes, for n samples of m outputs."""
    if loss.targets == "labels":
        return rng.integers(m, size=n)
    if loss.targets == "counts":
        return rng.integers(5, size=(n, m)).astype(float)
    if loss.targets == "signs":
        return rng.choice([-1.0, 1.0], size=(n, m))
    numbers = rng.standard_normal((n, m))
    return on_grid(numbers) if loss.name == "squared" else np.round(2.0 * numbers)


def loss_of_sample(name: str, y, o: np.ndarray) -> float:
    """A loss of the outputs o (m,) of one sample by its definition: y is a class's number, or a target for each."""
    margins = np.delete(o - o[y], y) if name in ("logistic", "smoothed-hinge", "squared-hinge") else -y * o
    values = {
        "logistic": lambda: np.logaddexp.reduce([*margins, 0.0]),
        "smoothed-hinge": lambda: np.logaddexp.reduce([*(1.0 + margins), 0.0]),
        "squared-hinge": lambda: np.sum(np.maximum(1.0 + margins, 0.0) ** 2),
        "squared": lambda: 0.5 * np.sum((o - y) ** 2),
        "huber": lambda: sum(_clipped(r, 1.0, 1.0) for r in o - y),
        "quantile": lambda: sum(_clipped(r, 0.1, 0.5) for r in o - y),
        "poisson": lambda: math.fsum(math.exp(a) - b - b * (a - math.log(b or 1.0)) for a, b in zip(o, y, strict=True)),
        "binary-logistic": lambda: np.sum(np.logaddexp(0.0, margins)),
        "binary-squared-hinge": lambda: np.sum(np.maximum(1.0 + margins, 0.0) ** 2),
    }
    return float(values[name]())


def kernel_values(kernel: str, H: np.ndarray, X: np.ndarray) -> np.ndarray:
    """K(h_r, x_i) as sums over single features, or over pairs of distinct features."""
    K = np.zeros((len(X), len(H)))
    for (i, x), (r, h) in itertools.product(enumerate(X), enumerate(H)):
        if kernel == "homogeneous":
            K[i, r] = sum(a * b for a, b in zip(h, x, strict=True)) ** 2
        else:
            K[i, r] = sum(h[a] * x[a] * h[b] * x[b] for a, b in itertools.combinations(range(len(x)), 2))
    return K


def check_products(design, Z: np.ndarray, sizes: np.ndarray, rng, tolerance: float) -> None:
    """Compare a design with its explicit data Z (n, d), whose entries are differences of numbers of these sizes."""
    (n, d), k = Z.shape, 3
    H, R, g = rng.standard_normal((k, d)), rng.standard_normal((n, k)), rng.standard_normal(n)
    rows = rng.permutation(n)[:4]
    grams = [(design.gram(w), (Z * w[:, None]).T @ Z) for w in (g, np.abs(g), -np.abs(g), np.maximum(g, 0.0), 0.0 * g)]
    for found, expected in (
        *grams,
        (design.project(H), Z @ H.T),
        (design.project_squares(H), Z**2 @ H.T),
        (design.adjoint(R), R.T @ Z),
        (design.adjoint_squares(R), R.T @ Z**2),
        (design.squared_norms, np.sum(Z**2, axis=1)),
        (design.squared_sizes, np.sum(sizes**2, axis=1)),
        (design.squared_column_sizes, np.sum(sizes**2, axis=0)),
        (design.inner_products(0.5), Z @ Z.T / 0.25),
        (design.squares.inner_products(4.0), Z**2 @ (Z**2).T / 16),
        (design.occurrences(np.abs(g)), np.abs(g) @ (Z != 0)),
        (design.absolute.project(H), sizes @ H.T),
        (design.absolute.adjoint(R), R.T @ sizes),
        (design.absolute.adjoint_squares(R), R.T @ sizes**2),
        (design.rows(rows).project(H), Z[rows] @ H.T),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    # A sum with zeros is dense.
    np.testing.assert_allclose(design.matrix() + np.zeros((n, d)), Z, rtol=0, atol=tolerance)
    assert design.shape == (n, d)
    assert np.abs(Z).max() <= design.largest <= sizes.max()


def _clipped(r: float, width: float, slope: float) -> float:
    """slope abs(r), within ``width * slope`` of 0 a parabola that touches it."""
    return r * r / (2.0 * width) if abs(r) <= width * slope else slope * abs(r) - width * slope * slope / 2.0


def norm_of_rows(V: np.ndarray, name: str) -> float:
    sizes = {"l1": np.abs(V), "l1/l2": np.linalg.norm(V, axis=1), "l1/linf": np.abs(V).max(axis=1, initial=0.0)}
    return 0.5 * float(np.sum(V * V)) if name == "squared-l2" else float(sizes[name.removeprefix("nonnegative-")].sum())


def shares(kernel: str, d: int) -> np.ndarray:
    """The share of W_ij x_i x_j, for all i and j, in a kernel: all, or half of i != j."""
    return np.ones((d, d)) if kernel == "homogeneous" else 0.5 * (1.0 - np.eye(d))


def quadratic_outputs(X: np.ndarray, W: np.ndarray, kernel: str) -> np.ndarray:
    """x' W_c x for the homogeneous kernel, sum_{i<j} W_cij x_i x_j for anova; W (m, d, d) symmetric."""
    return np.einsum("ni,cij,nj->nc", X, W * shares(kernel, X.shape[1]), X)


def pulled_back(X: np.ndarray, G: np.ndarray, kernel: str) -> np.ndarray:
    """Gradient with respect to W, shape (m, d, d)."""
    return np.einsum("nc,ni,nj->cij", G, X, X) * shares(kernel, X.shape[1])


def sign_patterns(norm: str, m: int) -> np.ndarray:
    """Output directions whose nonnegative multiples make up the weights: rows s with W_c = sum_s s_c Z_s.

    l1, also of nonnegative weights: the unit vectors. l1/linf: all sign vectors up to a common sign.
    """
    if norm in ("l1", "nonnegative-l1"):
        return np.eye(m)
    return np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=m - 1)])


def conjugate(losses, G):
    """F*(G)."""
    return losses.conjugates_and_sizes(G, np.ones(1))[0][0]


def squared_length(W: np.ndarray, kernel: str) -> float:
    """The squared length of quadratic_outputs as functions: sum W_ij^2 over all i and j, or over the pairs i < j."""
    return float(np.sum(W * W * shares(kernel, W.shape[1])))


def matrix_optimum(fit, X, norm, strength, kernel="homogeneous", alphas=None, iterations=20000, tol=1e-11, ridge=0.0):
    """Minimum of F + strength * sum_s ||Z_s||_* over symmetric Z_s, by FISTA with eigenvalue thresholding.

    The penalty is the norm itself: a unit vector h with weight a along direction s costs |a| and adds a h h' to Z_s.
    Nonnegative weights make up the positive semidefinite Z_s.
    With a ``ridge`` also half of it times the squared length of the outputs as functions.
    With ``alphas`` (1 + d,) also over coefficients W (m, 1 + d) of a linear term, which cost alphas_j / 2 ||w_j||^2.
    """
    S, (n, d), m = sign_patterns(norm, fit.n_outputs), X.shape, fit.n_outputs
    alphas = np.zeros(0) if alphas is None else alphas
    ones = np.hstack([np.ones((n, 1)), X])[:, : len(alphas)]
    Z = np.zeros(len(S) * d * d + m * len(alphas))
    Y, t, L = Z, 1.0, 1.0

    def parts(Z):
        return Z[: len(S) * d * d].reshape(-1, d, d), Z[len(S) * d * d :].reshape(m, -1)

    def smooth(Z):
        Z, W = parts(Z)
        forms = np.tensordot(S.T, Z, 1)
        value, G = fit.value_gradient(quadratic_outputs(X, forms, kernel) + ones @ W.T)
        of_forms = pulled_back(X, G, kernel) + ridge * forms * shares(kernel, d)
        gradient = np.tensordot(S, of_forms, 1), G.T @ ones + alphas * W
        penalties = 0.5 * np.sum(alphas * W**2) + 0.5 * ridge * squared_length(forms, kernel)
        return value + penalties, np.concatenate([part.ravel() for part in gradient])

    def threshold(Z, step):
        Z, W = parts(Z)
        values, vectors = np.linalg.eigh(Z)
        signs = 1.0 if norm == "nonnegative-l1" else np.sign(values)
        values = signs * np.maximum(signs * values - step, 0.0)
        new = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
        return np.concatenate([new.ravel(), W.ravel()]), float(np.abs(values).sum())

    best = smooth(Z)[0]
    quiet = 0
    for _ in range(iterations):
        value, gradient = smooth(Y)
        while True:
            new, nuclear = threshold(Y - gradient / L, strength / L)
            step = new - Y
            loss = smooth(new)[0]
            if loss <= value + np.vdot(gradient, step) + 0.5 * L * np.vdot(step, step) + 1e-13 * abs(value):
                break
            L *= 2.0
        objective = loss + strength * nuclear
        quiet = quiet + 1 if best - objective <= tol * abs(best) else 0
        if np.vdot(Y - new, new - Z) > 0:
            t = 1.0
        t_new = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        Y = new + (t - 1) / t_new * (new - Z)
        Z, t, best = new, t_new, min(best, objective)
        if quiet > 50:
            break
    return best


def nuclear_minimiser(gradient, shape, curvature, strength, steps=3_000):
    """Minimise a smooth function plus strength * ||W||_* by accelerated proximal steps, with restarts."""
    W = V = np.zeros(shape)
    momentum = 1.0
    for _ in range(steps):
        U, values, right = np.linalg.svd(V - gradient(V) / curvature, full_matrices=False)
        following = (U * np.maximum(values - strength / curvature, 0.0)) @ right
        if np.sum((V - following) * (following - W)) > 0.0:
            momentum = 1.0
            V = W
            continue
        larger = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        V = following + (momentum - 1.0) / larger * (following - W)
        moved = np.abs(following - W).max()
        W = following
        momentum = larger
        if moved < 1e-15:
            break
    return W

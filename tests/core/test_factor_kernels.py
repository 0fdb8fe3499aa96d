"""The kernels of any degree against sums over all combinations of features, in exact fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from properties import examples, seeds
from scipy import sparse

from mopn.compiled import kernels as compiled
from mopn.compiled.jit import WIDTH, jit
from mopn.compiled.sweeps import sweep
from mopn.core.factor_kernels import AllSubsetsFactors, AnovaFactors, HomogeneousFactors, make_factor_kernel
from mopn.data.designs import make_design
from mopn.losses.losses import get_loss

RTOL = 1e-12


@jit()
def compiled_sweep(*arguments):
    """As in the loops of which it is a part."""
    return sweep(*arguments)


def fractions(values):
    return [Fraction(float(value)) for value in values]


def anova(rho, degree):
    """A^m of the products rho_j = p_j x_j, by its definition."""
    return sum((math.prod(group) for group in itertools.combinations(rho, degree)), Fraction(0))


def value(kind, p, x, degree, theta):
    p, x = fractions(p), fractions(x)
    rho = [a * b for a, b in zip(p, x, strict=True)]
    if kind == "anova":
        return sum(Fraction(float(t)) * anova(rho, u) for u, t in enumerate(theta, start=1) if t)
    if kind == "all-subsets":
        return math.prod(1 + r for r in rho)
    return sum(rho) ** degree


def derivative(kind, p, x, degree, theta, j):
    """The derivative with respect to p_j: all kernels but the last are affine in it."""
    if kind == "homogeneous":
        rho = sum(a * b for a, b in zip(fractions(p), fractions(x), strict=True))
        return degree * rho ** (degree - 1) * Fraction(float(x[j]))
    with_one, with_zero = np.array(p, dtype=float), np.array(p, dtype=float)
    with_one[j], with_zero[j] = 1.0, 0.0
    return value(kind, with_one, x, degree, theta) - value(kind, with_zero, x, degree, theta)


def make(kind, degree, theta):
    return make_factor_kernel(kind, degree, theta if kind == "anova" else None)


KINDS = ["anova", "all-subsets", "homogeneous"]


def samples(seed, n=5, d=7, k=11):
    rng = np.random.default_rng(seed)
    X, P = rng.standard_normal((n, d)), rng.standard_normal((k, d))
    X[rng.random(X.shape) < 0.3] = 0.0
    X[0] = 0.0
    return X, P


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array, sparse.csc_array], ids=["dense", "csr", "csc"])
@pytest.mark.parametrize("degree", [1, 2, 3, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_those_of_the_definition(kind, degree, storage):
    X, P = samples(degree, n=3)
    theta = np.random.default_rng(1).standard_normal(degree)
    kernel, design = make(kind, degree, theta), make_design(storage(X))
    scale = np.array([[value(kind, abs(p), abs(x), degree, abs(theta)) for p in P] for x in X], dtype=float)
    exact = np.array([[value(kind, p, x, degree, theta) for p in P] for x in X], dtype=float)
    assert np.all(np.abs(kernel.features(design, P) - exact) <= RTOL * scale)

    lams, slopes = np.random.default_rng(2).standard_normal(len(P)), np.random.default_rng(3).standard_normal(len(X))
    np.testing.assert_allclose(kernel.outputs(design, P, lams), exact @ lams, atol=RTOL * (scale @ abs(lams)).max())
    gradient, bound = np.zeros_like(P), np.zeros_like(P)
    for (i, x), (s, p), j in itertools.product(enumerate(X), enumerate(P), range(X.shape[1])):
        gradient[s, j] += slopes[i] * lams[s] * float(derivative(kind, p, x, degree, theta, j))
        bound[s, j] += abs(slopes[i] * lams[s]) * float(derivative(kind, abs(p), abs(x), degree, abs(theta), j))
    assert np.all(np.abs(kernel.gradient(design, P, lams, slopes) - gradient) <= RTOL * bound)


@examples(30)
@given(seed=seeds, degree=st.integers(1, 10), large=st.sampled_from([1.0, 1e4, 1e-4]), full=st.booleans())
def test_a_product_that_dominates_costs_no_digits(seed, degree, large, full):
    """Errors are measured against the kernel of the moduli; the degree may exceed the number of features."""
    X, P = samples(seed, n=2, d=6, k=2)
    X[:, 0], P[:, 0] = 1.0, large
    if full:
        X[X == 0.0] = 0.5
    kernel, design = make_factor_kernel("anova", degree), make_design(X)
    theta = np.eye(degree)[-1]
    features = kernel.features(design, P)
    for (i, x), (s, p) in itertools.product(enumerate(X), enumerate(P)):
        exact, scale = (value("anova", f(p), f(x), degree, theta) for f in (np.array, np.abs))
        assert abs(Fraction(float(features[i, s])) - exact) <= Fraction(RTOL) * scale
        gradient = kernel.gradient(make_design(x[None]), p[None], np.ones(1), np.ones(1))[0]
        for j in range(X.shape[1]):
            exact, scale = (derivative("anova", f(p), f(x), degree, theta, j) for f in (np.array, np.abs))
            assert abs(Fraction(float(gradient[j])) - exact) <= Fraction(RTOL) * scale


def test_the_all_subsets_gradient_needs_no_division():
    X, P = np.array([[1.0, 2.0, 3.0]]), np.array([[-1.0, 0.5, -1.0]])
    gradient = AllSubsetsFactors().gradient(make_design(X), P, np.ones(1), np.ones(1))
    np.testing.assert_allclose(gradient, [[1.0 * 2.0 * -2.0, 2.0 * 0.0 * -2.0, 3.0 * 0.0 * 2.0]])


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_dummy_features_are_unrolled_into_theta(degree):
    X, P = samples(5)
    gamma = np.random.default_rng(6).standard_normal((len(P), degree - 1))
    theta = compiled.theta_of_dummies(gamma)
    assert theta.shape == (len(P), degree)
    whole = make_factor_kernel("anova", degree).features(make_design(X, degree - 1), np.hstack([gamma, P]))
    for s, (row, p) in enumerate(zip(theta, P, strict=True)):
        constant = np.prod(gamma[s]) if degree - 1 >= degree else 0.0
        parts = AnovaFactors(row).features(make_design(X), p[None])[:, 0] + constant
        np.testing.assert_allclose(whole[:, s], parts, atol=1e-12)


def test_a_dummy_feature_makes_the_homogeneous_kernel_polynomial():
    X, P = samples(7)
    gamma = np.linspace(-1, 1, len(P))
    features = HomogeneousFactors(3).features(make_design(X, 1), np.hstack([gamma[:, None], P]))
    np.testing.assert_allclose(features, (gamma + X @ P.T) ** 3, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cubic", 2), "kernel must be one of"),
        (("anova", 0), "degree must be an integer >= 1"),
        (("anova", 2.0), "degree must be an integer >= 1"),
        (("anova", 2, [1.0]), "theta must hold 2 numbers"),
        (("anova", 2, [1.0, np.nan]), "theta contains NaN or infinity"),
        (("all-subsets", 2, [1.0, 1.0]), "theta weighs the degrees"),
    ],
)
def test_bad_kernels(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_factor_kernel(*arguments)


@pytest.mark.parametrize("n", [1, 1023, 1025, 2500])
@pytest.mark.parametrize("degree", [2, 3, 5, 12])
def test_degrees_from_columns_and_from_rows(n, degree):
    """Against the features of each degree; 1,024 rows are a block, and degree 12 has more coefficients than a tuple."""
    rng = np.random.default_rng(n)
    design, P = make_design(rng.uniform(-1, 1, (n, 14))), rng.standard_normal((3, 14))
    theta = AnovaFactors(np.eye(degree)[-1]).coefficients
    out = np.full((2, WIDTH, degree - 1, n), np.nan)
    compiled.anova_degrees_of_columns(design.column_lines, P, out[0])
    compiled.anova_degrees(theta, design.row_lines, compiled.pack(P), 0, out[1], 0, n)
    for t in range(1, degree):
        exact = make_factor_kernel("anova", t).features(design, P)
        scale = make_factor_kernel("anova", t).features(design.absolute, np.abs(P))
        for found in out:
            assert np.all(np.abs(found[:3, t - 1].T - exact) <= RTOL * scale)


def found_derivative(theta, design, weights, state, p, j):
    """Return the modulus of the derivative by p_j, with the slopes of the losses in ``state``.

    Only the ridge has curvature, a power of two so small that its slope vanishes: its bits are exact.
    """
    n, ridge = len(state), 2.0**-400
    losses = (get_loss("squared").compiled, 0.0, np.zeros(n), np.zeros(n), weights)
    lines = design.column_lines, design.row_lines
    product = compiled_sweep(theta, None, *lines, *losses, state, p.copy(), 1.0, ridge, j, j + 1)
    return product**0.5 * 2.0**-200


@examples(6)
@given(st.integers(0, 10**6), st.sampled_from([2, 3, 10]), st.sampled_from([1.0, 1e4, 1e-4, 0.0]))
# By chance the sum over all features is small there, and that without one of them is not.
@example(4947, 10, 1e-4)
@example(3698, 10, 0.0)
def test_the_derivatives_of_coordinate_descent_keep_their_digits(seed, degree, large):
    """In O(m) from A^1, ..., A^{m-1}, or from the row where that cancels: against the derivative of the moduli."""
    rng = np.random.default_rng(seed)
    x, p = rng.uniform(-1, 1, 12), rng.uniform(-1, 1, 12)
    x[0], p[0], x[5] = 1.0, large, 0.0
    theta = tuple(np.eye(degree)[-1].tolist())
    design = make_design(x[None])
    degrees = np.zeros((WIDTH, degree - 1, 1))
    compiled.anova_degrees(theta, design.row_lines, compiled.pack(p[None]), 0, degrees, 0, 1)
    for j in range(len(x)):
        state = np.concatenate([[1.0], degrees[0, :, 0]])[None]
        found = found_derivative(theta, design, None, state, p, j)
        exact, scale = (derivative("anova", f(p), f(x), degree, np.eye(degree)[-1], j) for f in (np.array, np.abs))
        assert abs(Fraction(found) - abs(exact)) <= Fraction(RTOL) * scale + Fraction(2.0**-390)


def test_derivatives_that_rounding_took_whole_come_from_the_rows():
    """All sums vanish, or are infinite for a sample of no weight: the rows decide all the same."""
    design, p = make_design(np.ones((40, 3))), np.array([1.0, 1e-17, 1e-17])
    # A^1 of a row is 1, as the others' 2e-17 are rounded away; the derivative by p_0 is just these.
    found = found_derivative((0.0, 1.0), design, None, np.ones((40, 2)), p, 0)
    assert found == pytest.approx(40 * 2e-17, rel=1e-14)
    design, p = make_design(np.array([[1.0, 2.0], [1.0, 3.0]])), np.array([-1.0, 0.5])
    # The factor 1 + p_0 x_0 is 0, and so is the kernel; the derivative of the first row's is 1 + p_1 x_1.
    state = np.array([[1.0, 0.0], [0.0, 0.0]])
    assert found_derivative(None, design, np.array([1.0, 0.0]), state, p, 0) == pytest.approx(2.0, rel=1e-15)

"""L-BFGS: minimisers, bounds, and the conditions on its steps."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st
from properties import seeds, tried
from scipy.optimize import lsq_linear

from mopn.solvers import LBFGS
from mopn.solvers.interface import Evaluation
from mopn.solvers.lbfgs import OnGrid, _CorrectionPairs, on_grid, quasi_newton


def least_squares(A, b):
    """Return |A x - b|^2 / 2 as a function."""

    def function(x):
        residual = A @ x - b
        return Evaluation(0.5 * float(residual @ residual), A.T @ residual)

    return function


def rosenbrock(x):
    a, b = x[1:] - x[:-1] ** 2, 1.0 - x[:-1]
    gradient = np.zeros_like(x)
    gradient[1:] += 200.0 * a
    gradient[:-1] -= 400.0 * a * x[:-1] + 2.0 * b
    return Evaluation(float(100.0 * a @ a + b @ b), gradient)


def run(function, x, memory=10, bounds=None, steps=500):
    return list(itertools.islice(quasi_newton(function, x, memory, bounds), steps))


@tried(25, seed=seeds, memory=st.integers(1, 20), condition=st.sampled_from([1.0, 1e2, 1e4]))
def test_least_squares_within_bounds(seed, memory, condition):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, 6)) * np.geomspace(1.0, np.sqrt(condition), 6)
    b, lower = rng.standard_normal(8), -rng.uniform(0.0, 0.5, 6)
    upper = lower + rng.uniform(0.1, 1.0, 6)
    exact = lsq_linear(A, b, bounds=(lower, upper), tol=1e-14, max_iter=1000, method="bvls")
    enough = exact.cost + 1e-7 * max(exact.cost, 1.0)
    iterates = quasi_newton(least_squares(A, b), np.clip(np.zeros(6), lower, upper), memory, (lower, upper))
    # With one pair the method promises no more than steepest descent: thousands of steps in a narrow valley.
    for x, at, _ in itertools.islice(iterates, 20_000):
        assert np.all((lower <= x) & (x <= upper))
        if at.value <= enough:
            return
    raise AssertionError(at.value - exact.cost)


@pytest.mark.parametrize("near", [0.0, 1e-12, 1e-6])
def test_a_start_that_is_nearly_at_bounds_is_no_end(near):
    """In a metric that couples all variables, the step is cut off at once by those whose bound is so near."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        A, b = rng.standard_normal((30, 8)) + 3.0 * rng.standard_normal((30, 1)), 10.0 * rng.standard_normal(30)
        lower, upper = np.zeros(8), np.ones(8)
        exact = lsq_linear(A, b, bounds=(lower, upper), tol=1e-14, method="bvls")
        start = np.where(rng.random(8) < 0.5, near, 1.0 - near)
        start[:2] = 0.5
        inverse = Inverse(A.T @ A)
        iterates = quasi_newton(least_squares(A, b), start, 10, (lower, upper), metric=lambda x, i=inverse: i)
        *_, (_, at, _) = itertools.islice(iterates, 200)
        assert at.value <= exact.cost * (1 + 1e-9)


@pytest.mark.parametrize("memory", [3, 10, 30])
def test_a_curved_valley(memory):
    iterates = run(rosenbrock, np.full(10, -1.0), memory, steps=2000)
    _, at, _ = iterates[-1]
    # Either of the function's two minima in ten dimensions is stationary; the last iterate is one, to rounding.
    assert np.abs(at.gradient).max() <= 1e-5
    assert at.value < 4.0
    assert len(iterates) < 500


def test_steps_fulfil_the_weak_wolfe_conditions():
    iterates = run(rosenbrock, np.full(6, 0.5), steps=60)
    for (x, at, _), (x_new, at_new, _) in itertools.pairwise(iterates):
        step = x_new - x
        slope = at.gradient @ step
        assert slope < 0
        assert at_new.value <= at.value + 1e-4 * slope + 1e-13 * abs(at.value)
        assert at_new.gradient @ step >= 0.9 * slope


def test_the_decrease_that_is_left():
    """Infinite while the curvature is unknown; then the decrease of the next step, here exact; 0 at a minimum."""
    A, b = np.eye(2), np.array([2.0, 0.5])
    bounds = np.zeros(2), np.ones(2)
    iterates = run(least_squares(A, b), np.array([1.0, 0.0]), bounds=bounds)
    # The first variable presses on its bound; the second may go on by 0.5.
    assert iterates[0][2] == np.inf
    assert iterates[-1][0] == pytest.approx([1.0, 0.5])
    assert iterates[-1][2] == 0.0
    # A quadratic with one eigenvalue: one pair makes the step exact, and the product is twice the decrease.
    iterates = run(least_squares(3.0 * np.eye(4), np.full(4, 60.0)), np.zeros(4))
    (_, at, left), (_, after, _) = iterates[1:3]
    assert left == pytest.approx(2.0 * (at.value - after.value), rel=1e-9)


def test_a_stationary_start_is_all_there_is():
    assert len(run(rosenbrock, np.ones(4))) == 1
    assert len(run(lambda x: Evaluation(0.0, np.zeros_like(x)), np.zeros(0))) == 1


def test_infinite_values_are_stepped_back_from():
    """A barrier: the function is infinite where it has no logarithm."""

    def function(x):
        if x[0] <= 0:
            return Evaluation(np.inf, np.full(1, np.nan))
        return Evaluation(float(x[0] - 1e-3 * np.log(x[0])), 1.0 - 1e-3 / x)

    x, at, _ = run(function, np.array([3.0]))[-1]
    assert x[0] == pytest.approx(1e-3, rel=1e-4)
    assert np.isfinite(at.value)


@pytest.mark.parametrize(("size", "memory"), [(10, 20), (60_000, 17), (10**6, 10)])
def test_the_pairs_kept_by_default_take_16_mib_at_most_but_ten(size, memory):
    assert LBFGS()._number_of_pairs(np.zeros(size)) == memory


def test_pairs_whose_free_part_is_rounding_are_left_out():
    """The inner product of a pair lies in the held directions; their difference is rounding, and no curvature."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        s, y = rng.standard_normal((2, 1000))
        free = np.arange(1000) < 10
        y[free] = 0.0
        # The held directions have next to no inner product, however long both are.
        y[~free] -= (s[~free] @ y[~free]) / (s[~free] @ s[~free]) * s[~free]
        y[~free] += 2e-10 * np.linalg.norm(y) / np.linalg.norm(s) * s[~free]
        pairs = _CorrectionPairs(5, np.ones(1000))
        pairs.add(s, y)
        gradient = rng.standard_normal(1000)
        d = pairs.direction(Evaluation(1.0, gradient), np.flatnonzero(~free))
        assert np.all(d[~free] == 0.0)
        assert gradient @ d < 0.0
        np.testing.assert_allclose(d[free] * np.linalg.norm(gradient[free]), -gradient[free] * np.linalg.norm(d[free]))


@pytest.mark.parametrize("bounded", [False, True])
def test_scales_stand_for_other_variables(bounded):
    """Powers of two are not rounded, so that both runs go through the same points."""
    rng = np.random.default_rng(5)
    A, b, x = rng.standard_normal((30, 6)), rng.standard_normal(30), np.full(6, 0.5)
    scales = 2.0 ** np.array([-20, -3, 0, 1, 7, 20])
    bounds = (np.zeros(6), np.ones(6)) if bounded else None
    of_scaled = least_squares(A / scales, b)
    plain = run(least_squares(A, b), x, bounds=bounds, steps=20)
    scaled_bounds = (bounds[0] * scales, bounds[1] * scales) if bounds else None
    iterates = list(itertools.islice(quasi_newton(of_scaled, x * scales, 10, scaled_bounds, scales), 20))
    assert len(iterates) == len(plain)
    for (x, at, _), (x_scaled, at_scaled, _) in zip(plain, iterates, strict=True):
        np.testing.assert_allclose(x_scaled, x * scales, rtol=1e-8, atol=1e-8 * scales.max() * 1e-20)
        assert at_scaled.value == pytest.approx(at.value, rel=1e-12)


class Inverse:
    """The inverse of a matrix, among free variables."""

    def __init__(self, matrix):
        self.matrix = matrix

    def solve(self, gradient, held):
        free, step = np.setdiff1d(np.arange(len(gradient)), held), np.zeros_like(gradient)
        step[free] = np.linalg.solve(self.matrix[np.ix_(free, free)], gradient[free])
        return step


@pytest.mark.parametrize("bounded", [False, True])
def test_with_the_hessian_as_metric_it_is_newtons_method(bounded):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 8)) * np.geomspace(1.0, 1e4, 8), rng.standard_normal(30)
    bounds = (np.full(8, -0.01), np.full(8, 0.02)) if bounded else None
    exact = lsq_linear(A, b, bounds=bounds or (-np.inf, np.inf), tol=1e-14, method="bvls")
    iterates = quasi_newton(least_squares(A, b), np.zeros(8), 10, bounds, metric=lambda x: Inverse(A.T @ A))
    steps = 10 if bounded else 2
    *_, (_, at, _) = itertools.islice(iterates, steps)
    assert at.value <= exact.cost * (1 + 1e-10)


def test_the_metric_is_renewed():
    asked = []

    def metric(x):
        asked.append(x.copy())
        return None if len(asked) == 1 else Inverse(np.eye(len(x)))

    iterates = [x for x, *_ in itertools.islice(quasi_newton(rosenbrock, np.full(10, -1.0), 3, metric=metric), 120)]
    assert len(asked) == len(range(0, len(iterates), 50)) > 1
    np.testing.assert_array_equal(asked[1], iterates[50])


SIZES = 10.0 ** np.arange(-300, 301, 50)


def test_points_are_the_nearest_of_24_bits():
    x = np.append(np.random.default_rng(0).standard_normal(100), [0.0, 1.0, -1.0])
    np.testing.assert_array_equal(on_grid(x), x.astype(np.float32).astype(float))
    for size in SIZES:
        np.testing.assert_allclose(on_grid(size * x), size * x, rtol=2.0**-24)


@pytest.mark.parametrize("size", SIZES)
def test_gradients_do_not_see_rounding_errors_and_are_near(size):
    rng = np.random.default_rng(0)
    scales, gradient = np.exp(rng.uniform(-3, 3, 50)), rng.standard_normal(50) * size
    found = []
    for noise in (0.0, 1e-14):
        errors = 1.0 + noise * rng.standard_normal(50)
        at = OnGrid(lambda x, e=errors: Evaluation(size * e[0], gradient / scales * e), scales * errors)(scales)
        found.append(at)
    np.testing.assert_array_equal(found[0].gradient, found[1].gradient)
    assert found[0].value == found[1].value
    np.testing.assert_allclose(found[0].gradient * scales, gradient, atol=1e-6 * size)
    assert found[0].value == pytest.approx(size, rel=1e-9)


def test_what_is_not_finite_stays():
    assert OnGrid(lambda x: Evaluation(np.inf, np.zeros(2)), np.ones(2))(np.ones(2)).value == np.inf

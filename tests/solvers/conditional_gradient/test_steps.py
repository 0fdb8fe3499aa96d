"""Plain steps: on segments of one variable, whose best step a fine grid knows; and on a problem of known minimum."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from fakes import FakeMonitor
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from mopn.solvers import PlainStep
from mopn.solvers.conditional_gradient.schedule import Grow
from mopn.solvers.conditional_gradient.steps import line_search


@dataclass
class Line:
    """sum_i weights_i sqrt(1 + (slopes_i gamma - offsets_i)^2), whose second derivative is bounded and varies."""

    slopes: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray
    limit: float = 1.0

    def values(self, gammas):
        return np.sqrt(1.0 + (gammas[:, None] * self.slopes - self.offsets) ** 2) @ self.weights

    def value(self, gamma):
        return float(self.values(np.array([gamma]))[0])

    @property
    def gap(self):
        return float(np.sum(self.weights * self.slopes * self.offsets / np.sqrt(1.0 + self.offsets**2)))

    @property
    def curvature(self):
        return float(self.weights.max())

    @property
    def squared_length(self):
        return float(np.sum(self.slopes**2))

    def point(self, gamma):
        return gamma


def segment(value, gap=1.0, curvature=1.0):
    """The way of a function whose gap and curvature are as stated."""
    fields = {"value": value, "gap": gap, "curvature": curvature, "squared_length": 1.0, "limit": 1.0}
    return SimpleNamespace(**fields, point=lambda gamma: gamma)


def lines(limit=1.0, scale=1.0):
    """Lines with offsets up to 3, far away where the ``scale`` of the slopes is large."""
    n = 4

    def line(seed):
        rng = np.random.default_rng(seed)
        return Line(scale * rng.standard_normal(n), 3.0 * rng.standard_normal(n), rng.uniform(0.0, 1.0, n), limit)

    return st.integers(0, 10**6).map(line)


# Limits of steps towards a vertex, of pairwise steps, and of away steps.
LIMITS = [0.0, 1e-9, 0.03, 1.0, 50.0]
every_limit = pytest.mark.parametrize("limit", LIMITS)


def best_on_a_grid(line):
    """Least value over a grid as fine at tiny steps as at long ones."""
    grid = np.concatenate([[0.0], np.geomspace(1e-12, 1.0, 4000), np.linspace(0.0, 1.0, 4000)]) * line.limit
    return line.values(grid).min()


@every_limit
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_line_search_finds_the_best_step(limit, scale):
    """With long slopes the best step is 1e-6 of the way."""

    @examples(5)
    @given(lines(limit, scale))
    def check(line):
        gamma = line_search(line)
        assert 0.0 <= gamma <= limit
        assert line.value(gamma) <= line.value(0.0)
        assert line.value(gamma) <= best_on_a_grid(line) + 1e-12 * line.value(0.0)

    check()


@pytest.mark.parametrize("step", [1e-9, 1e-4, 0.5, 0.97])
@pytest.mark.parametrize("flatter", [1.0, 1e3, 1e8])
def test_line_search_of_a_parabola(step, flatter):
    """The smoothness constant may promise a step that is many times too short."""
    parabola = segment(lambda gamma: 0.5 / step * (gamma - step) ** 2 - 0.5 * step, curvature=flatter / step)
    assert line_search(parabola) == pytest.approx(step, rel=1e-6)


def test_line_search_stays_where_no_step_is_better():
    assert line_search(Line(np.array([1.0]), np.array([-1.0]), np.array([1.0]))) == 0.0
    flat = Line(np.zeros(1), np.ones(1), np.ones(1))
    assert flat.value(line_search(flat)) == flat.value(0.0)
    # Uphill, with a gap that is all rounding errors.
    assert line_search(segment(lambda gamma: 1.0 + gamma, gap=1e-18, curvature=1e-18)) == 0.0


@dataclass
class OneSegment:
    """A problem whose steps are all taken on one line."""

    line: Line

    def segment(self, point, at, units, *, least):
        self.least = least
        return self.line


def stepper(rule, problem):
    return PlainStep(rule).begin(problem, FakeMonitor(), Grow(None, 1, False))


@dataclass
class At:
    value: float


def test_open_loop():
    steps = stepper("open-loop", OneSegment(Line(np.ones(1), np.ones(1), np.ones(1))))
    assert [steps.insert(None, At(1.0), None) for _ in range(4)] == [1.0, 2 / 3, 2 / 4, 2 / 5]


@every_limit
@examples(5)
@given(data=st.data())
def test_short_steps_decrease_by_what_their_model_promises(limit, data):
    line = data.draw(lines(limit))
    # The first constant is far too small: it has to grow.
    steps = stepper("short", OneSegment(line))
    steps.curvature = 1e-6
    gamma = steps.insert(None, At(1.0), None)
    assert 0.0 <= gamma <= limit
    if line.gap <= 0:
        assert gamma == 0.0
        return
    # A step with the model's constant L gains gamma gap - gamma^2 L ||D||^2 / 2 >= gamma gap / 2.
    assert line.value(gamma) <= line.value(0.0) - 0.5 * gamma * line.gap + 1e-12 * line.value(0.0)
    # The constant that backtracking ends with is at most twice the segment's, so the step is not tiny.
    promised = min(limit, line.gap / (2.0 * line.curvature * line.squared_length))
    assert gamma >= promised * (1.0 - 1e-12)


def test_short_steps_remember_the_smoothness():
    """The constant starts from the segment's, here twice the curvature, and is halved before every step."""
    steps = stepper("short", OneSegment(segment(lambda gamma: 2.0 * gamma**2 - gamma, curvature=8.0)))
    assert [steps.insert(None, At(1.0), None) for _ in range(3)] == [1 / 8, 1 / 4, 1 / 4]


def test_a_short_step_near_the_optimum_ends():
    """No constant makes a model that lies above rounding errors: backtracking must not go on for ever."""
    asked = []
    rough = segment(lambda gamma: asked.append(gamma) or 1.0 + 1e-12 * (gamma != 0.0), gap=1e-10)
    gamma = stepper("short", OneSegment(rough)).insert(None, At(1.0), None)
    # A gain of 1e-16, relative, is none.
    assert gamma * 1e-10 <= 1e-16
    assert len(asked) < 50


def test_steps_know_the_least_objective_so_far():
    """It bounds the norm of a minimiser under a penalty."""
    problem = OneSegment(Line(np.ones(1), np.ones(1), np.ones(1)))
    steps, seen = stepper("open-loop", problem), []
    for value in (5.0, 7.0, 3.0):
        steps.insert(None, At(value), None)
        seen.append(problem.least)
    assert seen == [5.0, 5.0, 3.0]

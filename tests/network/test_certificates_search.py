"""Certificates against minima in extended precision; ``python -m benchmarks.certificates.search`` searches on."""

import numpy as np
import pytest
from mpmath import mp, mpf

import mopn
from benchmarks.certificates.drawn_problems import LOSSES, draw, loss_and_slope, minimise
from benchmarks.certificates.search import KINDS, start_violations
from mopn.data.losses_of_rows import Losses

EPS = np.finfo(float).eps


@pytest.mark.filterwarnings("ignore:arithmetic.* change class")
@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_draw_has_a_false_certificate(kind, rounds):
    """A slice of the search; of kinds that take long, fewer draws."""
    found, one_in = KINDS[kind]
    for k in range(-(-rounds // one_in)):
        assert list(found(np.random.default_rng((rounds, k)))) == []


def test_the_search_finds_starts_that_are_known():
    assert any(list(start_violations(np.random.default_rng((1, k)), seed=0)) for k in range(3))


@pytest.mark.parametrize("weight", [1e8, 1e12, 1e16])
@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge", "binary-logistic"])
def test_a_heavy_sample_keeps_its_small_gradient(loss, weight):
    """Near the minimum of a heavy and a light sample that pull apart, a gradient of 1 / weight decides."""
    X, weights = np.array([[1.0], [0.25]]), np.array([weight, 1.0])
    y = np.array([1.0, -1.0]) if loss == "binary-logistic" else np.array([0, 1])
    problem = mopn.NetworkProblem(X, y, loss=loss, norm="l1", strength=1.0, sample_weight=weights)
    with mp.workdps(40):
        rows = [(sign, mpf(x) ** 2, mpf(0), mpf(w)) for sign, x, w in zip((1, -1), X[:, 0], weights, strict=True)]
        best, minimum = minimise(loss, rows, mpf(1))
        width = min(np.sqrt(EPS * weight), 0.5)
        for t in np.linspace(float(best) - width, float(best) + width, 41):
            V = [[t]] if loss == "binary-logistic" else [[t / 2, -t / 2]]
            measured = mopn.certify(problem, [[1.0]], V)
            assert mpf(measured.fun) - minimum <= measured.restricted_gap <= measured.gap


@pytest.mark.parametrize("loss", LOSSES)
def test_conjugates_err_by_no_more_than_is_granted(loss):
    """F* at scaled gradients of weighted samples against 40 digits at the same point."""
    rng, n, of_labels = np.random.default_rng(0), 12, loss in LOSSES[:3]
    labels, signs = np.arange(n) % 2, rng.choice([-1.0, 1.0], (n, 1))
    weights = np.power(10.0, rng.uniform(-8, 16, n))
    fit = Losses.of_data(loss, labels if of_labels else signs, n, weights)
    outputs = rng.choice([1.0, 30.0], (n, 2 if of_labels else 1)) * rng.standard_normal((n, 2 if of_labels else 1))
    G = fit.value_gradient(outputs)[1]
    for scale in (0.3, 0.99, min(fit.max_scale(G), 1.7)):
        D = scale * G
        # The slope in the own margin, or in y o: -D_iy is the sum of the others.
        slopes = D[np.arange(n), 1 - labels][:, None] if of_labels else -signs * D
        with mp.workdps(40):
            exact = mpf(0)
            for i in range(n):
                weight = mpf(weights[i])
                a = mpf(slopes[i, 0]) / weight
                exact += weight * conjugate(loss, min(a, mpf(1)) if "squared" not in loss else a, signs[i])
        (value,), (size,) = fit.conjugates_and_sizes(G, np.array([scale]))
        assert abs(mpf(value) - exact) <= (n + 64) * G.shape[1] * EPS * (size + 2 * scale * fit.slope_size(G))


def conjugate(loss, a, y):
    """l*(-a) of a loss of y o, or of the margin."""
    if loss == "squared":
        return a * a / 2 - a * mpf(float(y[0])) ** 2
    if "squared-hinge" in loss:
        return a * a / 4 - a
    entropy = (a * mp.log(a) if a > 0 else mpf(0)) + ((1 - a) * mp.log(1 - a) if a < 1 else mpf(0))
    return entropy - (a if loss == "smoothed-hinge" else 0)


def test_references_are_convex_conjugates():
    """The two references of this file and of the search fit each other: l(o) + l*(l'(o)) = o l'(o)."""
    with mp.workdps(40):
        for loss in LOSSES:
            for o in (-3.0, 0.2, 5.0):
                value, slope = loss_and_slope(loss, 1.0, mpf(o))
                assert abs(value + conjugate(loss, -slope, [1.0]) - slope * o) < 1e-30


@pytest.mark.slow
def test_gaps_are_not_loose():
    """At the minimum of an ordinary problem the gap is rounding alone."""
    found = []
    for k in range(20):
        with mp.workdps(40):
            drawn = draw(np.random.default_rng((0, k)))
        if drawn.problem.losses.in_memory.weights.max() <= 2.0 and drawn.minimum > 0:
            measured = mopn.certify(drawn.problem, drawn.basis, (1.0 - EPS) * drawn.weights)
            found.append(measured.gap / measured.fun)
    assert len(found) > 5
    assert max(found) <= 1e-9

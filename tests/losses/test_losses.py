"""Losses: values, gradients, conjugates and second derivatives against exact arithmetic, duality and differences."""

import math
from decimal import Decimal, localcontext
from functools import partial

import numpy as np
import pytest
from own_losses import Huber
from properties import generators, tried
from reference import by_differences, on_grid, targets_of
from scipy.special import xlogy

from mopn.data.losses_of_rows import Losses
from mopn.losses.hessians import Hessian, Weighted
from mopn.losses.loss import LINKS
from mopn.losses.losses import LOSSES, get_loss

NAMES = sorted(LOSSES)
MULTICLASS = [name for name in NAMES if LOSSES[name].targets == "labels"]
SIZES = [1, 2, 5]
# The losses whose conjugate has a domain that a scaled gradient can leave; those with probabilities.
PROBABILITIES = ["logistic", "smoothed-hinge", "binary-logistic"]
SLOPES = {"huber": (-1.0, 1.0), "quantile": (-0.5, 0.5)}
BOUNDED = [*PROBABILITIES, *SLOPES]

every_loss = pytest.mark.parametrize("name", NAMES)
every_size = pytest.mark.parametrize("m", SIZES)
varied = partial(tried, 25, rng=generators)


def every_case(test):
    """All losses and numbers of outputs, tried on random numbers."""
    return every_loss(every_size(varied()(test)))


def draw(loss, rng, n, m, scale=2.0):
    """Targets that the loss takes, and outputs on a grid, so that margins are exact, even close to a kink.

    Every other row is integer: ties, and margins that lie on a kink.
    """
    out = on_grid(scale * rng.standard_normal((n, m)))
    out[::2] = np.round(out[::2])
    return targets_of(loss, rng, n, m), out


def dual_points(loss, rng, y, m):
    """Random points of the conjugate's domain, from the table of conjugates; some on its edge."""
    n = len(y)
    rows = np.arange(n)
    if loss.name in ("logistic", "smoothed-hinge"):
        Q = rng.dirichlet(np.full(m, 0.5), size=n)
        Q[: n // 3] = np.eye(m)[rng.integers(m, size=n // 3)]
        Q[rows, y] -= 1.0
        return Q
    if loss.name == "squared-hinge":
        G = rng.exponential(2.0, size=(n, m)) * rng.integers(2, size=(n, m))
        G[rows, y] = 0.0
        G[rows, y] = -G.sum(axis=1)
        return G
    if loss.name == "squared":
        return 3.0 * rng.standard_normal((n, m))
    if loss.name in SLOPES:
        G = rng.uniform(*SLOPES[loss.name], size=(n, m))
        G[: n // 3] = rng.choice(SLOPES[loss.name], size=(n // 3, m))
        return G
    if loss.name == "poisson":
        return rng.exponential(2.0, size=(n, m)) * (rng.random((n, m)) < 0.7) - y
    a = rng.uniform(size=(n, m)) if loss.name == "binary-logistic" else rng.exponential(2.0, size=(n, m))
    a[: n // 3] = rng.integers(2, size=(n // 3, m))
    return -y * a


def exact(name, y, o):
    """Value and gradient of one row by the textbook formulas, with enough digits for 1 + exp(-margin).

    Beyond 1 + exp(-700) there is nothing for a float to keep.
    """
    with localcontext() as context:
        context.prec = min(360, 50 + 2 * math.ceil(np.abs(o).max()))
        o = [Decimal(float(v)) for v in o]
        if LOSSES[name].targets != "labels":
            terms = [exact_per_output(name, Decimal(float(t)), v) for t, v in zip(y, o, strict=True)]
            return float(sum(value for value, _ in terms)), [float(slope) for _, slope in terms]
        others = [c for c in range(len(o)) if c != y]
        if name == "squared-hinge":
            hinges = [max(1 + o[c] - o[y], Decimal(0)) for c in others]
            value, slopes = sum(h**2 for h in hinges), [2 * h for h in hinges]
        else:
            cost = Decimal(name == "smoothed-hinge")
            odds = [(cost + o[c] - o[y]).exp() for c in others]
            total = sum(odds, Decimal(1))
            value, slopes = total.ln(), [a / total for a in odds]
        gradient = [float(slope) for slope in slopes]
        gradient.insert(int(y), float(-sum(slopes)))
        return float(value), gradient


def exact_per_output(name, t, v):
    if name == "squared":
        return (v - t) ** 2 / 2, v - t
    if name in SLOPES:
        width = Decimal(1 if name == "huber" else 0.1)
        low, high = map(Decimal, SLOPES[name])
        slope = min(max((v - t) / width, low), high)
        return slope * (v - t) - width * slope**2 / 2, slope
    if name == "poisson":
        # Continued by the tangent.
        mean = min(v, Decimal(300)).exp()
        least = t - t * t.ln() if t else Decimal(0)
        return mean * (1 + max(v - 300, Decimal(0))) - t * v - least, mean - t
    if name == "binary-logistic":
        odds = (-t * v).exp()
        return (1 + odds).ln(), -t * odds / (1 + odds)
    hinge = max(1 - t * v, Decimal(0))
    return hinge**2, -2 * t * hinge


def check_exact(loss, y, out, rtol):
    """Compare with exact arithmetic; relative accuracy, so that tiny losses and gradients count too.

    For counts it is relative to the terms: near log y, which is rounded, differences have no relative accuracy.
    """
    atol = 1e-14 * y.size if loss.targets == "counts" else 1e-310
    values, G = loss.value_gradient(y, out)
    references = [exact(loss.name, *row) for row in zip(y, out, strict=True)]
    np.testing.assert_allclose(values, [value for value, _ in references], rtol=rtol, atol=atol)
    np.testing.assert_allclose(G, [gradient for _, gradient in references], rtol=rtol, atol=atol)


@every_case
def test_value_and_gradient_equal_exact_arithmetic(name, m, rng):
    y, out = draw(LOSSES[name], rng, 6, m)
    if name == "squared":
        # Away from o = y, where the difference has no relative accuracy.
        out = y + np.round(out) + 0.5
    check_exact(LOSSES[name], y, out, rtol=1e-14 * m)


@every_case
def test_memory_orders_and_types_of_labels_change_nothing(name, m, rng):
    loss = LOSSES[name]
    y, out = draw(loss, rng, 8, m)
    expected = loss.value_gradient(y, np.asfortranarray(out))
    small = y.astype(np.int8)
    for outputs in (out.copy("C"), np.hstack([out, out])[:, :m], np.asfortranarray(np.tile(out, (2, 1)))[:8]):
        values, G = loss.value_gradient(small if loss.targets == "labels" else np.asfortranarray(y), outputs)
        np.testing.assert_allclose(values, expected[0], rtol=1e-14)
        np.testing.assert_allclose(G, expected[1], rtol=1e-14)


@pytest.mark.parametrize("size", [1.0, 30.0, 80.0, 200.0, 1e4])
@pytest.mark.parametrize("name", [name for name in LOSSES if name != "poisson"])
def test_single_precision_overflows_no_sooner(name, size):
    """Outputs far beyond the exponents of single precision."""
    loss = LOSSES[name]
    y, out = draw(loss, np.random.default_rng(0), 8, 3)
    out = (size * np.sign(out)).astype(np.float32)
    single, double = (loss.value_gradient(y, outputs) for outputs in (out, out.astype(float)))
    for computed, expected in zip(single, double, strict=True):
        np.testing.assert_allclose(computed, expected, rtol=1e-4, atol=1e-6 * size)


@every_loss
@every_size
@pytest.mark.parametrize("size", [40.0, 700.0, 1e4])
def test_extreme_margins_are_finite_and_accurate(name, m, size):
    """log1p(exp(-40)) keeps its digits, and neither exp(1e4) nor (1e4)^2 breaks anything."""
    loss = LOSSES[name]
    out = size * np.vstack([np.eye(m), -np.eye(m), np.ones((1, m)), np.zeros((1, m))])
    out = np.repeat(out, m, axis=0)
    y = np.tile(np.arange(m), 2 * m + 2)
    if loss.targets != "labels":
        y = np.where(np.arange(len(out))[:, None] % 2, 1.0, 0.0 if loss.targets == "counts" else -1.0) * np.ones(m)
    # The exponential of a rounded argument of 1e4 would lose 4 digits; these margins are exact.
    check_exact(LOSSES[name], y, out, rtol=1e-13)
    G = loss.value_gradient(y, out)[1]
    conjugate = loss.conjugate(y, G)
    # Fenchel-Young with equality; the conjugate is a small difference of terms as large as <g, o>.
    by_duality = np.sum(G * out, axis=1) - loss.value(y, out)
    rtol = 1e-11 if loss.targets == "counts" else 0
    np.testing.assert_allclose(conjugate, by_duality, rtol=rtol, atol=1e-14 * m * size**2)
    if name in PROBABILITIES:
        np.testing.assert_allclose(conjugate, limits_of_conjugate(loss, y, G), rtol=1e-13, atol=1e-310)


def limits_of_conjugate(loss, y, G):
    """Sum q log q (and minus 1 - q_y) with the tiny q taken from the gradient itself."""
    total = np.zeros(len(G))
    for i, g in enumerate(G):
        if loss.targets == "labels":
            q = [v for c, v in enumerate(g) if c != y[i]]
            off = min(math.fsum(q), 1.0)
            total[i] = entropy([*q], off) - (loss.name == "smoothed-hinge") * off
        else:
            total[i] = sum(entropy([a], a) for a in np.abs(g))
    return total


def entropy(q, off):
    """Sum of v log v over q, and of 1 - off, whose logarithm keeps the digits of a small off."""
    rest = (1.0 - off) * math.log1p(-off) if off < 1 else 0.0
    return sum(v * math.log(v) for v in q if v > 0) + rest


@every_case
def test_value_is_that_of_value_gradient_and_at_least_zero(name, m, rng):
    loss = LOSSES[name]
    y, out = draw(loss, rng, 10, m)
    values, G = loss.value_gradient(y, out)
    np.testing.assert_array_equal(loss.value(y, out), values)
    assert values.shape == (10,)
    assert G.shape == (10, m)
    assert (values >= 0).all()


@every_case
def test_fenchel_young_inequality_at_dual_points_and_equality_at_the_gradient(name, m, rng):
    loss = LOSSES[name]
    y, out = draw(loss, rng, 60, m, scale=rng.choice([0.1, 1.0, 10.0]))
    values, gradient = loss.value_gradient(y, out)
    for G in (dual_points(loss, rng, y, m), gradient):
        slack = values + loss.conjugate(y, G) - np.sum(G * out, axis=1)
        size = 1e-14 * m * (1 + np.sum(np.abs(G * out), axis=1) + np.sum(G * G, axis=1))
        assert (slack >= -size).all()
    assert (slack <= size).all()


SMOOTH = [(n, m) for n in NAMES for m in SIZES if (m > 1 or n not in MULTICLASS) and n != "poisson"]


@pytest.mark.parametrize(("name", "m"), SMOOTH)
def test_smoothness_is_attained(name, m):
    """A too large constant makes every step too short: some pair of points must come within 1 % of it."""
    loss = LOSSES[name]
    y = np.zeros(1, dtype=int) if loss.targets == "labels" else -np.ones((1, m)) * (loss.targets == "signs")
    best = 0.0
    # All outputs tied, or the target's tied with one other (the cost of the smoothed hinge counted), the rest away.
    for o in (np.zeros(m), np.r_[0.0, 0.0, np.full(m, -40.0)][:m], np.r_[1.0, 0.0, np.full(m, -40.0)][:m]):
        columns = [loss.value_gradient(y, (o + s * e)[None])[1][0] for e in np.eye(m) for s in (1e-4, -1e-4)]
        hessian = np.subtract(columns[::2], columns[1::2]) / 2e-4
        best = max(best, np.linalg.norm(hessian, 2))
    assert 0.99 * loss.smoothness(m) <= best <= loss.smoothness(m) * (1 + 1e-6)


@every_case
def test_dual_points_lie_in_the_domain_and_near(name, m, rng):
    """Anywhere the answer obeys Fenchel and Young's inequality; in the domain it is the question itself."""
    loss = LOSSES[name]
    y = targets_of(loss, rng, 30, m)
    G = dual_points(loss, rng, y, m)
    np.testing.assert_allclose(loss.dual_point(y, G), G, rtol=1e-14, atol=1e-14)
    shift = 0.1 * rng.standard_normal(G.shape)
    inside = loss.dual_point(y, G + shift)
    np.testing.assert_allclose(loss.dual_point(y, inside), inside, rtol=1e-14, atol=1e-14)
    assert np.abs(inside - G).max() <= 2 * m * np.abs(shift).max()
    for _ in range(5):
        out = 3.0 * rng.standard_normal((30, m))
        sizes = 1.0 + np.abs(inside * out).sum(axis=1)
        assert np.all(loss.value(y, out) + loss.conjugate(y, inside) >= np.sum(inside * out, axis=1) - 1e-12 * sizes)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("m", [2, 5])
@varied()
def test_max_scale_is_the_edge_of_the_conjugates_domain(name, m, rng):
    """Within it s g lies in the domain of the table; a little beyond, <s g, o> - l(o) grows without limit."""
    loss = LOSSES[name]
    y, out = draw(loss, rng, 5, m)
    G = loss.value_gradient(y, out)[1]
    edge = loss.max_scale(y, G)
    assert dual_violation(loss, y, edge * G) <= 1e-15
    assert dual_violation(loss, y, 0.5 * edge * G) <= 1e-15
    assert dual_violation(loss, y, 1.01 * edge * G) >= 1e-3
    assert np.isfinite(loss.conjugate(y, edge * G)).all()
    # Along the rays +-t e_c, far out: some row exceeds any number beyond the edge and none within.
    far = 1e6 * np.vstack([np.eye(m), -np.eye(m)])
    for s, escapes in ((edge, False), (1.01 * edge, True)):
        rays = [s * G @ o - loss.value(y, np.tile(o, (5, 1))) for o in far]
        assert (np.max(rays) > 1e3) == escapes


def dual_violation(loss, y, G):
    """How far the dual point is outside the domain: q in the simplex, or a in [0, 1]."""
    if loss.name in SLOPES:
        low, high = SLOPES[loss.name]
        return max(np.max(low - G), np.max(G - high), 0.0)
    if loss.targets != "labels":
        a = -y * G
        return max(np.max(-a), np.max(a - 1.0), 0.0)
    Q = G + np.eye(G.shape[1])[y]
    assert np.abs(Q.sum(axis=1) - 1.0).max() <= 1e-14
    return max(np.max(-Q), 0.0)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (*BOUNDED, "poisson")])
@every_size
def test_max_scale_is_infinite_where_the_domain_is_a_cone(name, m):
    loss, rng = LOSSES[name], np.random.default_rng(3)
    y, out = draw(loss, rng, 20, m)
    G = loss.value_gradient(y, out)[1]
    assert loss.max_scale(y, G) == np.inf
    # Fenchel-Young holds at a gradient scaled far beyond 1.
    values, scaled = loss.value(y, out), 50.0 * G
    assert (values + loss.conjugate(y, scaled) >= np.sum(scaled * out, axis=1) - 1e-9).all()


@pytest.mark.parametrize("name", BOUNDED)
@every_size
def test_max_scale_of_a_zero_gradient_is_infinite(name, m):
    loss, G = LOSSES[name], np.zeros((4, m))
    y = targets_of(loss, np.random.default_rng(0), 4, m)
    assert loss.max_scale(y, G) == np.inf
    np.testing.assert_array_equal(loss.conjugate(y, G), 0.0)


def test_the_edge_of_the_domain_of_counts():
    """Slopes mean - y of at least -y: a gradient of -1 for y = 3 may be tripled; positive ones have no edge."""
    loss = LOSSES["poisson"]
    y, G = np.array([[3.0, 0.0], [8.0, 2.0]]), np.array([[-1.0, 5.0], [-2.0, 1.0]])
    assert loss.max_scale(y, G) == 3.0
    assert loss.max_scale(y, np.abs(G)) == np.inf
    np.testing.assert_allclose(loss.conjugate(y, -y), np.sum(y - xlogy(y, y), axis=1))


@pytest.mark.parametrize("m", SIZES)
def test_probabilities_are_the_gradients(m):
    """Logistic: gradient = p - e_y; binary logistic: gradient = p - [y = 1], output by output."""
    rng = np.random.default_rng(m)
    out = rng.choice([1.0, 1e4], size=(30, 1)) * rng.standard_normal((30, m))
    y = rng.integers(m, size=30)
    P = LINKS[LOSSES["logistic"].link](out)
    np.testing.assert_allclose(P, LOSSES["logistic"].value_gradient(y, out)[1] + np.eye(m)[y], rtol=0, atol=1e-15)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-15)
    Y = rng.choice([-1.0, 1.0], size=(30, m))
    P = LINKS[LOSSES["binary-logistic"].link](out)
    np.testing.assert_allclose(P, LOSSES["binary-logistic"].value_gradient(Y, out)[1] + (Y > 0), rtol=0, atol=1e-15)


@every_loss
@every_size
def test_inputs_are_not_overwritten(name, m):
    loss, rng = LOSSES[name], np.random.default_rng(0)
    y, out = draw(loss, rng, 6, m)
    G = np.array(loss.value_gradient(y, out)[1])
    for array in (y, out, G):
        array.setflags(write=False)
    for result in (loss.value(y, out), *loss.value_gradient(y, out), loss.conjugate(y, G)):
        assert not any(np.shares_memory(result, array) for array in (y, out, G))
    loss.max_scale(y, G)
    if loss.link is not None:
        LINKS[loss.link](out)


def test_a_loss_shows_its_parameters():
    class Huber(type(get_loss("squared"))):
        def __init__(self, threshold):
            self.threshold, self._square = threshold, threshold**2

    assert repr(Huber(0.5)) == "Huber(threshold=0.5)"


# -- second derivatives against finite differences of gradients, and what must hold of any of them ---------------------


N = 8


def off_kinks(name, rng, m, n=N):
    """Targets, and outputs whose fractions keep them and their differences at least 0.1 off the hinges' kinks."""
    out = rng.integers(-3, 4, size=(n, m)) + 0.1 * np.arange(1, m + 1)
    return targets_of(LOSSES[name], rng, n, m), np.asarray(out, order=rng.choice(["C", "F"]))


def dense(hessian, n, m):
    """The matrices (n, m, m), row by row, from products with unit directions."""
    return np.stack([hessian.product(np.tile(e, (n, 1))) for e in np.eye(m)], axis=2)


@every_case
def test_products_equal_finite_differences_and_have_the_diagonal(name, m, rng):
    loss = LOSSES[name]
    y, out = off_kinks(name, rng, m)
    Z = np.asarray(rng.uniform(-1, 1, out.shape), order=rng.choice(["C", "F"]))
    numeric = by_differences(lambda o: loss.value_gradient(y, o)[1], out, Z)
    product = loss.hessian(y, out).product(Z)
    assert product.shape == out.shape
    # Rounding of gradients divided by h; the next derivative of a logistic loss times h^4 is smaller.
    np.testing.assert_allclose(product, numeric, rtol=0, atol=2e-11 * (1 + np.abs(numeric).max()))
    diagonal = np.einsum("icc->ic", dense(loss.hessian(y, out), N, m))
    np.testing.assert_allclose(loss.hessian(y, out).diagonal, diagonal, rtol=1e-14, atol=1e-15)


@every_case
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_forms_along_vectors_and_weighted_sums(name, m, weighted, own, rng):
    """Those of the class, and those that any Hessian has by its products."""
    y, out = off_kinks(name, rng, m)
    hessian = LOSSES[name].hessian(y, out)
    hessian = Weighted(hessian, rng.uniform(size=N)) if weighted else hessian
    matrices = dense(hessian, N, m)
    E, w, kind = rng.standard_normal((4, m)), rng.uniform(-1, 1, N), Hessian if own else type(hessian)
    size = 1e-13 * max(np.abs(matrices).max(), 1.0) * m * m
    along = np.einsum("kc,ice,ke->ik", E, matrices, E)
    np.testing.assert_allclose(kind.along(hessian, E), along, rtol=0, atol=size * np.abs(E).max() ** 2)
    np.testing.assert_allclose(kind.total(hessian, w), np.einsum("i,ice->ce", w, matrices), rtol=0, atol=size * N)


@every_case
def test_symmetric_positive_semidefinite_and_within_the_smoothness(name, m, rng):
    loss = LOSSES[name]
    out = rng.choice([0.1, 1.0, 10.0]) * rng.standard_normal((N, m))
    matrices = dense(loss.hessian(targets_of(loss, rng, N, m), out), N, m)
    largest = loss.smoothness(m) if name != "poisson" else np.exp(out.max())
    size = 1e-15 * m * largest
    np.testing.assert_allclose(matrices, matrices.transpose(0, 2, 1), rtol=0, atol=size)
    eigenvalues = np.linalg.eigvalsh(matrices)
    assert eigenvalues.min() >= -size
    assert eigenvalues.max() <= largest + size


@every_loss
@every_size
@pytest.mark.parametrize("size", [40.0, 700.0, 1e4])
def test_second_derivatives_at_extreme_margins(name, m, size):
    """No overflow, and no curvature away from zero margins, except of the squared hinge and the squared loss."""
    loss = LOSSES[name]
    out = size * np.repeat(np.vstack([np.eye(m), -np.eye(m)]), m, axis=0)
    y = np.tile(np.arange(m), 2 * m)
    if loss.targets != "labels":
        y = np.where(np.eye(m)[y] > 0, 1.0, -1.0)
    matrices = dense(loss.hessian(y, out), len(out), m)
    assert np.isfinite(matrices).all()
    if name in ("logistic", "smoothed-hinge"):
        # The odds exp(z) that are not tied are exp(-40) at most (times e for the cost).
        tied = [np.sum(np.isclose(row, row.max())) > 1 for row in out]
        np.testing.assert_allclose(matrices[np.logical_not(tied)], 0.0, rtol=0, atol=np.exp(1.0 - 40.0) * m)
    if name == "binary-logistic":
        expected = np.where(out == 0, 0.25, 0.0)
        np.testing.assert_allclose(np.einsum("icc->ic", matrices), expected, rtol=0, atol=np.exp(-40.0))


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_hessians_overwrite_nothing(name, weighted):
    rng = np.random.default_rng(0)
    y, out = off_kinks(name, rng, 3)
    y = np.arange(N) % 3 if LOSSES[name].targets == "labels" else y
    Z, weights = rng.standard_normal(out.shape), rng.uniform(size=N)
    for array in (y, out, Z, weights):
        array.setflags(write=False)
    hessian = Losses.of_data(name, y, N, weights if weighted else None).hessian(out)
    diagonal, product = np.array(hessian.diagonal), hessian.product(Z)
    assert not any(np.shares_memory(product, array) for array in (out, Z))
    np.testing.assert_array_equal(hessian.product(Z), product)
    np.testing.assert_array_equal(hessian.diagonal, diagonal)


@every_loss
@varied()
def test_a_weight_is_a_repetition_and_an_offset_a_shift(name, rng):
    y, out = off_kinks(name, rng, 3)
    counts = np.r_[1, 1, 1, rng.integers(0, 4, N - 3)]
    if LOSSES[name].targets == "labels":
        y[:3] = 0, 1, 2
    Z = rng.standard_normal(out.shape)
    offset = rng.uniform(-1, 1, out.shape)
    weighted = Losses.of_data(name, y, N, counts, offset).hessian(out - offset)
    again = np.repeat(np.arange(N), counts)
    repeated = Losses.of_data(name, y[again], len(again)).hessian(out[again])
    for ours, theirs in ((weighted.product(Z), repeated.product(Z[again])), (weighted.diagonal, repeated.diagonal)):
        summed = np.zeros(out.shape)
        np.add.at(summed, again, theirs)
        np.testing.assert_allclose(ours, summed, rtol=1e-13, atol=1e-13)


def test_a_loss_without_hessian_names_itself():
    loss = Huber()
    assert not loss.has_hessian
    with pytest.raises(NotImplementedError, match="the loss 'Huber' has no hessian; use a first-order solver"):
        Losses.of_data(loss, np.zeros(4), 4).hessian(np.zeros((4, 1)))

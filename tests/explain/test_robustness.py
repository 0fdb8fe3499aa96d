"""Certified radii, against points sampled around rows, every direction of planes, and exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from fitted_models import KINDS, LINKED, NUMBERS, network, random_model, rational, table
from hypothesis import strategies as st
from properties import generators, tried
from scipy import sparse

import mopn
from mopn.explain import certified_radius, robustness

ORDER = {"l2": 2, "linf": np.inf}
LABELS = np.array(["a", "b", "c"])
every_norm = pytest.mark.parametrize("norm", ORDER)


def one_output(**fields):
    rng = np.random.default_rng(3)
    P = rng.standard_normal((fields.pop("orders", 1), 3, 4 + fields.get("dummies", 0)))
    lams = None if fields.get("form") == "lifted" else rng.standard_normal(3)
    return mopn.FactorizationModel(P, 2, lams=lams, classes=LABELS[:2], intercept=0.3, **fields)


MODELS = {
    "network": network(classes=LABELS, augment=True),
    "few units": network(k=1, d=6, classes=LABELS, linear=np.random.default_rng(4).standard_normal((3, 7))),
    "span": network(k=2, d=9, classes=LABELS, augment=True, offset=np.array([0.5, 0.0, -1.0])),
    "factorization machine": network(k=3, kernel="anova", classes=LABELS, augment=True),
    "two outputs": KINDS["two outputs"],
    "one output": network(1, classes=np.array([False, True]), kernel="anova", offset=0.5),
    "labels apart": network(3, d=4, target="indicator", augment=True),
    "direct": one_output(orders=2, dummies=1),
    "theta": one_output(dummies=2, theta=np.array([0.3, 0.7]), w=np.ones(4)),
    "powers": one_output(kernel="homogeneous", dummies=1),
    "lifted": one_output(form="lifted", orders=2, dummies=2),
    "lifted powers": one_output(form="lifted", orders=2, kernel="homogeneous", w=np.arange(4.0)),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def inside(rng, radii, d, norm, count=200):
    """Steps (n, count, d) as long as the radii (n,), or hardly shorter."""
    steps = rng.standard_normal((len(radii), count, d))
    steps = np.sign(steps) if norm == "linf" else steps / np.linalg.norm(steps, axis=2, keepdims=True)
    return steps * np.minimum(radii, 1e6)[:, None, None] * (1 - 1e-15)


# -- what radii and attacks promise ------------------------------------------------------------------------------------


@every_norm
@every_model
def test_predictions_stay_within_the_radius_and_change_at_the_attack(model, norm):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25, model.n_features))
    radii, attack = certified_radius(model, X, norm, return_attack=True)
    radii, attack = radii.reshape(25, -1), attack.reshape(25, -1, X.shape[1])
    before = model.predict(X).reshape(25, -1)
    for c in range(radii.shape[1]):
        Z = X[:, None] + inside(rng, radii[:, c], X.shape[1], norm)
        around = model.predict(Z.reshape(-1, X.shape[1])).reshape(25, Z.shape[1], -1)[:, :, c]
        assert (around == before[:, c, None]).all()
        far = np.linalg.norm(attack[:, c] - X, ord=ORDER[norm], axis=1)
        found = np.isfinite(far)
        assert (model.predict(attack[found, c]).reshape(found.sum(), -1)[:, c] != before[found, c]).all()
        assert (far[found] >= radii[found, c]).all()
        assert (radii[:, c] > 0).all()
        if norm == "l2":
            assert (far[found] <= radii[found, c] * (1 + 1e-6)).all()
            assert (radii[~found, c] > 1e3).all()


@every_norm
@tried(20, rng=generators, d=st.integers(1, 6), m=st.integers(1, 4), k=st.integers(0, 7))
def test_nothing_within_the_radius_is_of_another_class(norm, rng, d, m, k):
    model = random_model(rng, d, m, k, kernel=rng.choice(["homogeneous", "anova"]))
    X = rng.standard_normal((8, d)) * 10.0 ** rng.uniform(-3, 2, (8, 1))
    radii, attack = certified_radius(model, X, norm, return_attack=True)
    Z = X[:, None] + inside(rng, radii, d, norm, 50)
    assert (model.predict(Z.reshape(-1, d)).reshape(8, -1) == model.predict(X)[:, None]).all()
    # Towards the nearest known point of another class.
    far = np.linalg.norm(attack - X, ord=ORDER[norm], axis=1)
    found = np.isfinite(far)
    towards = X + np.where(found, radii / far, 0.0)[:, None] * (1 - 1e-15) * np.where(found[:, None], attack - X, 0.0)
    assert (model.predict(towards) == model.predict(X)).all()


# -- exact references --------------------------------------------------------------------------------------------------


def crossings(model, X, directions):
    """The distances (n, t) to another class along directions, from the coefficients of the outputs on each ray."""
    at = np.stack([model.outputs((X[:, None] + s * directions).reshape(-1, X.shape[1])) for s in (-1.0, 0.0, 1.0)])
    at = at.reshape(3, len(X), len(directions), -1)
    winners = at[1].argmax(axis=2)[..., None]
    low, middle, high = np.take_along_axis(at, winners[None], axis=3) - at
    slope, curvature = 0.5 * (high - low), 0.5 * (high + low) - middle
    with np.errstate(all="ignore"):
        t = 2 * middle / (np.sqrt(slope**2 - 4 * middle * curvature) - slope)
    return np.where((t > 0) & (middle > 0), t, np.inf).min(axis=2)


@pytest.mark.parametrize("kernel", ["homogeneous", "anova"])
@tried(8, rng=generators)
def test_planes_against_all_directions(kernel, rng):
    model = random_model(rng, 2, kernel=kernel)
    X = rng.standard_normal((6, 2))
    angles = np.linspace(0, 2 * np.pi, 8001)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    nearest = crossings(model, X, circle).min(axis=1)
    radii, attack = certified_radius(model, X, return_attack=True)
    assert (radii <= nearest * (1 + 1e-9)).all()
    # Where there is no other class in any direction, only rounding errors limit the proven radius, far away.
    found = np.isfinite(attack[:, 0])
    np.testing.assert_allclose(radii[found], nearest[found], rtol=1e-5)
    assert np.isinf(nearest[~found]).all()
    assert (radii[~found] > 1e3).all()
    square = circle / np.abs(circle).max(axis=1, keepdims=True)
    nearest = crossings(model, X, square).min(axis=1)
    boxes, attack = certified_radius(model, X, "linf", return_attack=True)
    assert (boxes <= nearest * (1 + 1e-9)).all()
    assert (np.abs(attack - X).max(axis=1) >= nearest * (1 - 1e-3))[np.isfinite(attack[:, 0])].all()
    assert (boxes >= 0.5 * nearest)[np.isfinite(nearest)].all()


def touching(rng, kind):
    """A model whose classes are level on a subspace alone, and vectors orthogonal to it; nowhere do they change."""
    d, k = rng.integers(3, 8), 2
    H = rng.standard_normal((k, d)) * 10.0 ** rng.uniform(-3, 3)
    positive = rng.uniform(0.5, 2.0, k)
    if kind == "one output":
        return mopn.Model(H, positive[:, None], classes=np.arange(2)), H
    if kind == "copies":
        return mopn.Model(np.vstack([H, H]), np.tile(positive[:, None], (2, 1)), classes=np.arange(2)), H
    if kind == "indicator":
        return mopn.Model(H, positive[:, None], target="indicator"), H
    others = rng.standard_normal(k)  # outputs whose difference is of one sign
    return mopn.Model(H, np.column_stack([others, others + positive]), classes=np.arange(2)), H


@pytest.mark.parametrize("kind", ["one output", "copies", "indicator", "two outputs"])
@tried(50, rng=generators)
def test_balls_reach_to_where_outputs_only_touch(kind, rng):
    model, H = touching(rng, kind)
    X = rng.standard_normal((5, H.shape[1])) * 10.0 ** rng.uniform(-3, 3)
    away = np.linalg.svd(H)[2][: len(H)]  # the subspace of touching is orthogonal to these
    distances = np.linalg.norm(X @ away.T, axis=1)
    radii = certified_radius(model, X).reshape(5)
    assert (radii <= distances * (1 + 1e-12)).all()
    # The sum of squares is known up to 1e-16 of its size alone, so distances to the root of that.
    condition = np.linalg.cond(H)
    assert (radii >= distances * (1 - 1e-4 * condition)).all()


@every_norm
@pytest.mark.parametrize("digits", [-150, -100, 100, 150])
def test_numbers_at_the_ends_of_floats_prove_nothing_false(norm, digits):
    rng = np.random.default_rng(0)
    X = 10.0**digits * rng.standard_normal((10, 3))
    for units in (1.0, 10.0 ** (-0.9 * digits)):
        model = mopn.Model(units * rng.standard_normal((4, 3)), rng.standard_normal((4, 3)), classes=np.arange(3))
        radii = certified_radius(model, X, norm)
        Z = X[:, None] + inside(rng, radii / np.abs(X).max(), 3, norm, 50) * np.abs(X).max()
        assert (model.predict(Z.reshape(-1, 3)).reshape(10, -1) == model.predict(X)[:, None]).all()


@every_norm
@tried(40, rng=generators, near=st.booleans(), digits=st.integers(-150, 150))
def test_intervals_in_rational_arithmetic(norm, rng, near, digits):
    """One feature: no point of the closed interval is of another class, even if outputs nearly tie there."""
    size = 10.0**digits
    linear = rng.standard_normal((3, 2)) * [1.0, 1.0 / size]
    model = mopn.Model(
        rng.standard_normal((2, 1)) / size, rng.standard_normal((2, 3)), linear=linear, classes=np.arange(3)
    )
    x = rng.standard_normal() * size
    if near:  # to the right of the boundary that is next
        x = certified_radius(model, [[x]], return_attack=True)[1][0, 0]
    if not np.isfinite(x):
        return
    (radius,) = certified_radius(model, [[x]], norm)
    winner = model.predict([[x]])[0]
    (b, a), V, W = (rational(part) for part in (model.basis[:, 0], model.weights, model.linear))
    assert radius >= 0
    if near:
        assert radius < 1e-9 * size
    for loser in {0, 1, 2} - {winner} if radius > 0 else ():
        c, slope = W[winner] - W[loser]
        curvature = (V[0] * b * b + V[1] * a * a)[[winner, loser]] @ [1, -1]
        ends = [Fraction(x) - Fraction(radius), Fraction(x) + Fraction(radius)]
        if curvature and ends[0] < -slope / (2 * curvature) < ends[1]:
            ends.append(-slope / (2 * curvature))
        assert all(c + slope * z + curvature * z * z > 0 for z in ends)


@every_norm
@pytest.mark.parametrize("kernel", ["homogeneous", "anova"])
@tried(30, rng=generators, d=st.integers(1, 6), near=st.booleans())
def test_the_winner_in_rational_arithmetic(norm, kernel, rng, d, near):
    """It still wins where the radius ends, and another does at the attack: features of all sizes, units that cancel."""
    sizes, dummies = 10.0 ** rng.uniform(-6, 6, d), {"homogeneous": 1, "anova": 2}[kernel]
    H, V = rng.standard_normal((3, dummies + d)) / np.r_[np.ones(dummies), sizes], rng.standard_normal((3, 3))
    H, V = np.vstack([H, H * (1 + 1e-9)]), np.vstack([V, -V]) * 10.0 ** rng.integers(0, 10)
    linear = rng.standard_normal((3, 1 + d)) / np.r_[1.0, sizes]
    model = mopn.Model(H, V, kernel=kernel, augment=True, linear=linear, classes=np.arange(3))
    x = rng.standard_normal((1, d)) * sizes
    (radius,), (attack,) = certified_radius(model, x, norm, scale=sizes, return_attack=True)
    if near and np.isfinite(attack).all():
        x = attack[None]
        (radius,), (attack,) = certified_radius(model, x, norm, scale=sizes, return_attack=True)

    def winner(z):
        z = np.r_[[Fraction(1)] * dummies, z]
        squares = (rational(H) @ z) ** 2
        K = squares if kernel == "homogeneous" else (squares - rational(H) ** 2 @ z**2) / 2
        outputs = K @ rational(V) + rational(linear) @ z[dummies - 1 :]
        return max(range(3), key=outputs.__getitem__)

    (expected,) = model.predict(x)
    ways = [rng.choice([-1.0, 1.0], d), rng.standard_normal(d)]
    if np.isfinite(attack).all():
        assert winner(rational(attack)) != expected
        ways.append((attack - x[0]) / sizes)
    for way in ways if np.isfinite(radius) else ():
        # Lengths are rounded up, so that steps are no longer than the radius.
        length = Fraction(float(np.linalg.norm(way, ord=ORDER[norm])) * (1 + 1e-14))
        step = rational(sizes) * rational(way) * Fraction(float(radius)) / length if length else 0 * rational(way)
        assert winner(rational(x[0]) + step) == expected


# -- degenerate models -------------------------------------------------------------------------------------------------


@every_norm
def test_ties_have_no_radius_and_constants_an_infinite_one(norm):
    model = mopn.Model(np.eye(2), np.eye(2), classes=LABELS[:2])
    X = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, np.nextafter(1.0, 0.0)]])
    assert (certified_radius(model, X, norm) == 0).all()
    for offset, radius in (([0.0, 0.0], 0.0), ([0.0, 1.0], np.inf)):
        constant = mopn.Model(np.ones((1, 2)), np.zeros((1, 2)), offset=np.array(offset), classes=LABELS[:2])
        radii, attack = certified_radius(constant, X, norm, return_attack=True)
        assert (radii == radius).all()
        assert np.isnan(attack).all() or radius == 0


def test_the_hard_case():
    """At the centre of x_1^2 + x_2^2 / 4 < 1 slopes vanish; on its long axis the slope along the short one does."""
    model = mopn.Model(np.diag([1.0, 0.5]), np.ones((2, 1)), offset=-1.0, classes=LABELS[:2])
    X = np.array([[0.0, 0.0], [0.0, 0.1], [0.0, 1.9], [2.0, 0.0]])
    radii, attack = certified_radius(model, X, return_attack=True)
    # From (0, t) with t <= 3/2 the nearest point has x_2 = 4/3 t, else it is the vertex (0, 2).
    expected = [1.0, np.sqrt(1 - 0.01 / 3), 0.1, 1.0]
    np.testing.assert_allclose(radii, expected, rtol=1e-9)
    assert (radii <= expected).all()
    np.testing.assert_allclose(np.linalg.norm(attack - X, axis=1), expected, rtol=1e-6)


def test_lines_and_strips_are_exact_in_both_norms():
    linear = np.array([[0.0, 3.0, 4.0], [1.0, 0.0, 0.0]])
    model = mopn.Model(np.zeros((0, 2)), np.zeros((0, 2)), linear=linear, classes=LABELS[:2])
    X = np.array([[1.0, 1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(certified_radius(model, X), [6 / 5, 4 / 5], rtol=1e-12)
    np.testing.assert_allclose(certified_radius(model, X, "linf"), [6 / 7, 4 / 7], rtol=1e-12)
    strip = mopn.Model(np.array([[3.0, 4.0]]), np.ones((1, 1)), offset=-1.0, classes=LABELS[:2])
    np.testing.assert_allclose(certified_radius(strip, X), [6 / 5, 2 / 5], rtol=1e-9)
    np.testing.assert_allclose(certified_radius(strip, X, "linf"), [6 / 7, 2 / 7], rtol=1e-9)


def test_a_class_that_is_nowhere_else_has_a_vast_radius():
    model = mopn.Model(np.eye(3), -np.ones((3, 1)), offset=-1.0, classes=LABELS[:2])
    radii, attack = certified_radius(model, np.ones((1, 3)), return_attack=True)
    assert radii[0] > 1e5
    assert np.isnan(attack).all()


@every_norm
@pytest.mark.parametrize("size", [1e-150, 1e150])
@pytest.mark.parametrize("part", ["X", "outputs"])
def test_the_largest_and_smallest_numbers(norm, size, part):
    model = random_model(np.random.default_rng(0), 4, k=3)
    X = np.random.default_rng(1).standard_normal((20, 4))
    expected = certified_radius(model, X, norm)
    H, V, W = model.basis, model.weights, model.linear
    if part == "X":
        scaled, X, expected = (H / size, V, W / np.r_[1.0, np.full(4, size)]), X * size, expected * size
    else:
        scaled = H, V * size, W * size
    scaled = mopn.Model(scaled[0], scaled[1], linear=scaled[2], classes=np.arange(3))
    np.testing.assert_allclose(certified_radius(scaled, X, norm), expected, rtol=1e-9)


@every_norm
def test_coefficients_that_overflow_prove_nothing(norm):
    model = mopn.Model(np.ones((2, 3)), np.full((2, 1), 1.7e308), offset=1.0, classes=LABELS[:2])
    assert (certified_radius(model, np.zeros((1, 3)), norm) == 0).all()
    large = mopn.Model(np.array([[1e200, 0.0]]), np.array([[1.0]]), offset=1.0, classes=LABELS[:2])
    assert (certified_radius(large, [[0.0, 1.0]], norm) >= 0).all()
    with pytest.raises(ValueError, match="row 0 of X overflow"):
        certified_radius(large, [[1.0, 1.0]], norm)


# -- arguments ---------------------------------------------------------------------------------------------------------


@every_norm
def test_scales_are_units_of_the_features(norm):
    rng = np.random.default_rng(0)
    model, scale = random_model(rng, 3), np.array([0.5, 2.0, 8.0])
    X = rng.standard_normal((10, 3))
    scaled = mopn.Model(
        model.basis * scale, model.weights, linear=model.linear * np.r_[1.0, scale], classes=model.classes
    )
    expected = certified_radius(scaled, X / scale, norm)
    np.testing.assert_allclose(certified_radius(model, X, norm, scale=scale), expected, rtol=1e-9)


@every_norm
def test_features_of_scale_zero_stay_as_they_are(norm):
    rng = np.random.default_rng(0)
    model, X = random_model(rng, 4), rng.standard_normal((10, 4))
    radii, attack = certified_radius(model, X, norm, scale=[1.0, 0.0, 1.0, 0.0], return_attack=True)
    found = np.isfinite(attack).all(axis=1)
    assert (attack[found][:, [1, 3]] == X[found][:, [1, 3]]).all()
    assert (radii >= certified_radius(model, X, norm)).all()
    for x, radius in zip(X, radii, strict=True):  # the model of the two others, for this row
        H, V = model.basis, model.weights
        fixed = H[:, [1, 3]] @ x[[1, 3]]
        linear = 2 * (V.T * fixed) @ H[:, [0, 2]] + model.linear[:, [1, 3]]
        constant = fixed**2 @ V + model.linear[:, 0] + model.linear[:, [2, 4]] @ x[[1, 3]]
        part = mopn.Model(H[:, [0, 2]], V, linear=np.column_stack([constant, linear]), classes=model.classes)
        np.testing.assert_allclose(certified_radius(part, x[None, [0, 2]], norm), radius, rtol=1e-9)


@every_norm
def test_every_storage_of_the_rows(norm):
    model = random_model(np.random.default_rng(0), 6, k=2, kernel="anova")
    X = np.random.default_rng(1).integers(-2, 3, (12, 6)).astype(float)
    expected = certified_radius(model, X, norm)
    for rows in (X.astype(np.float32), sparse.csr_array(X), sparse.csc_array(X), X.astype(int), X.tolist()):
        np.testing.assert_allclose(certified_radius(model, rows, norm), expected, rtol=1e-9)


@every_norm
def test_many_rows_are_many_single_ones(norm, monkeypatch):
    model, X = MODELS["network"], np.random.default_rng(0).standard_normal((30, 4))
    expected = [certified_radius(model, x[None], norm)[0] for x in X]
    monkeypatch.setattr(robustness, "rows_at_once", lambda entries: 7)
    np.testing.assert_allclose(certified_radius(model, X, norm), expected, rtol=1e-9)


def test_models_without_such_a_radius_say_why():
    X = np.ones((2, 4))
    with pytest.raises(TypeError, match="predicts classes, got one of target='vector'"):
        certified_radius(KINDS["mean"], X)
    with pytest.raises(TypeError, match="degree 2 at most"):
        certified_radius(KINDS["direct"], X)
    of_table = table(NUMBERS, **LINKED)
    with pytest.raises(TypeError, match="columns of a table may hold categories"):
        certified_radius(of_table, NUMBERS)
    assert (certified_radius(of_table.model, of_table.encoding.encode(NUMBERS)) >= 0).all()  # what the message advises


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scale": [1.0, -1.0, 1.0, 1.0]}, ValueError, "scale must be >= 0, got -1"),
        ({"scale": np.zeros(4)}, ValueError, "scale must be positive for at least one feature"),
        ({"X": np.ones((2, 3))}, ValueError, "X has 3 features"),
    ],
)
def test_bad_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        certified_radius(MODELS["network"], **{"X": np.ones((2, 4))} | options)

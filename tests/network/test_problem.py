"""The convex problem, its output layer and solvers: gaps against optima found independently, and equalities."""

from fractions import Fraction

import numpy as np
import pytest
from networks import LOSSES, data, every_form, every_norm, problem_of
from reference import matrix_optimum

import mopn
from mopn.solvers import FISTA, LBFGS, ConditionalGradient, FullRefit, InteriorPoint, PlainStep
from mopn.solvers.conditional_gradient import make_corrective_step

NORMS = ("l1", "l1/l2", "l1/linf")


def solve(problem, tol=1e-4, start=None, oracle="auto", max_iter=300, **options):
    refit = make_corrective_step(options.pop("refit", "output"), tol=1e-8, max_iter=2000)
    solver = ConditionalGradient(refit=refit, oracle=oracle, **options)
    return mopn.minimize(problem, solver, tol=tol, max_iter=max_iter, start=start)


def over_matrices(norm="l1", kernel="homogeneous", alphas=None, **options):
    """The options of a problem, and of the same problem over matrices."""
    return {"norm": norm, "kernel": kernel} | options, (kernel, alphas)


PROBLEMS = {
    "l1": over_matrices(),
    "l1, anova": over_matrices(kernel="anova"),
    "l1/linf": over_matrices("l1/linf"),
    # There is no reference for it.
    "l1/l2": over_matrices("l1/l2"),
    "l1/l2, a linear term": over_matrices("l1/l2", alpha=0.8),
    "nonnegative": over_matrices("nonnegative-l1"),
    "nonnegative, anova": over_matrices("nonnegative-l1", "anova"),
    "an offset": over_matrices(offset=np.linspace(-1, 1, 3)),
    # The constants of a linear term pay a hundredth.
    "a linear term": over_matrices(kernel="anova", alpha=0.8, alphas=0.8 * np.r_[0.01, np.ones(4)]),
}


def make(case, loss, n=30, **form):
    """The samples, and a problem."""
    (X, y), options = data(loss, n), PROBLEMS[case][0]
    return X, mopn.NetworkProblem(X, y, loss=loss, **options, **(form or {"strength": 1.0}))


@pytest.mark.parametrize("case", [case for case in PROBLEMS if "l1/l2" not in case])
@pytest.mark.parametrize("loss", LOSSES)
def test_gaps_bracket_the_optimum_over_matrices(loss, case):
    X, problem = make(case, loss)
    optimum = matrix_optimum(problem.losses, X, problem.norm.name, 1.0, *PROBLEMS[case][1])
    oracle = "enumerate" if case == "l1/linf" else "auto"
    result = solve(problem, tol=1e-6, oracle=oracle, refit="full", max_iter=1000)
    assert result.success
    assert result.gap_is_proven
    assert result.fun - result.gap <= optimum * (1 + 1e-9)
    assert optimum * (1 - 1e-8) <= result.fun <= optimum * (1 + 2e-6)
    if problem.norm.nonnegative:
        assert (result.weights >= 0).all()
        # The optimum over all weights is lower; but where losses compare outputs, weights of the others can change
        # their signs at no cost.
        free = make(case.replace("nonnegative", "l1"), loss)[1]
        highest = optimum * (1 + 2e-6) if loss in ("logistic", "smoothed-hinge") else optimum
        assert solve(free, tol=1e-6, refit="full", max_iter=1000).fun < highest


@pytest.mark.parametrize("case", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["strength", "radius"])
def test_gaps_are_valid_at_any_network(loss, case, form):
    """At random feasible ones fun - gap lies below a value that is next to the minimum."""
    _, problem = make(case, loss, 20, **{form: 1.5})
    best, rng = solve(problem, tol=1e-4, refit="full", max_iter=30), np.random.default_rng(1)
    for scale in (0.0, 0.1, 10.0):
        V, W = scale * rng.standard_normal((6, 3)), scale * rng.standard_normal((3, 5))
        V, W = np.maximum(V, 0.0) if problem.norm.nonnegative else V, W if "alpha" in PROBLEMS[case][0] else None
        network = problem.start((rng.standard_normal((6, 4)), V, W))
        # Over the weights of these units the minimum is no lower, up to rounding.
        least = mopn.minimize(problem.output_layer(network), FISTA(), tol=1e-6).fun
        for oracle in ("auto", "power", "refine"):
            measured = problem.measure(network, oracle)
            fun, lower, rounding, restricted, *_ = measured
            assert measured.restricted_gap <= measured.gap
            assert lower <= best.fun
            assert best.fun - best.gap <= fun + rounding
            # Both are found by a search for the best scale of the dual point, which is inexact.
            assert lower - 1e-6 * max(abs(restricted), 1.0) <= restricted <= least + rounding


@pytest.mark.parametrize("norm", ["l1", "l1/l2", pytest.param("l1/linf", marks=pytest.mark.slow)])
def test_ball_and_penalty_agree(norm):
    X, y = data("logistic", n=30, d=3)
    penalty = mopn.NetworkProblem(X, y, norm=norm, strength=1.0)
    first = solve(penalty, tol=1e-6, refit="full")
    radius = penalty.norm.value(first.weights)
    ball = mopn.NetworkProblem(X, y, norm=norm, radius=radius)
    second = solve(ball, tol=1e-6, refit="full")
    assert ball.norm.value(second.weights) <= radius * (1 + 1e-12)
    # Both are within their own estimate of the optimum; the objectives share F and differ by the constant penalty.
    assert second.fun + radius == pytest.approx(first.fun, rel=2e-4)


@pytest.mark.parametrize("step", ["open-loop", "line-search", "short"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared-hinge"])
def test_theorem_1_along_plain_steps(loss, step):
    """F(U_t) - F* <= 8 radius^2 beta / (t + 2) with the exact l1 oracle (Theorem 1, nu = 1)."""
    X, y = data(loss)
    radius = 3.0
    problem = mopn.NetworkProblem(X, y, loss=loss, norm="l1", radius=radius)
    lower = solve(problem, tol=1e-6, refit="full")
    # beta, the smoothness of F with respect to the norm, is at most the loss's smoothness times the longest feature.
    beta = problem.losses.smoothness * np.sum(np.sum(X**2, axis=1) ** 2)
    solver = ConditionalGradient(refit=PlainStep(step), oracle="eigh")
    trace = mopn.minimize(problem, solver, tol=1e-9, max_iter=80).trace
    t = np.arange(1, len(trace))
    assert np.all(trace["fun"][1:] - (lower.fun - lower.gap) <= 8 * radius**2 * beta / (t + 2))
    # The theorem's bound is loose; the run must also get somewhere.
    assert trace["fun"].min() - lower.fun <= 0.05 * (trace["fun"][0] - lower.fun)
    if step != "open-loop":
        assert np.all(np.diff(trace["fun"]) <= 1e-12 * trace["fun"][0])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_strength_max(norm, loss):
    """Zero is optimal at strength_max, proven; for the exact oracles it is not at a slightly smaller strength."""
    X, y = data(loss, n=20)
    limit = mopn.NetworkProblem(X, y, loss=loss, norm=norm, strength=1.0).strength_max()
    zero = solve(mopn.NetworkProblem(X, y, loss=loss, norm=norm, strength=limit), tol=1e-9)
    assert len(zero.basis) == 0
    assert zero.gap_is_proven
    assert zero.gap <= 1e-9 * zero.fun
    ratio = mopn.NetworkProblem(X, y, loss=loss, norm=norm, strength=mopn.Ratio(0.25))
    assert ratio.strength == pytest.approx(0.25 * limit, rel=1e-3)
    assert ratio.with_strength(mopn.Ratio(0.75)).strength == pytest.approx(3 * ratio.strength)
    if norm != "l1/l2":
        below = solve(mopn.NetworkProblem(X, y, loss=loss, norm=norm, strength=0.999 * limit), tol=1e-9)
        assert len(below.basis) >= 1
        assert below.fun < zero.fun


def test_a_ratio_becomes_a_strength_at_its_first_use(monkeypatch):
    """Construction, which may only warn or refuse, runs no solver."""
    X, y = np.eye(4), np.arange(4) % 2
    searched, lmo = [], mopn.NetworkProblem.lmo
    monkeypatch.setattr(mopn.NetworkProblem, "lmo", lambda *a, **o: searched.append(1) or lmo(*a, **o))
    problem = mopn.NetworkProblem(X, y, norm="l1", strength=mopn.Ratio(0.5), alpha=1.0)
    assert "strength=Ratio(0.5)" in repr(problem)
    assert problem.with_strength(2.0).strength == 2.0
    assert not searched
    again = mopn.NetworkProblem(X, y, norm="l1", strength=2.0, alpha=1.0).with_strength(mopn.Ratio(0.5))
    assert problem.strength == again.strength
    assert problem.regularized
    assert len(searched) == 2


def test_start_is_scaled_and_made_feasible():
    X, y = data("logistic")
    problem = mopn.NetworkProblem(X, y, norm="l1", radius=1.0)
    rng = np.random.default_rng(0)
    basis, weights = rng.standard_normal((4, 4)), rng.standard_normal((4, 3))
    basis[2] = 0.0
    before = basis.copy()
    network = problem.start((basis, weights))
    assert np.array_equal(basis, before)
    assert network.n_units == 3
    assert problem.norm.value(network.weights) <= 1.0 + 1e-12
    free = mopn.NetworkProblem(X, y, norm="l1", strength=1.0).start((basis, weights))
    assert np.allclose(free.outputs, (X @ basis.T) ** 2 @ weights, rtol=1e-12)


@every_norm
@pytest.mark.parametrize("options", [{"refit": "output"}, {"refit": "full"}, {"refit": FullRefit(solver=FISTA())}])
@pytest.mark.parametrize("schedule", ["grow", "fill"])
def test_no_start_has_more_units_than_the_limit(norm, options, schedule):
    """A larger network; and one whose units have all outputs, of which refits of both layers make several under l1."""
    problem, rng = problem_of(norm, value=1.0), np.random.default_rng(0)
    solver = ConditionalGradient(max_units=6, schedule=schedule, **options)
    for k in (5, 9):
        start = rng.standard_normal((k, 5)), rng.standard_normal((k, 3))
        result = mopn.minimize(problem, solver, start=start, max_iter=3)
        assert len(result.basis) <= 6
        assert result.trace["n_units"].max() <= 6


@every_norm
@pytest.mark.parametrize("jointly", [False, True])
def test_what_a_limit_leaves_are_the_largest_weights(norm, jointly):
    problem, rng = problem_of(norm), np.random.default_rng(0)
    network = problem.start((rng.standard_normal((7, 5)), rng.standard_normal((7, 3))))
    by_output = jointly and norm == "l1"
    sizes = np.abs(network.weights) if by_output else np.linalg.norm(network.weights, axis=1)
    for most in (1, 4, 7, 21):
        limited = problem.limited(network, most, jointly=jointly)
        left = np.abs(limited.weights[limited.weights != 0]) if by_output else np.linalg.norm(limited.weights, axis=1)
        np.testing.assert_allclose(np.sort(left), np.sort(sizes.ravel())[-most:])


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1/l2", "l1/linf"])
def test_a_generous_max_units_is_no_number_to_reach(norm):
    problem = problem_of(norm, value=0.5, n=80)
    free = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-3, max_iter=30)
    runs = [
        mopn.minimize(problem, ConditionalGradient(refit="full", max_units=most, schedule="fill"), tol=1e-3)
        for most in (500, 10**6)
    ]
    assert runs[0].success
    assert runs[0].fun == pytest.approx(free.fun, rel=1e-3)
    assert len(runs[0].basis) <= 100
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


@pytest.mark.parametrize("norm", ["l1/l2", "l1/linf"])
def test_an_oracle_of_another_norm_is_refused(norm):
    """Its bound would be a false proof."""
    X, y = data("logistic")
    problem = mopn.NetworkProblem(X, y, norm=norm, strength=1.0)
    with pytest.raises(ValueError, match=f"proves nothing for this problem's '{norm}'"):
        mopn.minimize(problem, ConditionalGradient(oracle=mopn.oracles.basis_oracle("l1")))
    with pytest.raises(TypeError, match="oracle must be"):
        mopn.minimize(problem, ConditionalGradient(oracle=3))


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6, 1e8])
def test_proofs_survive_large_offsets(size):
    """The terms of the dual value cancel; in exact arithmetic its least value still lies above the claimed bound."""
    X, y = data("squared", n=12, d=3, m=2)
    offset = size * np.random.default_rng(0).standard_normal((12, 2))
    problem = mopn.NetworkProblem(X, y + offset, loss="squared", norm="l1", radius=1.0, offset=offset)
    network = problem.start((np.eye(3), 0.1 * np.ones((3, 2))))
    at = problem.output_gradient(network)
    atoms = problem.lmo(at, "eigh")
    claimed = problem.lower(at, atoms.bound)

    def exact(value):
        return Fraction(float(value))

    def dual(s):
        """-F*(s G) - radius * s * value, from floats taken as exact; its maximum over s is a true lower bound."""
        total = Fraction(0)
        for g, t, o in zip(at.G.ravel(), problem.losses.in_memory.y.ravel(), offset.ravel(), strict=True):
            sg = s * exact(g)
            total += sg * sg / 2 + sg * exact(t) - sg * exact(o)
        return -total - s * exact(atoms.values[0])

    # A parabola in s: its top from three values. The value of the atom is at most the dual norm, so this is no less
    # than the best true dual value along G.
    d0, d1, d2 = dual(Fraction(0)), dual(Fraction(1)), dual(Fraction(2))
    curve, slope = (d2 - 2 * d1 + d0) / 2, (-d2 + 4 * d1 - 3 * d0) / 2
    assert claimed <= d0 - slope * slope / (4 * curve)


@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge"])
@pytest.mark.parametrize("seed", range(3))
def test_the_way_of_a_gradient_to_the_domain_of_the_conjugate_is_allowed_for(loss, seed):
    """In rational numbers: entries that add up to 0, and over other classes to 1 at most."""
    rng = np.random.default_rng(seed)
    X, weights, offset = rng.standard_normal((40, 3)), rng.uniform(0.5, 2.0, 40), rng.normal(0, 9, (40, 40))
    options = {"norm": "l1/linf", "strength": 1.0, "sample_weight": weights, "offset": offset}
    problem = mopn.NetworkProblem(X, np.arange(40), loss=loss, **options)
    at = problem.output_gradient(problem.start())
    scale, change, moduli = Fraction(problem.losses.max_scale(at.G)), Fraction(0), Fraction(0)
    for label, (x, weight, g) in enumerate(zip(X, weights, at.G, strict=True)):
        of_row = [scale * Fraction(v) for v in g.tolist()]
        mass = sum(of_row) - of_row[label]
        near = [v / max(mass / Fraction(weight), 1) for v in of_row]
        near[label] -= sum(near)
        square = sum(Fraction(v) ** 2 for v in x.tolist())
        change += square * sum(abs(a - b) for a, b in zip(near, of_row, strict=True))
        moduli += square * sum(map(abs, of_row))
    # Forming the matrices errs by (n + 8) eps of the moduli.
    allowed = scale * Fraction(problem.dual_rounding(at)) - 48 * Fraction(2) ** -52 * moduli
    assert 0 < change <= allowed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strength": 1.0, "radius": 1.0}, "only one of them"),
        ({}, "only one of them"),
        ({"strength": 1.0, "norm": "squared-l2"}, "makes no unit zero"),
        ({"strength": 1.0, "sample_weight": np.zeros(40)}, "sample_weight is zero for all"),
        ({"strength": 1.0, "sample_weight": -np.ones(40)}, "sample_weight must be finite and >= 0"),
        ({"strength": 1.0, "sample_weight": np.ones(3)}, "sample_weight must have shape"),
        ({"strength": 1.0, "offset": np.ones(7)}, "offset must have shape"),
        ({"strength": 1.0, "offset": np.full(3, np.nan)}, "offset contains NaN"),
        # Before means are taken.
        ({"strength": 1.0, "scale": "data", "sample_weight": np.full(40, 1e308)}, "sample_weight is too large"),
        ({"radius": 1.0, "ridge": 0.5}, r"ridge=0\.5 needs a penalty: give strength"),
        ({"strength": 1.0, "ridge": -1.0}, "ridge must be"),
        ({"strength": 1.0, "ridge": 1e-150}, "ridge is too small"),
        ({"strength": 1.0, "center": True}, "center=True needs kernel='homogeneous' and augment=True"),
        ({"strength": 1.0, "center": True, "augment": True, "kernel": "anova"}, "got kernel='anova' and augment=True"),
    ],
)
def test_bad_arguments(arguments, message):
    X, y = data("logistic")
    with pytest.raises((TypeError, ValueError), match=message):
        mopn.NetworkProblem(X, y, **arguments)


@pytest.mark.parametrize(
    ("y", "loss", "message"),
    [
        ([0, 1, 0], "logistic", "y must have one row per sample"),
        ([1, 1, 1, 1], "logistic", "y has one class only"),
        ([0, 1, np.nan, 1], "logistic", "y has missing labels"),
        (np.ones((4, 2)), "logistic", "is multi-class and takes labels"),
        ([0, 1, 0, 1], "binary-logistic", r"targets -1 and \+1"),
        ([0, 1, -1, 1], "poisson", "loss='poisson' takes counts, numbers that are at least 0; y has -1"),
        (["a", "b", "a", "b"], "squared", "numeric targets"),
        ([0.0, np.inf, 0, 1], "squared", "y contains NaN"),
        (np.ones((4, 2, 2)), "squared", "y must have shape"),
    ],
)
def test_bad_targets(y, loss, message):
    """Wrong values of X are in test_designs.py."""
    with pytest.raises((ValueError, TypeError), match=message):
        mopn.NetworkProblem(np.ones((4, 2)), y, loss=loss, strength=1.0)


@pytest.mark.parametrize("loss", ["squared", "binary-logistic"])
def test_one_output_all_norms_agree(loss):
    """With a single output all norms are one, and the exact oracle serves them all."""
    X, y = data("squared", m=1)
    y = np.sign(y) if loss == "binary-logistic" else y
    found = [solve(mopn.NetworkProblem(X, y, loss=loss, norm=n, strength=1.0), tol=1e-6, refit="full") for n in NORMS]
    assert all(r.success for r in found)
    assert [r.fun for r in found] == pytest.approx([found[0].fun] * 3, rel=2e-6)


# -- the output layer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "expected"), [(30, InteriorPoint), (80, FISTA)])
def test_the_default_solver_is_that_of_refits(k, expected):
    features = np.random.default_rng(0).uniform(0, 1, (60, k))
    problem = mopn.OutputLayerProblem(features, features[:, 0] > 0.5, norm="l1", strength=0.1)
    assert isinstance(problem.default_solver(), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_lbfgs_and_fista_agree_on_the_smooth_problem(loss):
    X, y = data(loss)
    problem = mopn.OutputLayerProblem(X**2, y, loss=loss, norm="squared-l2", strength=0.5)
    fista = mopn.minimize(problem, FISTA(), tol=1e-9, max_iter=5000)
    lbfgs = mopn.minimize(problem, LBFGS(gtol=1e-12), tol=1e-9)
    assert fista.success
    assert lbfgs.success
    assert lbfgs.fun == pytest.approx(fista.fun, rel=3e-9)
    assert lbfgs.weights == pytest.approx(fista.weights, abs=1e-3)
    with pytest.raises(TypeError, match=r"there is none for a smooth penalty; use LBFGS\(\)"):
        mopn.minimize(problem, InteriorPoint())


@pytest.mark.parametrize("tol", [1e-13, 2e-13, 4e-13])
def test_success_is_a_gap_below_the_tolerance_with_its_rounding(tol):
    for seed in range(8):
        problem = mopn.OutputLayerProblem(
            *np.split(np.random.default_rng(seed).standard_normal((50, 6)), [5], 1), loss="squared", strength=1.0
        )
        result = mopn.minimize(problem, InteriorPoint(), tol=tol)
        assert result.success == (result.gap <= tol * result.fun)


@pytest.mark.parametrize("solver", [InteriorPoint(), FISTA()], ids=repr)
@pytest.mark.parametrize(("y", "strength", "start"), [(1.5, 0.5, -1.1e8), (1.25, 0.75, -1.1e8), (1.25, 0.75, -3e7)])
def test_bounds_from_far_starts_are_kept_as_they_were_proven(y, strength, start, solver):
    """For one sample x = 1 the minimum is strength y - strength^2 / 2; at a far start fun - gap is rounded by more."""
    problem = mopn.OutputLayerProblem(np.ones((1, 1)), [[y]], loss="squared", norm="l1", strength=strength)
    result = mopn.minimize(problem, solver, start=np.array([[start]]), tol=1e-3)
    weight, lam = Fraction(float(result.weights[0, 0])), Fraction(strength)
    minimum = lam * Fraction(y) - lam**2 / 2
    exact = (weight - Fraction(y)) ** 2 / 2 + lam * abs(weight)
    assert Fraction(result.lower) <= minimum
    assert Fraction(result.gap) >= max(exact, Fraction(result.fun)) - minimum


@every_form
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("norm", [*NORMS, "nonnegative-l1"])
def test_working_sets_lead_to_the_minimum_over_all_units(norm, loss, form):
    rng = np.random.default_rng(0)
    features = (rng.uniform(-1, 1, (60, 5)) @ rng.standard_normal((5, 120))) ** 2
    y = features[:, :3] - features[:, 3:6] if loss == "squared" else np.argmax(features[:, :3], axis=1)
    ratio = mopn.OutputLayerProblem(features, y, loss, norm, strength=1.0)
    slopes = ratio.smooth(ratio.image(ratio.start())).gradient
    strength = 0.3 * ratio.regularizer.dual(ratio.split(slopes)[0])
    value = {"strength": strength, "radius": 2.0 / strength}[form]
    problem = mopn.OutputLayerProblem(features, y, loss, norm, **{form: value})
    result = mopn.minimize(problem, FISTA(), tol=1e-5, max_iter=10_000)
    assert result.success
    assert 0 < np.count_nonzero(result.weights.any(axis=1)) <= 50
    # Computed again from the weights of all units; the best bound of the run may be of another point.
    assert problem.measure(result.x).gap <= 1e-4 * result.fun


@every_norm
def test_a_working_set_is_the_problem_of_its_units(norm):
    """With a ridge and a linear term; a set that is no half of the units begins with those that have weights."""
    rng = np.random.default_rng(0)
    X, H, V = rng.uniform(-1, 1, (60, 4)), rng.standard_normal((120, 4)), rng.standard_normal((120, 2))
    V[rng.permutation(120)[3:]] = 0.0
    options = {"norm": norm, "strength": 0.1, "ridge": 0.3, "alpha": 0.1}
    network = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, **options)
    layer = network.output_layer(network.start((H, V)))
    x = layer.start(V)
    inner, kept, lower = layer.working_set(x, 50)
    assert layer.working_set(x, 60) is None
    assert set(np.flatnonzero(x)) <= set(kept)
    assert inner.shape == (50, 2)
    whole = layer.smooth(layer.image(x))
    part = inner.smooth(inner.image(x[kept]))
    assert part.value == pytest.approx(whole.value, rel=1e-12)
    assert part.gradient == pytest.approx(whole.gradient[kept], rel=1e-9, abs=1e-12)
    assert inner.regularizer_value(x[kept]) == pytest.approx(layer.regularizer_value(x), rel=1e-12)
    assert lower == layer.dual_bound(whole) <= inner.dual_bound(part) + 1e-12 * whole.value

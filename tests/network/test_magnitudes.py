"""Numbers of any size: what floating point can hold is fitted without a warning, and the rest is refused by name."""

import numpy as np
import pytest
from networks import every_norm
from scipy import sparse

import mopn
from mopn.solvers import FISTA, ConditionalGradient, FullRefit, InteriorPoint, OutputRefit, PlainStep

rng = np.random.default_rng(0)
X, Y = rng.uniform(-1, 1, (30, 3)), np.arange(30) % 3
T = np.stack([X[:, 0] * X[:, 1], X[:, 2] - 0.3 * X[:, 0]], axis=1)


def one(array, value):
    """Return a copy with one other entry."""
    copy = np.array(array, dtype=float)
    copy[(0,) * copy.ndim] = value
    return copy


BEYOND = {
    "X": lambda c: {"X": c * X},
    "one entry of X": lambda c: {"X": one(X, c)} if c > 1 else {"X": c * X},
    "sparse X": lambda c: {"X": sparse.csr_array(c * X)},
    "y": lambda c: {"y": c * T, "loss": "squared"},
    "sample_weight": lambda c: {"sample_weight": np.full(30, c)},
    "offset": lambda c: {"offset": np.array([c, -c, 0.0])},
}


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e-80, 1e60, 1e150, 1e300])
@pytest.mark.parametrize("argument", BEYOND)
def test_what_leaves_the_range_is_refused_by_name(argument, size):
    given = {"X": X, "y": Y, "strength": 1.0} | BEYOND[argument](size)
    words = f"{argument.split()[-1]} is too {'large' if size > 1 else 'small'} for floating point.*scale it"
    with pytest.raises(ValueError, match=words):
        mopn.NetworkProblem(**given)
    if argument in ("y", "sample_weight", "offset"):
        with pytest.raises(ValueError, match=words):
            mopn.OutputLayerProblem(given.pop("X"), **given)


def test_features_that_leave_the_range_are_refused():
    with pytest.raises(ValueError, match=r"features is too large.*its largest modulus is 1e\+150"):
        mopn.OutputLayerProblem(one(X, 1e150), Y, strength=1.0)


@pytest.mark.parametrize("value", [{"strength": 1e-320}, {"strength": 1e-80}, {"radius": 1e300}, {"radius": 1e80}])
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
def test_regularisers_too_weak_for_floating_point_are_refused(norm, value):
    (name, size), words = *value.items(), "is too weak for floating point"
    for problem, data in ((mopn.NetworkProblem, X), (mopn.OutputLayerProblem, X**2)):
        with pytest.raises(ValueError, match=f"{name}={size}".replace("+", r"\+") + f" {words}"):
            problem(data, Y, norm=norm, **value)
    with pytest.raises(ValueError, match=words):
        mopn.NetworkProblem(X, Y, norm=norm, strength=1.0).with_strength(1e-300)
    with pytest.raises(ValueError, match=words):
        mopn.OutputLayerProblem(X, Y, norm="squared-l2", strength=1e-320)


def test_sizes_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="X, y and sample_weight are of sizes too different"):
        mopn.NetworkProblem(1e40 * X, T, loss="squared", strength=1.0)
    with pytest.raises(ValueError, match="X, y and sample_weight are of sizes too different"):
        mopn.NetworkProblem(X, 1e40 * T, loss="squared", strength=1.0)


@pytest.mark.parametrize(
    "problem",
    [
        mopn.NetworkProblem(1e20 * X, Y, strength=1e40),
        mopn.NetworkProblem(one(X, 1e20), Y, strength=1.0),
        mopn.NetworkProblem(1e-20 * X, Y, strength=1e-41),
        mopn.NetworkProblem(X, 1e30 * T, loss="squared", strength=1e29),
        mopn.NetworkProblem(X, Y, sample_weight=np.full(30, 1e40), strength=1e39),
    ],
)
def test_what_single_precision_cannot_hold_is_refused(problem):
    solver = ConditionalGradient(refit=FullRefit(precision="single"), max_units=3, schedule="fill")
    with pytest.raises(ValueError, match="too large or too small for precision='single'"):
        mopn.minimize(problem, solver, max_iter=3)


WITHIN = {
    "small X": lambda: mopn.NetworkProblem(1e-30 * X, Y, norm="l1", strength=0.5e-60),
    "large X": lambda: mopn.NetworkProblem(1e30 * X, Y, norm="l1", strength=0.5e60),
    "small y": lambda: mopn.NetworkProblem(X, 1e-30 * T, loss="squared", norm="l1", strength=1e-31),
    "large y": lambda: mopn.NetworkProblem(X, 1e30 * T, loss="squared", norm="l1", strength=1e29),
    "small weights": lambda: mopn.NetworkProblem(X, Y, sample_weight=np.full(30, 1e-45), norm="l1", strength=0.5e-45),
    "large weights": lambda: mopn.NetworkProblem(X, Y, sample_weight=np.full(30, 1e45), norm="l1", strength=0.5e45),
}
ALONE = {
    "X": mopn.NetworkProblem(X, Y, norm="l1", strength=0.5),
    "y": mopn.NetworkProblem(X, T, loss="squared", norm="l1", strength=0.1),
    "weights": mopn.NetworkProblem(X, Y, norm="l1", strength=0.5),
}


@pytest.mark.parametrize("case", WITHIN)
def test_the_same_problem_in_other_units_has_the_same_solution(case):
    solver = ConditionalGradient()
    run = mopn.minimize(WITHIN[case](), solver, tol=1e-2, max_iter=30)
    plain = mopn.minimize(ALONE[case.split()[1]], solver, tol=1e-2, max_iter=30)
    unit = {"small y": 1e-60, "large y": 1e60, "small weights": 1e-45, "large weights": 1e45}.get(case, 1.0)
    assert run.success
    assert run.fun == pytest.approx(unit * plain.fun, rel=1e-6)
    assert run.gap == pytest.approx(unit * plain.gap, rel=1e-6)


SOLVERS = {
    "output": ConditionalGradient(refit=OutputRefit(max_iter=20)),
    "full": ConditionalGradient(refit="full", max_units=4),
    "fista": ConditionalGradient(refit=OutputRefit(solver=FISTA())),
    "paper": ConditionalGradient(refit=FullRefit(solver=FISTA()), max_units=3),
    "plain": ConditionalGradient(refit=PlainStep()),
}
UNEQUAL = {
    "one large entry of X": lambda **kw: mopn.NetworkProblem(one(X, 1e20), Y, strength=0.5, **kw),
    "one large target": lambda **kw: mopn.NetworkProblem(X, one(T, 1e20), loss="squared", strength=0.5, **kw),
    "tiny weights": lambda **kw: mopn.NetworkProblem(X, Y, sample_weight=[1e-310] * 9 + [1.0] * 21, strength=0.5, **kw),
    "offset": lambda **kw: mopn.NetworkProblem(X, Y, offset=np.array([1e20, -1e20, 0.0]), strength=0.5, **kw),
    "weak penalty": lambda **kw: mopn.NetworkProblem(X, Y, strength=1e-50, **kw),
    "strong penalty": lambda **kw: mopn.NetworkProblem(X, Y, strength=1e300, **kw),
    "large ball": lambda **kw: mopn.NetworkProblem(X, Y, radius=1e40, **kw),
    "small ball": lambda **kw: mopn.NetworkProblem(X, Y, radius=1e-300, **kw),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", UNEQUAL)
@every_norm
def test_numbers_of_very_different_sizes_are_fitted(norm, case, solver):
    result = mopn.minimize(UNEQUAL[case](norm=norm), SOLVERS[solver], tol=1e-3, max_iter=2)
    assert result.error is None
    assert np.isfinite(result.fun)
    assert np.isfinite(result.weights).all()


@pytest.mark.parametrize("strength", [1e-10, 1e-20, 1e-60])
def test_a_penalty_below_the_rounding_of_the_slopes_does_no_harm(strength):
    """The losses do not change when all outputs of a row shift; only the penalty holds that direction."""
    problem = mopn.OutputLayerProblem(X**2, Y, loss="squared-hinge", norm="l1", strength=strength)
    result = mopn.minimize(problem, InteriorPoint(), tol=1e-3, max_iter=10)
    free = mopn.minimize(mopn.OutputLayerProblem(X**2, Y, loss="squared-hinge", strength=0.0), FISTA(), tol=0)
    assert result.trace["fun"][1:].min() <= free.fun * 1.001
    assert np.isfinite(result.weights).all()

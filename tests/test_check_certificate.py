"""The program examples/check_certificate.py proves true gaps, and nothing for files that are wrong."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

import mopn
from mopn import estimators
from mopn.solvers import ConditionalGradient

ROOT = Path(__file__).parents[1]
CHECK = (ROOT / "examples" / "check_certificate.py").read_text(encoding="utf-8")
X, Y = load_wine(return_X_y=True)
WEIGHTS = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)


@pytest.fixture(scope="module")
def program():
    """The names that the program defines, without its last lines, which read data and a file."""
    names = {}
    exec(CHECK.split("\nX, y = load_digits")[0], names)
    return names


def certificate(problem, network, dual):
    """Return the arrays that the page saves."""
    basis, weights, _ = network
    fit = {"basis": basis, "weights": weights, "D": dual.point(problem)}
    return fit | {"strength": problem.strength, "ridge": problem.ridge}


def of_estimator(model, X, y, w=None):
    problem = model.fit(X, y, w).problem(X, y, w)
    fit = certificate(problem, problem.start_of(model), model.dual_)
    network = getattr(model.model_, "model", model.model_)
    return problem, fit | {"offset": network.offset}, model.relative_gap_


def of_problem(**options):
    problem = mopn.NetworkProblem(X, Y, augment=True, center=True, scale="features", **options)
    found = mopn.minimize(problem, ConditionalGradient("full"), tol=1e-3)
    fit = certificate(problem, (found.basis, found.weights, None), found.dual)
    if options["norm"] == "l1/l2":
        fit["N"] = found.dual.multipliers(problem)
    return problem, fit | {"offset": options.get("offset", 0.0)}, found.relative_gap


CASES = {
    "defaults": lambda: of_estimator(estimators.MultiOutputPNClassifier(tol=1e-3), X, Y),
    "weights": lambda: of_estimator(estimators.MultiOutputPNClassifier(tol=1e-3), X, Y, WEIGHTS),
    "no ridge": lambda: of_estimator(estimators.MultiOutputPNClassifier(tol=1e-3, ridge=0), X, Y),
    "a table": lambda: of_estimator(estimators.TableClassifier(curves=1, strength=3.0), X[:, :5], Y, WEIGHTS),
    "an offset": lambda: of_problem(norm="l1", strength=2.0, offset=[1.0, -2.0, 0.5]),
    "an offset and a ridge": lambda: of_problem(norm="l1", strength=2.0, ridge=0.1, offset=[1.0, -2.0, 0.5]),
    "l1/l2": lambda: of_problem(norm="l1/l2", strength=5.0),
    "l1/linf": lambda: of_problem(norm="l1/linf", strength=5.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_program_proves_the_gaps_of_mopn(program, name):
    problem, fit, gap = CASES[name]()
    w = WEIGHTS if name in ("weights", "a table") else np.ones(len(Y))
    Z = problem.design.matrix()
    if name != "a table":
        np.testing.assert_allclose(program["features"](X, w), Z, atol=1e-9)
    found = program["proven_gap"](Z, Y, fit, w, problem.norm.name)
    assert gap < 0.02
    assert found == pytest.approx(gap, rel=1e-2, abs=1e-4)


@pytest.fixture(scope="module")
def right():
    rows = np.arange(0, len(Y), 3)
    problem, fit, gap = of_estimator(estimators.MultiOutputPNClassifier(tol=1e-3), X[rows, :6], Y[rows])
    assert gap < 1e-3
    return {"Z": problem.design.matrix(), "y": Y[rows], "w": np.ones(len(rows))} | fit


def with_nan(array):
    array = np.array(array, dtype=float)
    array[(0,) * array.ndim] = np.nan
    return array


def longer(right, factor):
    """Return a network ``factor`` times too large, by units ten times as long and weights of a hundredth."""
    return {"basis": 10 * right["basis"], "weights": factor * right["weights"] / 100}


WRONG = {
    "three times too large": lambda right: longer(right, 3),
    "half": lambda right: {"weights": right["weights"] / 2},
    "units of length 0": lambda right: {"basis": 0 * right["basis"]},
    "a negative strength": lambda right: {"strength": -right["strength"]},
    "no strength": lambda right: {"strength": 0.0},
    "a larger strength": lambda right: {"strength": 3 * right["strength"]},
    "a negative ridge": lambda right: {"ridge": -right["ridge"]},
    "a larger ridge": lambda right: {"ridge": 100 * right["ridge"]},
    "an infinite strength": lambda right: {"strength": np.inf},
    "another y": lambda right: {"y": np.roll(right["y"], 20)},
    "a fourth class": lambda right: {"y": np.where(np.arange(len(right["y"])) == 0, 3, right["y"])},
    "other rows": lambda right: {"Z": right["Z"][::-1]},
    "scaled rows": lambda right: {"Z": 2 * right["Z"]},
    "other rows of D": lambda right: {"D": right["D"][::-1]},
    "an opposite D": lambda right: {"D": -right["D"]},
    "a large D": lambda right: {"D": 1e6 * right["D"]},
    "a huge D, and an offset": lambda right: {"D": np.full(right["D"].shape, 1e308), "offset": [-9.0, -9.0, -9.0]},
    "negative weights": lambda right: {"w": -right["w"]},
    "other weights": lambda right: {"w": 1.0 + 9.0 * (right["y"] == 0)},
    "an offset": lambda right: {"offset": np.array([3.0, 0.0, 0.0])},
    "an offset of four": lambda right: {"offset": np.zeros(4)},
    "fewer rows": lambda right: {"Z": right["Z"][1:]},
    "fewer features": lambda right: {"Z": right["Z"][:, 1:]},
    "a unit without weights": lambda right: {"basis": right["basis"][1:]},
    **{
        f"NaN in {name}": lambda right, name=name: {name: with_nan(right[name])}
        for name in ("Z", "y", "w", "basis", "weights", "D", "offset", "strength", "ridge")
    },
}


@pytest.mark.parametrize("name", WRONG)
def test_the_program_proves_nothing_of_wrong_files(program, right, name):
    def gap(data):
        fit = {key: data[key] for key in right if key not in ("Z", "y", "w")}
        return program["proven_gap"](data["Z"], data["y"], fit, data["w"])

    assert gap(right) < 2e-3
    assert gap(right | longer(right, 1)) == pytest.approx(gap(right), rel=1e-6)
    assert not gap(right | WRONG[name](right)) < 5e-3


@pytest.mark.parametrize("N", ["right", "none", "minus", "NaN", "small"])
def test_the_multipliers_of_a_sum_of_squares(program, N):
    """Those of another problem prove too large a bound, and none of them a false one."""
    rng = np.random.default_rng(1)
    Z = np.column_stack([np.ones(40), rng.uniform(-1, 1, (40, 4))])
    y = np.digitize(Z[:, 1] * Z[:, 2] + Z[:, 3] * Z[:, 4], [-0.2, 0.2])
    problem = mopn.NetworkProblem(Z, y, norm="l1/l2", strength=2.0)
    found = mopn.minimize(problem, ConditionalGradient("full"), tol=1e-4)
    D, multipliers = found.dual.point(problem), found.dual.multipliers(problem)
    gammas = np.einsum("ic,ij,ik->cjk", D, Z, Z)
    given = {"right": multipliers, "none": 0 * multipliers, "minus": -np.eye(25)}
    given |= {"NaN": with_nan(multipliers), "small": np.zeros((5, 5))}
    bound = program["dual_norm"](gammas, np.zeros(3), "l1/l2", {"N": given[N]})
    units = rng.normal(size=(4000, 5))
    units = np.vstack([units / np.linalg.norm(units, axis=1, keepdims=True), found.basis])
    reached = np.linalg.norm(np.einsum("rj,cjk,rk->rc", units, gammas, units), axis=1).max()
    assert bound >= reached
    if N == "right":
        assert bound <= found.dual.bound * (1 + 1e-4)
    else:
        assert bound > 1.01 * found.dual.bound


def test_multipliers_are_of_few_features_without_a_ridge():
    rng = np.random.default_rng(0)
    y = np.arange(20) % 3
    for d, ridge in ((3, 0.1), (31, 0.0)):
        problem = mopn.NetworkProblem(rng.uniform(-1, 1, (20, d)), y, strength=1.0, ridge=ridge)
        dual = mopn.minimize(problem, max_iter=1).dual
        with pytest.raises(ValueError, match=f"at most 30 features.*got {d} features and ridge={ridge:g}"):
            dual.multipliers(problem)

"""The regularisation path: every entry is a fit of its own, from the largest strength down."""

import numpy as np
import pytest

import mopn
from mopn.regularization_path import check_strengths, path_solver
from mopn.solvers import ConditionalGradient, Status

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (150, 4))
Y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] ** 2 > 0.4)
TRAIN, HELD_OUT = slice(100), slice(100, None)


def problem(norm="l1/l2", **options):
    return mopn.NetworkProblem(X[TRAIN], Y[TRAIN], norm=norm, augment=True, **({"strength": 1.0} | options))


def accuracy(model):
    return float(np.mean(model.predict(X[HELD_OUT]) == Y[HELD_OUT]))


@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.slow
def test_every_entry_is_near_the_optimum_of_its_strength(norm):
    strengths = [20.0, 5.0, 1.5]
    found = mopn.path(problem(norm), strengths, ConditionalGradient(refit="full"), rounds=None, tol=1e-4)
    assert found.strengths.tolist() == strengths
    for strength, result in zip(strengths, found.results, strict=True):
        assert result.success
        alone = mopn.minimize(problem(norm, strength=strength), ConditionalGradient(refit="full"), tol=1e-4)
        assert result.fun == pytest.approx(alone.fun, rel=2e-4)
        again = mopn.certify(problem(norm, strength=strength), result.basis, result.weights)
        assert again.fun == pytest.approx(result.fun, rel=1e-9)


def test_the_series_starts_where_the_solution_is_zero():
    found = mopn.path(problem("l1"), 6)
    largest = problem("l1").strength_max()
    np.testing.assert_allclose(found.strengths, largest * 0.001 ** (np.arange(6) / 5), rtol=1e-9)
    assert found.n_units[0] == 0
    assert found.n_units[-1] > 0
    # Less strength never costs more: F + strength * Omega grows with the strength at every point.
    fun = found.column("fun")
    assert np.all(np.diff(fun) <= 1e-9 * fun[:-1])


def test_strengths_are_sorted_and_told_apart():
    ratio = mopn.Ratio(0.5)
    found = mopn.path(problem(), [1.0, 8.0, ratio, 1.0, 3.0], path_solver(4, max_units=4))
    assert found.strengths.tolist() == [problem(strength=ratio).strength, 8.0, 3.0, 1.0]
    assert found.scores is None
    assert found.best == 3


def test_a_path_is_warm():
    """A round a strength continues from the units of the strength before."""
    cold = mopn.minimize(problem(strength=0.5), path_solver(6, max_units=6), max_iter=1, tol=1e-3)
    found = mopn.path(problem(), np.geomspace(20.0, 0.5, 6), path_solver(6, max_units=6))
    assert found.results[-1].fun < cold.fun


def test_scores_choose_and_patience_ends_the_path():
    seen = []

    def score(model):
        seen.append(model.weights.shape[0])
        return -abs(len(seen) - 3)

    found = mopn.path(problem(), 12, score=score, patience=2)
    assert found.scores.tolist() == [-2.0, -1.0, 0.0, -1.0, -2.0]
    assert found.best == 2
    assert found.n_units.tolist() == seen
    assert len(found.strengths) == 5
    scored = mopn.path(problem(), 5, score=accuracy)
    models = [mopn.Model.from_result(problem(), result) for result in scored.results]
    assert scored.scores.tolist() == [accuracy(model) for model in models]
    assert scored.scores.max() > scored.scores[0] + 0.2


def test_patience_waits_for_the_first_units():
    largest = problem().strength_max()
    found = mopn.path(problem(), np.geomspace(100 * largest, 0.1 * largest, 9), score=lambda model: 0.0, patience=2)
    grown = np.flatnonzero(found.n_units)
    assert grown[0] > 2
    assert len(found.results) == grown[0] + 3


def test_a_path_ends_with_its_time_and_with_its_callback():
    found = mopn.path(problem(), 8, max_time=0.0)
    assert found.results[-1].status == Status.MAX_TIME
    assert len(found.results) < 8

    def stop(intermediate_result):
        if len(intermediate_result.basis) > 0:
            raise StopIteration

    found = mopn.path(problem(), 8, callback=stop)
    assert found.results[-1].status == Status.STOPPED
    assert len(found.results) == 2


def test_the_problem_is_left_alone():
    given = problem(strength=2.5)
    other = given.with_strength(1.0)
    mopn.path(given, 3)
    assert given.regularizer.strength == 2.5
    assert other.regularizer.strength == 1.0
    assert other.design is given.design
    with pytest.raises(ValueError, match="strength must be a finite number >= 0, got -1"):
        given.with_strength(-1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"problem": "X"}, TypeError, "problem must be a NetworkProblem, got str"),
        ({"problem": problem(strength=None, radius=1.0)}, ValueError, "the problem has a radius"),
        ({"strengths": 1}, ValueError, "strengths must be a number >= 2 or an array"),
        ({"strengths": [1.0, 0.0]}, ValueError, "strengths must be finite numbers > 0"),
        ({"strengths": [[1.0]]}, ValueError, "in one dimension"),
        ({"rounds": -1}, ValueError, "rounds must be an integer >= 0 or None, got -1"),
        ({"patience": 1}, ValueError, "give score too"),
        ({"score": float}, TypeError, r"score must be a function, .* got <class .float.>"),
    ],
)
def test_bad_input(change, error, message):
    with pytest.raises(error, match=message):
        mopn.path(**({"problem": problem()} | change))


@pytest.mark.parametrize("row", [[0.0, 0.0], [0.3, -0.7], [3e5, 1e-5]])
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
def test_a_gradient_of_zero_has_no_series(norm, row):
    """Equal samples of balanced classes: their sums are rounding errors."""
    flat = mopn.NetworkProblem(np.repeat([row], 18, axis=0), np.arange(18) % 3, norm=norm, strength=1.0, augment=True)
    with pytest.raises(ValueError, match="the model is empty at every strength"):
        check_strengths(flat, 5)

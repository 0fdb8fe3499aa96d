"""The race on the sphere: relaxations as others solve them, and the program on small problems."""

import numpy as np
import pytest

import mopn
from benchmarks.certificates import sphere_race, sphere_stacks
from benchmarks.certificates.sphere_relaxations import by_low_rank, by_program, moments, relaxation
from mopn.solvers.sphere import DenseStack, maximise

# A biquadratic form for each p, and sums of squares.
CASES = [(1, 3, 6), (2, 2, 6), (2, 4, 3)]


def example(p, m, d):
    stack, _ = DenseStack(np.random.default_rng(0).standard_normal((m, d, d))).scaled()
    return stack, *relaxation(stack, p)


@pytest.mark.parametrize(("p", "m", "d"), CASES)
def test_moments_are_what_no_multiplier_changes(p, m, d):
    _, form, _ = example(p, m, d)
    A, n = moments(form), len(form.matrix)
    rng = np.random.default_rng(1)
    X = (A @ rng.standard_normal(A.shape[1])).reshape(n, n)
    np.testing.assert_allclose(X, X.T)
    np.testing.assert_allclose(form.project(X), 0, atol=1e-12)
    # And all that is so: the other symmetric matrices are no fewer than their projections say.
    V = rng.standard_normal((n, n))
    V += V.T
    rest = (V - form.project(V)).ravel()
    np.testing.assert_allclose(A @ np.linalg.lstsq(A.toarray(), rest, rcond=None)[0], rest, atol=1e-10)


@pytest.mark.parametrize(("p", "m", "d"), CASES)
@pytest.mark.parametrize("solver", ["clarabel", "scs", "low-rank"])
def test_bounds_are_those_of_the_maximum(p, m, d, solver):
    stack, form, power = example(p, m, d)
    if solver == "low-rank":
        *_, bound = by_low_rank(form, 20.0)
    else:
        pytest.importorskip("cvxpy")
        pytest.importorskip(solver)
        (bound,) = by_program(form, solver, 20.0)
    # Of the relaxation for p = 1 the bound is not tight.
    found = maximise(stack.matrices, p)
    assert found.value <= bound ** (1 / power) <= (1.05 if p == 1 else 1.001) * found.bound


@pytest.mark.parametrize(("p", "ended"), [(2, 2), (1, 3)])
def test_the_program_prints_a_row_a_problem(p, ended, tmp_path, capsys):
    arguments = ["--out", str(tmp_path), "--stacks", "random", "--d", "4", "--m", "2", "--seconds", "20", "40"]
    arguments += ["--p", str(p), "--solvers", "mopn", "enumerate", "low-rank"]
    assert sphere_race.main(arguments) == 0
    printed = capsys.readouterr().out
    _, row, _, _ = printed.splitlines()
    assert row.split()[:5] == [str(p), "random", "4", "2", "20"]
    # Of each solver that is one for this p the excess and seconds.
    numbers = [float(entry) for entry in row.split()[5:] if entry != "-"]
    assert len(numbers) == 2 * ended
    assert all(0 <= excess < 0.1 for excess in numbers[::2])
    assert sphere_race.main(arguments) == 0
    assert capsys.readouterr().out == printed


def test_gradients_of_fits_are_made_once_and_raced(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 3
    monkeypatch.setattr(sphere_stacks, "samples", lambda name, folder: (X, y))
    arguments = ["--out", str(tmp_path), "--stacks", "digits", "--p", "1", "--solvers", "mopn", "enumerate"]
    assert sphere_race.main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:5] == ["1", "digits", "4", "3", "60"]
    # At the fit's solution the maximum is its strength, up to the fit's gap.
    problem = mopn.NetworkProblem(X, y, norm="l1/linf", strength=mopn.Ratio(0.2), augment=True)
    value = maximise(np.load(tmp_path / "digits-1.npy"), 1).value
    np.testing.assert_allclose(value, problem.regularizer.strength, rtol=0.05)


def test_larger_problems_and_longer_limits_are_run_only_where_they_tell(tmp_path, monkeypatch, capsys):
    """A solver that is out of time at d = 5 is run once more with the longer limit, and not at d = 6."""
    run = []

    def answer(cell, *_):
        run.append((cell.solver, cell.d, cell.max_time))
        return {"status": "out of time" if cell.solver == "low-rank" and cell.d > 4 else "ended", "value": 1.0}

    monkeypatch.setattr(sphere_race, "answer_in_process", answer)
    arguments = ["--out", str(tmp_path), "--stacks", "random", "--d", "4", "5", "6", "--m", "2", "--p", "2"]
    assert sphere_race.main([*arguments, "--solvers", "mopn", "low-rank", "--seconds", "1", "2"]) == 0
    low_rank = [("low-rank", 4, 1), ("low-rank", 5, 1), ("low-rank", 5, 2)]
    assert run == [("mopn", 4, 1), low_rank[0], ("mopn", 5, 1), *low_rank[1:], ("mopn", 6, 1)]
    assert "out of time*" in capsys.readouterr().out

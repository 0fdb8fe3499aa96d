"""The race on the sphere: relaxations as others solve them, and the program on small problems."""

import numpy as np
import pytest

from benchmarks.certificates import sphere_race
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
    np.testing.assert_allclose(A @ np.linalg.lstsq(A.toarray(), rest)[0], rest, atol=1e-10)


@pytest.mark.parametrize(("p", "m", "d"), CASES)
@pytest.mark.parametrize("solver", ["clarabel", "scs", "low-rank"])
def test_bounds_are_those_of_the_maximum(p, m, d, solver):
    stack, form, power = example(p, m, d)
    if solver == "low-rank":
        *_, (bound, _) = by_low_rank(form, 20.0)
    else:
        pytest.importorskip("cvxpy")
        pytest.importorskip(solver)
        ((bound, _),) = by_program(form, solver, 20.0)
    # Of the relaxation for p = 1 the bound is not tight.
    assert (
        maximise(stack.matrices, p).value
        <= bound ** (1 / power)
        <= (1.05 if p == 1 else 1.001) * maximise(stack.matrices, p).bound
    )


def test_the_program_prints_a_row_a_run(tmp_path, capsys):
    arguments = ["--out", str(tmp_path), "--solvers", "mopn", "low-rank", "--d", "4", "--m", "2", "--max-time", "20"]
    assert sphere_race.main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.count("ended") == 2
    assert sphere_race.main(arguments) == 0
    assert capsys.readouterr().out == printed


def test_packages_that_are_missing_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sphere_race, "missing_packages", lambda solvers: ["cvxpy", "scs"])
    assert sphere_race.main(["--out", str(tmp_path)]) == 1
    assert "pip install cvxpy scs" in capsys.readouterr().err

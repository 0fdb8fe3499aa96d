"""Performance profiles: times read off traces, fractions of problems, and the program on small synthetic data."""

import numpy as np

import mopn
from benchmarks.certificates import profiles
from benchmarks.certificates.profile_figure import LEVELS, level_column, times
from benchmarks.common.profiles import profile_ratios

SOLVERS = ["a", "b"]


def row(name, solver, *seconds):
    columns = {level_column(level): str(value) for level, value in zip(LEVELS, seconds, strict=True)}
    return {"set": name, "norm": "l1", "ratio": "0.2", "solver": solver, **columns}


def test_ratios_are_to_the_fastest_solver_of_each_problem():
    rows = [row("x", "b", 2, 3, "inf"), row("x", "a", 1, 6, "inf"), row("y", "a", "inf", "inf", "inf")]
    seconds = times(rows, SOLVERS, LEVELS[0])
    np.testing.assert_array_equal(seconds, [[1, 2], [np.inf, np.inf]])
    # What none solves is not solved by any, whatever the factor; what was not run counts as not solved.
    np.testing.assert_array_equal(profile_ratios(seconds), seconds)
    np.testing.assert_array_equal(profile_ratios(times(rows, SOLVERS, LEVELS[1])), [[2, 1], [np.inf, np.inf]])
    assert np.isinf(profile_ratios(times(rows, SOLVERS, LEVELS[2]))).all()


def test_times_to_levels_are_the_first_of_the_trace():
    X = np.random.default_rng(0).uniform(-1, 1, (80, 3))
    problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    trace = mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-3).trace
    found = [profiles.time_to(trace, level) for level in (1e3, 1e-1, 1e-3, 0.0)]
    assert found == sorted(found)
    assert found[0] == trace["time"][0]
    assert found[2] == trace["time"][-1]
    assert found[3] == np.inf


def test_the_draw_is_stratified_and_its_features_are_scaled(folder):
    X, y = profiles.samples("vowel", str(folder), 100)
    whole = profiles.samples("vowel", str(folder), 10_000)[1]
    assert X.shape == (100, 10)
    np.testing.assert_allclose(np.bincount(y) / 100, np.bincount(whole) / len(whole), atol=0.01)
    np.testing.assert_array_equal(np.abs(X).max(axis=0), 1.0)


def test_times_are_drawn_again(folder, tmp_path, capsys):
    out, again = tmp_path / "out", ["--out", str(tmp_path / "again")]
    sizes = ["--sets", "vowel", "--norms", "l1", "--ratios", "0.5", "--rows", "60", "--max-time", "0.1"]
    assert profiles.main(["--data", str(folder), "--out", str(out), *sizes]) == 0
    first = capsys.readouterr().out
    assert profiles.main(["--from-csv", str(out / "times.csv"), *again]) == 0
    assert capsys.readouterr().out.split("\n\n")[0] in first
    assert (tmp_path / "again" / "profiles.png").stat().st_size > 10_000
    assert profiles.main(["--from-csv", str(tmp_path / "none.csv"), *again]) == 2
    assert "none.csv" in capsys.readouterr().err

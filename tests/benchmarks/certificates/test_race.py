"""The race: that both forms are one problem, how runs end, and the program on small problems."""

import json

import numpy as np
import pytest

import mopn
from benchmarks.certificates import race, race_cell
from benchmarks.certificates.planted import planted
from benchmarks.certificates.race_cell import DONE, MEMORY_OUT, TIME_OUT, Cell, answer_in_process
from benchmarks.certificates.semidefinite import solve, units

LOSSES = [("squared", 1, "squared"), ("squared", 2, "squared"), ("logistic", 1, "binary-logistic")]
LOSSES += [("logistic", 3, "logistic")]
SMALL = Cell("logistic", 40, 2, 2, "mopn", 0.1, 30.0, 16.0)


def test_units_of_matrices_have_their_outputs_and_nuclear_norms():
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((3, 4, 4))
    matrices += matrices.transpose(0, 2, 1)
    basis, weights = units(matrices)
    rows = rng.standard_normal((5, 4))
    np.testing.assert_allclose((rows @ basis.T) ** 2 @ weights, np.einsum("ni,cij,nj->nc", rows, matrices, rows))
    np.testing.assert_allclose(np.abs(weights).sum(), np.abs(np.linalg.eigvalsh(matrices)).sum())


@pytest.mark.parametrize(("loss", "m", "name"), LOSSES)
@pytest.mark.parametrize("solver", ["clarabel", "scs"])
def test_the_program_has_the_minimum_of_the_problem(loss, m, name, solver):
    pytest.importorskip("cvxpy")
    pytest.importorskip(solver)
    made = planted(loss, 60, 3, m, 0.1)
    assert made.loss == made.problem.losses.loss.name == name
    assert made.targets.shape == (60, m)
    found = solve(made, solver, 1e-7, 10.0)
    certified = mopn.certify(made.problem, *units(found.matrices), "exact")
    assert 0 <= certified.gap <= 1e-4 * certified.fun


def test_a_solver_that_failed_is_not_tried_at_larger_sizes(tmp_path, monkeypatch, capsys):
    tried = []

    def answer(cell, program):
        tried.append((cell.m, cell.d))
        return {"status": DONE, "seconds": 0.1, "fun": 2.0, "gap": 1e-5} if cell.d < 9 else {"status": TIME_OUT}

    monkeypatch.setattr(race, "answer_in_process", answer)
    arguments = ["--out", str(tmp_path), "--solvers", "mopn", "--d", "5", "9", "20", "--m", "1", "2"]
    assert race.main(arguments) == 0
    printed = capsys.readouterr().out
    assert tried == [(1, 5), (1, 9), (2, 5)]
    assert printed.count("not tried") == 3
    assert (tmp_path / "race.png").stat().st_size > 10_000
    # The same command makes none of these again.
    assert race.main(arguments) == 0
    assert capsys.readouterr().out == printed
    assert len(tried) == 3


def test_a_run_in_this_process_prints_its_answer(monkeypatch, capsys):
    # The limit would be that of the tests.
    monkeypatch.setattr("resource.setrlimit", lambda *limits: None)
    race.main(["--cell", json.dumps(SMALL)])
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == DONE
    assert answer["gap"] <= 1e-4


def test_runs_end_at_their_limits(tmp_path, monkeypatch):
    """In processes of their own: one of too little memory, and one that is still there after its time."""
    monkeypatch.setattr(race_cell, "_LOADING", 0.5)
    program = "a_program_of_the_race"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path = tmp_path / f"{program}.py"
    path.write_text("raise MemoryError")
    assert answer_in_process(SMALL, program) == {"status": MEMORY_OUT}
    # What was printed before the end is kept, but for a line that is not complete.
    path.write_text("import time\nprint('{\"gap\": 0.5}\\n{\"ga', end='', flush=True)\ntime.sleep(60)")
    assert answer_in_process(SMALL._replace(max_time=0.5), program) == {"gap": 0.5, "status": TIME_OUT}

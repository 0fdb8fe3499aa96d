"""Proofs and choices of units, on small synthetic data."""

from benchmarks.certificates import oracles
from benchmarks.certificates.__main__ import main


def test_proofs_are_printed_and_plotted(folder, tmp_path, capsys):
    arguments = ["--data", str(folder), "--out", str(tmp_path), "--sets", "vowel", "--max-time", "60"]
    main([*arguments, "--fractions", "0.5", "--tol", "1e-3"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("vowel")]
    assert [row[1] for row in rows] == ["l1", "l1/l2", "l1/linf"]
    assert all(float(row[3]) <= 1e-3 and row[-1] == "CONVERGED" for row in rows)
    assert (tmp_path / "certificates.png").stat().st_size > 10_000


def test_choices_of_units_are_compared_with_the_optimum(folder, tmp_path, capsys):
    arguments = ["--data", str(folder), "--out", str(tmp_path), "--sets", "vowel", "--max-time", "5", "--rounds", "3"]
    oracles.main([*arguments, "--norms", "l1/linf", "--fraction", "0.3"])
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.startswith(tuple(oracles.STARTS))]
    least = {" ".join(row[:-2]): float(row[-1].strip("()")) for row in rows}
    assert set(least) == set(oracles.STARTS)
    # No start exceeds the proven optimum; refinement never loses; mopn has the starts of the others among its own.
    assert all(0 < value <= 1 for value in least.values())
    assert least["l1 + refine"] >= least["l1"]
    assert least["mopn"] >= max(least["extremes + refine"], least["Gram + refine"])
    assert "median" in printed
    assert (tmp_path / "oracles.png").stat().st_size > 10_000

"""Ratios of times, on small synthetic data."""

from benchmarks.speed import layers
from benchmarks.speed.__main__ import main
from benchmarks.speed.layers import Ratio, median


def test_ratios_are_printed_beside_gaps_and_accuracies(folder, capsys, monkeypatch):
    monkeypatch.setattr(layers, "STRENGTHS", (10.0,))
    main(["--data", str(folder), "--sets", "vowel", "--cap", "5", "--splits", "2"])
    refits, fits = capsys.readouterr().out.split("Fits ")
    rows = [line.split() for line in refits.splitlines() if line.startswith("vowel")]
    assert [row[1] for row in rows] == ["l1", "l1/l2", "l1/linf"]
    assert all(float(row[5]) <= 1e-6 and float(row[8]) <= 1e-6 for row in rows)
    accuracies = {line.split()[1]: line.split()[2] for line in fits.splitlines() if line.startswith("vowel")}
    assert float(accuracies["mopn"]) > 60


def test_the_median_of_ratios_says_whether_it_is_a_bound():
    ratios = [Ratio(1.0), Ratio(3.0), Ratio(5.0, True)]
    assert str(median(ratios)) == "3"
    assert str(median([Ratio(2.0, True), *ratios[1:]])) == "> 3"

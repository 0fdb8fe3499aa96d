"""Ratios of times, on small synthetic data."""

import time
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.speed import layers, peers
from benchmarks.speed.__main__ import main
from benchmarks.speed.ratios import Ratio, median


@pytest.mark.slow
def test_ratios_are_printed_beside_gaps_and_accuracies(folder, capsys, monkeypatch):
    monkeypatch.setattr(layers, "STRENGTHS", (10.0,))
    monkeypatch.setattr(peers, "PEERS", (*peers.PEERS[:1], replace(peers.PEERS[1], module="no_such_module")))
    main(["--data", str(folder), "--sets", "vowel", "--cap", "5", "--splits", "2"])
    printed = capsys.readouterr().out
    refits, others, fits = printed.split("\n\n", 1)[1].split("\n\n", 1)[0], *printed.split("Peers on")[1].split("Fits ")
    rows = [line.split() for line in refits.splitlines() if line.startswith("vowel")]
    assert [row[1] for row in rows] == ["l1", "l1/l2", "l1/linf"]
    assert all(float(row[5]) <= 1e-6 and float(row[8]) <= 1e-6 for row in rows)
    excesses = [float(line.split()[-1]) for line in others.splitlines() if line.startswith("vowel")]
    assert [excess <= target for excess, target in zip(excesses, peers.TARGETS, strict=True)] == [True, True]
    assert "lightning, CD: not installed" in others
    accuracies = {line.split()[1]: line.split()[2] for line in fits.splitlines() if line.startswith("vowel")}
    assert float(accuracies["mopn"]) > 60


def test_the_median_of_ratios_says_whether_it_is_a_bound():
    ratios = [Ratio(1.0), Ratio(3.0), Ratio(5.0, True)]
    assert str(median(ratios)) == "3"
    assert str(median([Ratio(2.0, True), *ratios[1:]])) == "> 3"


@pytest.mark.parametrize(("needed", "target"), [(1, 1e-3), (7, 1e-3), (8, 1e-4), (13, 1e-4)])
def test_the_least_effort_is_found(needed, target):
    search = peers._Search(lambda effort: np.array(float(effort)), lambda V: float(needed > V), cap=5.0)
    assert search(target)[1] == 0.0
    assert min(effort for effort, (_, excess) in search.tried.items() if excess == 0.0) == needed


def test_an_effort_beyond_the_cap_ends_the_search():
    search = peers._Search(lambda effort: time.sleep(100.0 if effort else 0.0) or np.ones(1), lambda V: 0.5, cap=0.5)
    assert search(1e-3) == (0.5, 0.5)
    assert list(search.tried) == [0, 4]

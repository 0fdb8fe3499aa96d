"""The programs on rankings, new users and the best films."""

import re

import numpy as np

from benchmarks.recommender import top

ROW = re.compile(r"^(.*?) +([0-9.]+) +[0-9.]+ +[0-9.]+ +[0-9.]+$", re.MULTILINE)


def test_implicit_models_find_what_users_of_a_kind_rate(tmp_path, capsys, monkeypatch, write):
    """Users of two kinds, who mostly rate the films of their own."""
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(100) for i in range(40) if rng.random() < (0.5 if u % 2 == i % 2 else 0.05)]
    write(tmp_path / "ml-100k", _files(pairs))
    monkeypatch.setattr(top, "_EASE", 10.0)
    assert top.main(["--data", str(tmp_path), "--splits", "1"]) == 0
    recalls = {name.strip(): float(recall) for name, recall in ROW.findall(capsys.readouterr().out)}
    for name in ("EASE", "FactorizationMachineRegressor of 0 and 1"):
        assert recalls[name] > 1.3 * recalls["the number of ratings"]
    assert {"OrdinalFMRegressor", "OrdinalFMRegressor, shrinkage 1000"} <= set(recalls)


def _files(pairs):
    """Return MovieLens' files of ratings: 5 of films of the user's kind, else 1."""
    lines = [f"{1 + u}\t{1 + i}\t{5 if u % 2 == i % 2 else 1}\t0" for u, i in pairs]
    return {"u1.base": "\n".join(lines[20:]) + "\n", "u1.test": "\n".join(lines[:20]) + "\n"}

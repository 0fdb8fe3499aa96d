"""The allocator of the process is the user's: no call of mopn changes it but the one that says so."""

from types import SimpleNamespace

import numpy as np

import mopn
from mopn.solvers.tools import allocator


def test_only_the_users_call_changes_the_allocator(monkeypatch):
    calls = []

    class Library:
        def __init__(self, name):
            pass

        def mallopt(self, *setting):
            calls.append(setting)

    monkeypatch.setattr(allocator, "ctypes", SimpleNamespace(CDLL=Library))
    monkeypatch.setattr(allocator, "os", SimpleNamespace(name="posix"))
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 3))
    problem = mopn.NetworkProblem(X, X[:, 0] > 0, strength=1.0, norm="l1")
    result = mopn.minimize(problem, mopn.solvers.ConditionalGradient("full"), tol=0.1)
    model = mopn.Model.from_result(problem, result)
    model.predict(X)
    mopn.explain.shap_values(model, X[:20], X[:5])
    assert not calls
    mopn.keep_freed_memory()
    assert len(calls) == 2

"""The depth of fits, and the functions that they pass."""

import re
import sys

import numpy as np

import mopn
from benchmarks.frames import FOLDERS, main, walked


def frames_of_mopn():
    """The files of the frames on the stack, from the outermost one on."""
    frame = sys._getframe()
    files = []
    while frame is not None:
        files.insert(0, frame.f_code.co_filename)
        frame = frame.f_back
    return [name for name in files if name.startswith(FOLDERS)]


def test_a_walk_has_the_frames_that_a_callback_sees():
    X = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1], strength=0.1)
    seen = []

    def callback(intermediate_result):
        seen.append(frames_of_mopn())

    walk = walked(lambda: mopn.minimize(problem, tol=1e-2, callback=callback))
    assert not walk.stack
    assert len(walk.deepest) >= max(map(len, seen)) > 3
    assert {name for names in seen for name in names} <= {code.co_filename for code in walk.functions}
    assert set(walk.deepest) <= walk.functions


def test_the_program_counts_default_fits(capsys):
    assert main(["--rows", "60", "--stack"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^(\w+)\(\)\.fit: \d+ frames, \d+ functions$", out, re.MULTILINE) == [
        "MultiOutputPNClassifier",
        "TableClassifier",
    ]
    assert re.search(r"\n  \w+\.py:\d+ ", out)

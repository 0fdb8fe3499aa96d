"""How deep default fits are, and how many functions of mopn and its solvers they pass.

Counted are the frames on the stack at once, and the different functions, in the thread of the call, in a second fit:
the first one compiles and imports. Comprehensions are left out, as newer versions of Python have no frames for them.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import mopn
from mopn.estimators import MultiOutputPNClassifier, TableClassifier

FOLDERS = tuple(str(Path(package.__file__).parent) + os.sep for package in (mopn, mopn.solvers))
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>"}


class Walk:
    """A profiler that keeps the deepest stack, and all functions, of mopn."""

    def __init__(self) -> None:
        self.stack: list[CodeType] = []
        self.deepest: list[CodeType] = []
        self.functions: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Follow a call, or the return from one; generators are entered and left at each of their values."""
        code = frame.f_code
        if not code.co_filename.startswith(FOLDERS) or code.co_name in COMPREHENSIONS:
            return
        if event == "call":
            self.stack.append(code)
            self.functions.add(code)
            if len(self.stack) > len(self.deepest):
                self.deepest = self.stack.copy()
        elif event == "return":
            self.stack.pop()


def walked(call: Callable[[], Any]) -> Walk:
    """Return the walk of the second of two calls."""
    call()
    walk = Walk()
    sys.setprofile(walk)
    try:
        call()
    finally:
        sys.setprofile(None)
    return walk


def fits(n: int) -> dict[str, Callable[[], Any]]:
    """Return default fits of three classes, of numbers and of a table with categories."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, 8))
    y = np.digitize(X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(n), [-0.1, 0.1])
    table = {f"number {c}": X[:, c] for c in range(4)}
    table |= {f"category {c}": rng.choice(["a", "b", "c"], n) for c in range(2)}
    return {
        "MultiOutputPNClassifier": lambda: MultiOutputPNClassifier().fit(X, y),
        "TableClassifier": lambda: TableClassifier().fit(table, y),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the numbers of each fit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=300, help="number of rows (default 300)")
    parser.add_argument("--stack", action="store_true", help="print the deepest stack of each fit, too")
    arguments = parser.parse_args(argv)
    for name, fit in fits(arguments.rows).items():
        walk = walked(fit)
        print(f"{name}().fit: {len(walk.deepest)} frames, {len(walk.functions)} functions")
        if arguments.stack:
            for code in walk.deepest:
                print(f"  {Path(code.co_filename).name}:{code.co_firstlineno} {code.co_qualname}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Headers on microcontrollers: a network in integers and in floats against forests, perceptrons and boosting.

* ``sets``: accuracy on a quarter of the rows, bytes of flash and of stack, and cycles of a row, the mean of some rows,
  on a Cortex-M0, a Cortex-M4F and an ATmega1284P. The network is the README's on digits, with its split, and by
  default on the others; its integers are simulated, and the classes in the emulators have to be theirs. ``may`` counts
  the test rows whose class integers may change by the proven bound, ``do`` those whose class they change. A dash is
  what does not fit into 4 MB, or the 128 kB and the 16 kB of memory of the ATmega.
* ``changes``: on 24 sets, the test rows whose class may change, and does, in integers; networks are the default's.
* ``costs``: flash, stack and cycles that headers of random networks announce, next to measured ones.

It needs arm-none-eabi-gcc, avr-gcc, qemu-system-arm and simavr; for the peers emlearn, m2cgen and lightgbm, and
without them it measures the network alone. One thread::

    OMP_NUM_THREADS=1 python -m benchmarks.devices --data FOLDER
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.collection import COLLECTION, hold_out, load_raw
from benchmarks.common.study import make_parser, run
from benchmarks.devices.boards import BOARDS, Program, missing_tools
from benchmarks.devices.peers import PACKAGES, peers
from mopn import Model
from mopn.estimators import MultiOutputPNClassifier
from mopn.export import to_c
from mopn.export.quantization import quantize

_SETS = ("digits", "satimage", "segment", "vowel")
_PARTS = ("sets", "changes", "costs")
# Rows that are predicted in the emulators.
_ROWS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("devices", __doc__, sets=_SETS)
    parser.add_argument("--parts", nargs="+", default=list(_PARTS), choices=_PARTS)
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> int:
    """Print the tables."""
    if missing_tools():
        print(f"not installed: {', '.join(missing_tools())}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        if "sets" in args.parts:
            boards = [f"{board.name}: flash, stack, cycles" for board in BOARDS.values()]
            _print_line("", ["accuracy", "may", "do", *boards])
            for name in args.sets:
                _set(name, args.data, Path(folder))
        if "changes" in args.parts:
            _changes(args.data)
        if "costs" in args.parts:
            _costs(Path(folder))
    return 0


def _print_line(label: str, cells: Sequence[str]) -> None:
    widths = [9, 5, 4, 33, 33, 33][: len(cells)]
    print(f"{label:<58}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)), flush=True)


# -- sets --------------------------------------------------------------------------------------------------------------


def _set(name: str, data: str, folder: Path) -> None:
    X, y, _ = load_raw(name, data)
    X, X_test, y, y_test = split = hold_out(np.asarray(X, float), y, 0, stratify=name != "digits")
    estimator = MultiOutputPNClassifier(norm="l1", tol=1e-3) if name == "digits" else MultiOutputPNClassifier()
    estimator.set_params(random_state=0).fit(X, y)
    rows, model = X_test[:_ROWS], estimator.model_
    label = f"{name}: mopn, {len(model.basis)} units"
    for dtype in ("int8", "int16"):
        integers = to_c(model, folder / "model.h", arithmetic="integer", dtype=dtype, X=X)
        given, found = integers.c_inputs(rows), integers.agree(X_test)
        program = _network(f"{label}, integers of {dtype}", given, folder)
        accuracy = float(np.mean(integers.predict(X_test) == y_test))
        _measured(program, folder, accuracy, [str(found.may_change), str(found.changed)], integers.predict(rows))
    accuracy = estimator.score(X_test, y_test)
    to_c(model, folder / "model.h")
    program = _network(f"{label}, floats", rows.astype(np.float32), folder)
    _measured(program, folder, accuracy, ["", ""], model.predict(rows))
    if any(find_spec(package) is None for package in PACKAGES):
        print(f"{name}: no peers, as {', '.join(PACKAGES)} are not all installed")
        return
    for program, found in peers(split, accuracy, rows, folder):
        _measured(program, folder, found, ["", ""])


def _network(label: str, rows: np.ndarray, folder: Path) -> Program:
    return Program(label, '#include "model.h"', "model_predict(x)", rows, (str(folder),))


def _measured(
    program: Program, folder: Path, accuracy: float, changes: list[str], expected: np.ndarray | None = None
) -> None:
    """Print the line of a program."""
    cells, flash = [], 0
    for board in BOARDS.values():
        # A program that takes far more than a board has on another one is not even compiled.
        measured = board.measure(program, folder) if flash < 2 * board.flash else None
        flash = flash if measured is None else measured.flash
        if measured is not None and expected is not None and measured.classes != expected.tolist():
            raise RuntimeError(f"{board.name} predicts {measured.classes}, and not {expected.tolist()}")
        cells.append("-" if measured is None else f"{measured.flash:,} {measured.stack:>7,} {measured.cycles:>11,}")
    _print_line(program.label, [f"{accuracy:.4f}", *changes, *cells])


# -- changes -----------------------------------------------------------------------------------------------------------


def _changes(data: str) -> None:
    print(
        f"\n{'classes in integers':<20}{'rows':>8}"
        + "".join(f"{cell:>10}" for cell in 2 * ("may", "do"))
        + "  int8, int16"
    )
    total = np.zeros(5, int)
    for name in COLLECTION:
        X, y, _ = load_raw(name, data)
        X, X_test, y, _ = hold_out(np.asarray(X, float), y, 0)
        model = MultiOutputPNClassifier(random_state=0).fit(X, y).model_
        found = [quantize(model, X, dtype).agree(X_test) for dtype in ("int8", "int16")]
        counts = np.array([len(X_test), *(count for one in found for count in (one.may_change, one.changed))])
        total += counts
        print(f"{name:<20}{counts[0]:>8,}" + "".join(f"{count:>10,}" for count in counts[1:]), flush=True)
    print(f"{'all':<20}{total[0]:>8,}" + "".join(f"{count / total[0]:>10.2%}" for count in total[1:]))


# -- costs -------------------------------------------------------------------------------------------------------------


def _costs(folder: Path) -> None:
    print("\nannounced and measured, of random networks: flash of constants and code, stack, cycles")
    for d, k, m in ((8, 5, 3), (30, 10, 3), (30, 25, 6), (60, 20, 10)):
        for kernel, largest in (("homogeneous", 17), ("homogeneous", 1000), ("anova", 1000)):
            rng = np.random.default_rng(0)
            X = rng.integers(1, largest, (50, d)).astype(float)
            weights = rng.standard_normal((k, m))
            model = Model(rng.standard_normal((k, d)) / largest, weights, kernel=kernel, classes=np.arange(m))
            integers: Any = to_c(model, folder / "model.h", arithmetic="integer", X=X)
            given = integers.c_inputs(X[:2])
            program = _network(f"{d} features up to {largest - 1}, {k} units, {m} outputs, {kernel}", given, folder)
            announced = _announced((folder / "model.h").read_text())
            cells = []
            for board, flash, cycles in zip(BOARDS.values(), *announced[1:], strict=True):
                measured = board.measure(program, folder)
                assert measured is not None
                pairs = ((flash, measured.flash), (announced[0], measured.stack), (cycles, measured.cycles))
                cells.append("  ".join(f"{said:,} {found:,}" for said, found in pairs))
            print(f"{program.label:<52}" + "".join(f"{cell:>38}" for cell in cells), flush=True)


def _announced(text: str) -> tuple[int, list[int], list[int]]:
    """Return the stack, and flash and cycles for each board, of the comment of a header."""
    words = (
        " ".join(text[: text.index("*/")].split()).replace(",", "").replace("Cortex-M0", "").replace("Cortex-M4", "")
    )
    constants, arm, avr, stack, *cycles = re.findall(r"\d+(?:\.\d+)?", words[words.index("Flash") :])[:7]
    code = [round(1000 * float(size)) for size in (arm, arm, avr)]
    return int(stack), [int(constants) + size for size in code], [int(count) for count in cycles]


if __name__ == "__main__":
    sys.exit(main())

"""Cycles against counts by hand, and networks in emulators, where these are, against Python."""

import numpy as np
import pytest

from benchmarks.devices.__main__ import _announced
from benchmarks.devices.boards import BOARDS, Program, missing_tools
from benchmarks.devices.cycles import cycles_of, instructions
from mopn import Model
from mopn.export import to_c

# A loop of a Cortex-M0 as objdump prints it: push, then two rounds of load, multiply, compare and branch, then pop.
LISTING = """
00000100 <loop>:
     100:\tb570      \tpush\t{r4, r5, r6, lr}
     102:\t5cc4      \tldrb\tr4, [r0, r3]
     104:\t4354      \tmuls\tr4, r2
     106:\t2b02      \tcmp\tr3, #2
     108:\td1fb      \tbne.n\t102 <loop+0x2>
     10a:\tf000 f801 \tbl\t110 <other>
     10e:\tbd70      \tpop\t{r4, r5, r6, pc}
     110:\t4770      \tbx\tlr
"""
EXECUTED = [0x100, 0x102, 0x104, 0x106, 0x108, 0x102, 0x104, 0x106, 0x108, 0x10A, 0x110, 0x10E, 0x200]


def test_cycles_of_a_cortex_m0():
    """Stores and loads take 2, lists of n registers n + 1, taken branches 3, a call 4, a return by pop 3 more."""
    code = instructions(LISTING)
    assert code[0x10A] == (4, "bl", "110 <other>")
    push, rounds, call, pop = 5, (2 + 1 + 1 + 3) + (2 + 1 + 1 + 1), 4 + 3, 8
    assert cycles_of(EXECUTED, code, m4=False) == push + rounds + call + pop


@pytest.mark.skipif(bool(missing_tools()), reason=f"not installed: {', '.join(missing_tools())}")
@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_emulators_predict_what_python_does_at_the_cost_that_the_header_says(board, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(1, 17, (50, 20)).astype(float)
    model = Model(rng.standard_normal((8, 20)), rng.standard_normal((8, 4)), classes=np.arange(4))
    integers = to_c(model, tmp_path / "model.h", arithmetic="integer", X=X)
    rows = integers.c_inputs(X[:3])
    program = Program("", '#include "model.h"', "model_predict(x)", rows, (str(tmp_path),))
    measured = board.measure(program, tmp_path)
    stack, flash, cycles = _announced((tmp_path / "model.h").read_text())
    number = list(BOARDS.values()).index(board)
    assert measured.classes == integers.predict(X[:3]).tolist()
    assert measured.cycles == pytest.approx(cycles[number], rel=0.2)
    assert measured.flash == pytest.approx(flash[number], abs=500)
    assert measured.stack == pytest.approx(stack, abs=30)

"""The study of the constants: the constants that it changes exist, and are put back."""

import importlib

from benchmarks.ablation.constants import CONSTANTS, changed, found
from benchmarks.ablation.fits import COLUMNS, KEY, Fit, make_row
from benchmarks.ablation.report import table


def test_a_constant_changes_for_a_block_alone():
    for constant in (*CONSTANTS, *found()):
        for kind in constant.variants:
            module = importlib.import_module(constant.module)
            before, expected = getattr(module, constant.name), constant.value(kind)
            with changed(constant, kind):
                assert getattr(module, constant.name) == expected != before
            assert getattr(module, constant.name) == before


def test_rows_and_their_table():
    key = CONSTANTS[-1].key
    rows = [
        make_row(Fit(*variant, "digits", "l1/l2", "two classes", ""))
        for variant in (("none", "as it is"), (key, "off"))
    ]
    assert all(set(row) == set(COLUMNS) >= set(KEY) for row in rows)
    assert rows[0]["accuracy"] > 0.8
    rows[1] |= {"seconds": 2.0 * rows[0]["seconds"] + 0.1, "rounds": rows[0]["rounds"] + 1}
    lines = table([{name: str(value) for name, value in row.items()} for row in rows]).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith(f"| `{key}` | off | 1 of 1 |")

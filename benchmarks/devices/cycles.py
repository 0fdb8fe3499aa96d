"""Cycles of the instructions that an emulator has executed, by the manuals of the processors.

Cortex-M0: ARMv6-M without wait states and with the fast multiplier, where the table of the technical reference manual
(r0p0, table 3-1) is exact. Cortex-M4: its manual's table (r0p1, section 3.3), where a taken branch takes one to three
cycles for the pipeline; two are counted, and no two loads overlap, so that it is an estimate from above.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

_LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{4} ?){1,2})\s*\t(\S+)(?:\t(.*))?$")
_BRANCHES = re.compile(r"b(x|l|lx)?(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|hs|lo|al)?(\.[nw])?|cbn?z")
_PIPELINE = 2
# The Cortex-M4; a division takes 2 to 12.
_SLOW = {"vdiv": 14, "vsqrt": 14, "sdiv": 12, "udiv": 12, "vmla": 3, "vmls": 3, "vfma": 3, "vfms": 3, "vnmul": 1}


def instructions(listing: str) -> dict[int, tuple[int, str, str]]:
    """Return size, mnemonic and operands of the instructions by their address, from what ``objdump -d`` prints."""
    found = {}
    for line in listing.splitlines():
        match = _LINE.match(line)
        if match:
            address, code, mnemonic, operands = match.groups()
            found[int(address, 16)] = (2 * len(code.split()), mnemonic, operands or "")
    return found


def cycles_of(addresses: Iterable[int], code: dict[int, tuple[int, str, str]], *, m4: bool) -> int:
    """Return the cycles of instructions executed one after the other."""
    addresses = list(addresses)
    steps = Counter(pairwise(addresses))
    return sum(
        count * _cycles(*code[here][1:], taken=there != here + code[here][0], m4=m4)
        for (here, there), count in steps.items()
    )


def _cycles(mnemonic: str, operands: str, *, taken: bool, m4: bool) -> int:
    name = mnemonic.split(".")[0]
    branch = 1 + _PIPELINE if m4 else 3
    if name in ("push", "pop", "vpush", "vpop", "ldmia", "stmia", "ldmdb", "stmdb", "vldmia", "vstmia", "ldm", "stm"):
        cycles = 1 + _registers(operands)
        return cycles + (_PIPELINE if m4 else 3) if "pc" in operands else cycles
    if name.startswith(("ldr", "str", "vldr", "vstr")):
        cycles = 3 if name.startswith(("ldrd", "strd")) else 2
        return cycles + _PIPELINE if operands.startswith("pc") else cycles
    if _BRANCHES.fullmatch(mnemonic):
        if not taken:
            return 1
        return branch + 1 if name == "bl" and not m4 else branch
    if taken and ("pc" in operands.split(",")[0] or name in ("tbb", "tbh")):
        return branch + (name in ("tbb", "tbh"))
    if m4:
        return next((cycles for slow, cycles in _SLOW.items() if name.startswith(slow)), 1)
    return 4 if name in ("mrs", "msr", "dmb", "dsb", "isb") else 1


def _registers(operands: str) -> int:
    """Return the number of registers in a list such as ``{r4, r5, s16-s19, lr}``."""
    inside = operands[operands.index("{") + 1 : operands.index("}")]
    count = 0
    for part in inside.split(","):
        ends = [int(number) for number in re.findall(r"[rsd](\d+)", part)]
        count += ends[1] - ends[0] + 1 if len(ends) == 2 else 1
    return count

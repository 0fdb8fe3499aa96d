"""The tables of a campaign."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.fuzz.outcomes import KINDS, Record

_SLOWEST = 10


def report(records: Sequence[Record], seed: int) -> str:
    """Return the counts by category and by interface, and the first call of every distinct fault, in Markdown."""
    seconds = sum(record.seconds for record in records)
    slowest = sorted(records, key=lambda record: -record.seconds)[:_SLOWEST]
    parts = [
        f"{len(records)} calls of seed {seed}, {seconds:.0f} s in calls.",
        _counts(records, "category"),
        _counts(records, "interface"),
        "\n".join(_faults(records, seed)),
        "Slowest: " + "; ".join(f"{record.number} ({record.seconds:.1f} s, {record.category})" for record in slowest),
    ]
    return "\n\n".join(parts)


def _counts(records: Sequence[Record], by: str) -> str:
    counts = Counter((getattr(record, by), record.kind) for record in records)
    names = sorted({name for name, _ in counts})
    rows = [[by, "calls", *KINDS], ["---"] * (2 + len(KINDS))]
    for name in names:
        row = [counts[name, kind] for kind in KINDS]
        rows.append([name, str(sum(row)), *(str(count or "") for count in row)])
    every = Counter(record.kind for record in records)
    rows.append(["**all**", str(len(records)), *(str(every[kind] or "") for kind in KINDS)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _faults(records: Iterable[Record], seed: int) -> list[str]:
    """Return a list of the faults: those of the same kind and the same place are one."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in sorted(records):
        if record.kind not in ("clear", "ok"):
            groups.setdefault((record.kind, _place(record)), []).append(record)
    lines = []
    for (kind, _), found in sorted(groups.items(), key=lambda group: (KINDS.index(group[0][0]), -len(group[1]))):
        first = found[0]
        again = f"`python -m tests.fuzz --seed {seed} --case {first.number}`"
        lines.append(f"* **{kind}**, {len(found)}: {first.interface}, {first.change}: `{first.detail}`; {again}")
    return lines


def _place(record: Record) -> str:
    """Return the place of a fault: the last line of mopn's in the traceback, or the relation that does not hold."""
    line = record.detail.rsplit("[", 1)[-1]
    return f"{record.category}, {record.interface}" if record.kind in ("crash", "hang") or "checks.py" in line else line

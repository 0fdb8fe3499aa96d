"""The tables of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.fuzz.outcomes import KINDS
from tests.fuzz.workers import Record

__all__ = ["report"]


def report(records: Sequence[Record], seed: int) -> str:
    """Return the counts by category and by interface, and the first call of every distinct fault, in Markdown."""
    seconds = sum(record.seconds for record in records if record.seconds == record.seconds)
    parts = [
        f"{len(records)} calls of seed {seed}, {seconds:.0f} s in calls.",
        _counts(records, "category"),
        _counts(records, "interface"),
        "\n".join(_faults(records, seed)),
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
    """Return a list of the faults: those with the same kind and last line of the traceback are one."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in sorted(records):
        if record.kind not in ("clear", "ok"):
            place = record.detail.rsplit("[", 1)[-1] if "[" in record.detail else record.detail
            groups.setdefault((record.kind, place), []).append(record)
    lines = []
    for (kind, _), found in sorted(groups.items(), key=lambda item: (KINDS.index(item[0][0]), -len(item[1]))):
        first = found[0]
        again = f"`python -m tests.fuzz --seed {seed} --case {first.number}`"
        lines.append(f"* **{kind}**, {len(found)}: {first.interface}, {first.change}: `{first.detail}`; {again}")
    return lines

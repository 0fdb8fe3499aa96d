"""The table of the study."""

import math
from collections.abc import Iterable, Mapping

from benchmarks.ablation.constants import CONSTANTS, found

Row = Mapping[str, str]
# Gaps below this count as this much: a proof to it is a proof.
_PROVEN = 1e-6
# Fits whose row is the same to these digits are not counted as changed; gaps of models depend on the clock.
_SAME, _SAME_GAP = 1e-9, 0.1


def table(rows: Iterable[Row]) -> str:
    """Return the table, a line a variant: over the fits that it changes, which are counted."""
    rows = list(rows)
    as_they_are = {_fit(row): row for row in rows if row["constant"] == "none"}
    lines = [
        "| constant | variant | fits changed | time | slowest | rounds | gap | objective | accuracy, points |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for constant in (*CONSTANTS, *found()):
        for variant in constant.variants:
            pairs = [
                (row, as_they_are[_fit(row)])
                for row in rows
                if (row["constant"], row["variant"]) == (constant.key, variant) and _fit(row) in as_they_are
            ]
            if pairs:
                lines.append(f"| `{constant.key}` | {variant} | {_summary(pairs)} |")
    return "\n".join(lines)


def _fit(row: Row) -> tuple[str, ...]:
    return row["set"], row["norm"], row["goal"]


def _summary(pairs: list[tuple[Row, Row]]) -> str:
    moved = [(new, old) for new, old in pairs if _differs(new, old)]
    if not moved:
        return f"0 of {len(pairs)} | | | | | |"
    times = _ratios(moved, "seconds", 1e-2)
    points = [100.0 * (float(new["accuracy"]) - float(old["accuracy"])) for new, old in moved]
    return (
        f"{len(moved)} of {len(pairs)} | {_mean(times):.2f} | {max(times):.1f} | "
        f"{_mean(_ratios(moved, 'rounds', 1.0)):.2f} | {_mean(_ratios(moved, 'gap', _PROVEN)):.2f} | "
        f"{_mean(_ratios(moved, 'fun', 0.0)):.4f} | {sum(points) / len(points):+.2f}"
    )


def _differs(new: Row, old: Row) -> bool:
    """Whether the fit went another way, or proved something else."""
    tolerances = {"fun": _SAME, "gap": _SAME_GAP}
    same = all(math.isclose(float(new[name]), float(old[name]), rel_tol=tol) for name, tol in tolerances.items())
    return not same or new["rounds"] != old["rounds"]


def _ratios(pairs: list[tuple[Row, Row]], name: str, least: float) -> list[float]:
    return [max(float(new[name]), least) / max(float(old[name]), least) for new, old in pairs]


def _mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))

"""Tables 2 and 4 of Blondel et al. (NIPS 2017): test accuracy in percent, and number of units or support vectors.

The paper states one figure a cell (one split); ours are means over several splits.
"""

from typing import NamedTuple

from benchmarks.common import NORMS

SETS = ("segment", "vowel", "satimage", "letter")
NONE = "-"


class Cell(NamedTuple):
    """A row of a table: a method and its options. ``"-"`` where a method has no such option."""

    method: str
    norm: str = NONE
    loss: str = NONE
    refit: str = NONE


class Figure(NamedTuple):
    """Accuracy in percent, and the number of units (None where the paper has none)."""

    accuracy: float
    units: int | None


def _row(text: str) -> dict[str, Figure]:
    """Read "96.71 (41)  87.83 (12) ..." in the order of ``SETS``."""
    figures = []
    for word in text.split():
        if word.startswith("("):
            figures[-1] = figures[-1]._replace(units=int(word.strip("()")))
        else:
            figures.append(Figure(float(word), None))
    return dict(zip(SETS, figures, strict=True))


def _greedy(norm: str, loss: str, refit: str) -> Cell:
    return Cell("conditional-gradient", norm, loss, refit)


def _random(norm: str) -> Cell:
    return Cell("projected-gradient", norm, "logistic", "full")


TABLE_2 = {
    _greedy("l1", "logistic", "full"): _row("96.71 (41) 87.83 (12) 89.80 (25) 92.29 (150)"),
    _greedy("l1/l2", "logistic", "full"): _row("96.71 (40) 89.57 (15) 89.08 (18) 91.81 (106)"),
    _greedy("l1/linf", "logistic", "full"): _row("96.71 (24) 86.96 (15) 88.99 (20) 92.35 (149)"),
    _greedy("l1", "logistic", "output"): _row("97.05 (20) 80.00 (21) 89.71 (40) 91.01 (139)"),
    _greedy("l1/l2", "logistic", "output"): _row("96.36 (21) 85.22 (15) 89.71 (50) 92.24 (150)"),
    _greedy("l1/linf", "logistic", "output"): _row("96.19 (16) 86.96 (41) 89.35 (41) 91.68 (128)"),
    _random("l1"): _row("96.88 (50) 79.13 (50) 89.53 (50) 88.45 (150)"),
    _random("l1/l2"): _row("96.88 (50) 80.00 (48) 89.80 (50) 88.45 (150)"),
    _random("l1/linf"): _row("96.71 (50) 83.48 (50) 89.08 (50) 88.45 (150)"),
    _random("squared-l2"): _row("96.88 (50) 81.74 (50) 89.98 (50) 88.45 (150)"),
    Cell("linear"): _row("92.55 60.00 83.03 71.17"),
    Cell("svm"): _row("96.71 (238) 85.22 (189) 89.53 (688) 93.73 (3208)"),
    Cell("one-vs-rest", "l1", "binary-logistic", "output"): _row("94.63 73.91 89.44 75.36"),
}

_SQUARED_HINGE = {
    _greedy("l1", "squared-hinge", "full"): _row("96.01 (21) 87.83 (8) 89.98 (22) 92.03 (130)"),
    _greedy("l1/l2", "squared-hinge", "full"): _row("96.01 (15) 86.96 (8) 90.25 (12) 91.57 (94)"),
    _greedy("l1/linf", "squared-hinge", "full"): _row("95.84 (16) 85.22 (18) 89.80 (29) 92.27 (149)"),
    _greedy("l1", "squared-hinge", "output"): _row("95.67 (21) 79.13 (25) 88.99 (21) 91.25 (149)"),
    _greedy("l1/l2", "squared-hinge", "output"): _row("95.67 (25) 85.22 (19) 89.98 (50) 92.03 (149)"),
    _greedy("l1/linf", "squared-hinge", "output"): _row("97.05 (28) 86.09 (33) 88.90 (24) 91.20 (119)"),
}

# The logistic rows of Table 4 are also in Table 2.
_BOTH_LOSSES = _SQUARED_HINGE | {cell: row for cell, row in TABLE_2.items() if cell.method == "conditional-gradient"}
TABLE_4 = {
    cell: _BOTH_LOSSES[cell]
    for refit in ("full", "output")
    for norm in NORMS
    for cell in (_greedy(norm, "squared-hinge", refit), _greedy(norm, "logistic", refit))
}

"""The columns of a table at a glance: what they hold, how much is missing, and what looks suspicious."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from mopn.solvers.tools.display import printable

_HEADER = "column", "type", "missing", "values", "features", "look at"
# Characters of an entry but the last, and columns, that are shown.
_WIDTH, _LINES = 60, 100


class Report(NamedTuple):
    """A line of texts for every column, and what they are of."""

    caption: str
    lines: tuple[tuple[str, ...], ...]

    def _shown(self) -> tuple[str, list[tuple[str, ...]]]:
        """Return the caption, and the lines with their long entries cut."""
        more = f", the first {_LINES} of them below" * (len(self.lines) > _LINES)
        short = [[c if len(c) <= _WIDTH else f"{c[:_WIDTH]}..." for c in line[:-1]] for line in self.lines[:_LINES]]
        both = zip(short, self.lines, strict=False)
        return self.caption + more, [tuple(map(printable, (*cells, line[-1]))) for cells, line in both]

    def __str__(self) -> str:
        caption, lines = self._shown()
        widths = [max(map(len, column)) for column in zip(_HEADER, *lines, strict=True)]
        rows = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in (_HEADER, *lines))
        return "\n".join([caption, *rows])

    def _repr_html_(self) -> str:
        caption, lines = self._shown()
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in line) for line in lines]
        header = "".join(f"<th>{name}</th>" for name in _HEADER)
        return f"<table><caption>{caption}</caption><tr>{header}</tr><tr>{'</tr><tr>'.join(rows)}</tr></table>"

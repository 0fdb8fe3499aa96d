"""The columns of a table at a glance: contents, missing values, and suspicious entries."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from mopn.solvers.tools.display import printable

_HEADER = "column", "type", "missing", "values", "features", "look at"
# Characters that are shown of every entry but the last.
_MAX_CHARACTERS = 60
# Columns that are shown.
_MAX_LINES = 100


class Report(NamedTuple):
    """One row of strings per column, with a caption."""

    caption: str
    lines: tuple[tuple[str, ...], ...]
    header: tuple[str, ...] = _HEADER

    def _shown(self) -> tuple[str, list[tuple[str, ...]]]:
        """Return the caption, and the lines with their long entries cut."""
        caption = self.caption
        if len(self.lines) > _MAX_LINES:
            caption += f", the first {_MAX_LINES} of them below"
        lines = []
        for *cells, note in self.lines[:_MAX_LINES]:
            lines.append(tuple(map(printable, (*map(_shortened, cells), note))))
        return caption, lines

    def __str__(self) -> str:
        caption, lines = self._shown()
        widths = [max(map(len, column)) for column in zip(self.header, *lines, strict=True)]
        rows = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in (self.header, *lines))
        return "\n".join([caption, *rows])

    def _repr_html_(self) -> str:
        caption, lines = self._shown()
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in line) for line in lines]
        header = "".join(f"<th>{name}</th>" for name in self.header)
        body = "</tr><tr>".join([header, *rows])
        return f"<table><caption>{caption}</caption><tr>{body}</tr></table>"


def _shortened(cell: str) -> str:
    return cell if len(cell) <= _MAX_CHARACTERS else f"{cell[:_MAX_CHARACTERS]}..."

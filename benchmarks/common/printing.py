"""A table that is printed a row at a time, as long runs bring them."""

import re
from collections.abc import Iterable


class Table:
    """Headings, printed at once, and the formats of the cells below them: ``Table("set:9s, gap:8.1e, time:7.2f s")``.

    After a blank stands a unit. Texts are on the left of their column, numbers on the right; None is a dash.
    """

    def __init__(self, columns: str) -> None:
        headings, forms = zip(*(column.split(":") for column in columns.split(", ")), strict=True)
        self._forms = [form.partition(" ")[::2] for form in forms]
        least = [int(re.match(r"\d*", form)[0] or 0) + len(form.partition(" ")[2]) + (" " in form) for form in forms]  # type: ignore[index]
        self._widths = [max(width, len(heading)) for width, heading in zip(least, headings, strict=True)]
        self._print(headings)

    def row(self, *values: object) -> None:
        """Print a row."""
        cells = zip(values, self._forms, strict=True)
        self._print("-" if value is None else f"{value:{form}} {unit}".rstrip() for value, (form, unit) in cells)

    def _print(self, cells: Iterable[str]) -> None:
        columns = zip(cells, self._forms, self._widths, strict=True)
        line = (cell.ljust(width) if form.endswith("s") else cell.rjust(width) for cell, (form, _), width in columns)
        print("  ".join(line).rstrip(), flush=True)

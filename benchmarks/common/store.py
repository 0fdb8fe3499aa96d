"""A CSV file that a long run appends to and that a restart continues."""

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

_Item = TypeVar("_Item")


class StoreError(ValueError):
    """The file is not one that this program can continue."""


class Store:
    """Rows of a CSV file, written one at a time; some columns are the key by which a restart skips finished rows.

    A row counts once its line is complete, so a run may be killed at any time.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str], key: Sequence[str]) -> None:
        self.path, self.columns, self.key = Path(path), list(columns), list(key)
        self._ready = False
        self._check_header()

    def rows(self) -> list[dict[str, str]]:
        """Return the complete rows, all values as text."""
        lines = self._complete_text()
        return [row for row in csv.DictReader(StringIO(lines)) if None not in row.values()]

    def keys(self) -> set[tuple[str, ...]]:
        """Return the keys of the complete rows."""
        return {self.key_of(row) for row in self.rows()}

    def missing(self, wanted: Iterable[_Item], row: Callable[[_Item], Mapping[str, Any]]) -> list[_Item]:
        """Return what of the wanted is not there yet; ``row`` gives the key's columns of each."""
        done = self.keys()
        return [item for item in wanted if self.key_of(row(item)) not in done]

    def key_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the key of a row as the file would hold it."""
        return tuple(str(row[name]) for name in self.key)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row and flush it."""
        if not self._ready:
            self._prepare()
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, self.columns, lineterminator="\n").writerow(row)

    def _prepare(self) -> None:
        """Cut off a killed run's incomplete last line, whose fit is done again, and start an empty file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        complete = self._complete_text().encode()
        with open(self.path, "ab") as file:
            file.truncate(len(complete))
            if not complete:
                file.write((",".join(self.columns) + "\n").encode())
        self._ready = True

    def _complete_text(self) -> str:
        """Return the file up to the last end of line."""
        if not self.path.exists():
            return ""
        data = self.path.read_bytes()
        return data[: data.rfind(b"\n") + 1].decode()

    def _check_header(self) -> None:
        text = self._complete_text()
        if text and next(csv.reader(StringIO(text))) != self.columns:
            raise StoreError(
                f"{str(self.path)!r} has other columns than this program writes; name another folder or move the file"
            )

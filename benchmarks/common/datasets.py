"""The multi-class data sets of Blondel et al. (NIPS 2017, appendix E), their splits and their scaling.

The project contains no data. ``load`` reads the raw files from a folder that the user names, one subfolder a set; all
are public at the UCI Machine Learning Repository.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

__all__ = ["DATA_SETS", "DataSet", "MissingDataError", "Split", "check_data", "load", "require_files", "scale", "split"]

_LETTER_ROWS = 15_000


class MissingDataError(FileNotFoundError):
    """A data file that is not there; the message says how to get it."""


def _segment(path: Path) -> tuple[np.ndarray, np.ndarray]:
    table = np.loadtxt(path)
    return table[:, :-1], table[:, -1]


def _vowel(path: Path) -> tuple[np.ndarray, np.ndarray]:
    # Columns: 0 train or test, 1 speaker, 2 sex, 3..12 features, 13 class. LIBSVM's training part is column 0 == 0.
    table = np.loadtxt(path, delimiter=",")
    table = table[table[:, 0] == 0]
    return table[:, 3:13], table[:, 13]


def _letter(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with open(path, encoding="latin-1") as file:
        rows = [line.strip().split(",") for line in file if line.strip() and line[0] not in "@%"]
    table = np.array(rows[:_LETTER_ROWS])
    return table[:, :-1].astype(float), table[:, -1]


@dataclass(frozen=True)
class DataSet:
    """Where a set comes from and how its file is read.

    Attributes
    ----------
    file : str
        Path in the data folder.
    source : str
        How a user gets the file.
    read : callable
        From the path to features (n, d) and labels (n,).
    """

    file: str
    source: str
    read: Callable[[Path], tuple[np.ndarray, np.ndarray]]


_UCI = "UCI Machine Learning Repository (https://archive.ics.uci.edu)"
DATA_SETS = {
    "segment": DataSet(
        "segment/segment.dat",
        f"{_UCI}, 'Statlog (Image Segmentation)': segment.dat, 2310 lines of 19 features and the class 1..7",
        _segment,
    ),
    "vowel": DataSet(
        "vowel/vowel-context.data",
        f"{_UCI}, 'Connectionist Bench (Vowel Recognition - Deterding Data)': vowel-context.data, comma-separated, 990 "
        "lines: train (0) or test (1), speaker, sex, ten features, the class 0..10",
        _vowel,
    ),
    "satimage": DataSet(
        "satimage/sat.trn",
        f"{_UCI}, 'Statlog (Landsat Satellite)': sat.trn, 4435 lines of 36 features and the class",
        _segment,
    ),
    "letter": DataSet(
        "letter/letter.arff",
        "OpenML (https://www.openml.org), 'letter': letter.arff, the 20000 rows of UCI's 'Letter Recognition' in the "
        "Statlog order, class last",
        _letter,
    ),
}


def require_files(folder: str | os.PathLike[str], files: Mapping[str, str], what: str) -> None:
    """Raise ``MissingDataError`` unless the folder holds all files: from their paths in it to how a user gets them."""
    absent = [f"  {path}: {source}" for path, source in files.items() if not (Path(folder) / path).is_file()]
    if absent:
        raise MissingDataError(
            f"the data folder {os.fspath(folder)!r} lacks files; name a folder with --data that holds them, or leave "
            f"{what} out with --sets:\n" + "\n".join(absent)
        )


def check_data(folder: str | os.PathLike[str], names: list[str]) -> None:
    """Raise ``MissingDataError`` unless the files of all these sets are there."""
    if not os.path.isdir(folder):
        raise MissingDataError(
            f"there is no data folder {os.fspath(folder)!r}; name one with --data. It should hold:\n"
            + "\n".join(_wanted(name) for name in names)
        )
    absent = [name for name in names if not (Path(folder) / DATA_SETS[name].file).is_file()]
    if absent:
        raise MissingDataError(
            f"the data folder {os.fspath(folder)!r} lacks files; put them there, or leave the sets out with --sets:\n"
            + "\n".join(_wanted(name) for name in absent)
        )


def _wanted(name: str) -> str:
    return f"  {DATA_SETS[name].file}: {DATA_SETS[name].source}"


@lru_cache(maxsize=4)
def load(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a set.

    Parameters
    ----------
    name : {"segment", "vowel", "satimage", "letter"}
    folder : str
        The data folder.

    Returns
    -------
    X : ndarray of shape (n, d)
        Unscaled features.
    y : ndarray of shape (n,)
        Classes 0..m-1.

    Raises
    ------
    MissingDataError
        If the file is not there.
    """
    check_data(folder, [name])
    X, labels = DATA_SETS[name].read(Path(folder) / DATA_SETS[name].file)
    return X, np.unique(labels, return_inverse=True)[1]


@dataclass(frozen=True)
class Split:
    """A scaled split: features and classes of the training, validation and test parts."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def split(X: np.ndarray, y: np.ndarray, index: int) -> Split:
    """Return the random split number ``index``: 50 % training, 25 % validation, 25 % test, scaled on the first.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    index : int
        Seed of the permutation.

    Returns
    -------
    Split
    """
    n = len(y)
    order = np.random.default_rng(index).permutation(n)
    train, validation, test = np.split(order, [n // 2, 3 * n // 4])
    X = scale(X, X[train])
    return Split(X[train], y[train], X[validation], y[validation], X[test], y[test])


def scale(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Map each feature linearly so that ``reference`` fills [-1, 1]; features constant there become 0."""
    low, high = reference.min(axis=0), reference.max(axis=0)
    varies = high > low
    return np.where(varies, 2.0 * (X - low) / np.where(varies, high - low, 1.0) - 1.0, 0.0)

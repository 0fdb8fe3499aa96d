"""The multi-class data sets of Blondel et al. (NIPS 2017, appendix E), their splits and their scaling.

All are public at the UCI Machine Learning Repository.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.common.sources import Source, arff_rows, read

_LETTER_ROWS = 15_000
Data = tuple[np.ndarray, np.ndarray]


def _table(path: Path) -> Data:
    table = np.loadtxt(path)
    return table[:, :-1], table[:, -1]


def _segment(folder: Path) -> Data:
    return _table(folder / "segment.dat")


def _satimage(folder: Path) -> Data:
    return _table(folder / "sat.trn")


def _vowel(folder: Path) -> Data:
    # Columns: 0 train or test, 1 speaker, 2 sex, 3..12 features, 13 class. LIBSVM's training part is column 0 == 0.
    table = np.loadtxt(folder / "vowel-context.data", delimiter=",")
    table = table[table[:, 0] == 0]
    return table[:, 3:13], table[:, 13]


def _letter(folder: Path) -> Data:
    table = np.array(arff_rows(folder / "letter.arff")[:_LETTER_ROWS])
    return table[:, :-1].astype(float), table[:, -1]


_UCI = "UCI Machine Learning Repository (https://archive.ics.uci.edu)"
# From the least to the largest fits.
DATA_SETS = {
    "vowel": Source(
        "vowel",
        {
            "vowel-context.data": f"{_UCI}, 'Connectionist Bench (Vowel Recognition - Deterding Data)': "
            "vowel-context.data, comma-separated, 990 lines: train (0) or test (1), speaker, sex, ten features, the "
            "class 0..10"
        },
        _vowel,
    ),
    "segment": Source(
        "segment",
        {
            "segment.dat": f"{_UCI}, 'Statlog (Image Segmentation)': segment.dat, 2310 lines of 19 features and the "
            "class 1..7"
        },
        _segment,
    ),
    "satimage": Source(
        "satimage",
        {"sat.trn": f"{_UCI}, 'Statlog (Landsat Satellite)': sat.trn, 4435 lines of 36 features and the class"},
        _satimage,
    ),
    "letter": Source(
        "letter",
        {
            "letter.arff": "OpenML (https://www.openml.org), 'letter': letter.arff, the 20000 rows of UCI's 'Letter "
            "Recognition' in the Statlog order, class last"
        },
        _letter,
    ),
}


@lru_cache(maxsize=4)
def load(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a set."""
    X, labels = read(DATA_SETS, name, folder)
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
    """Return the random split number ``index``: 50 % training, 25 % validation, 25 % test, scaled on the first."""
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

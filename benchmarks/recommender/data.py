"""The ratings of the recommender study: readers, random splits and one-hot rows.

Sets as in appendix E of Blondel et al., Polynomial Networks and Factorization Machines (ICML 2016), and of Multi-output
Polynomial Networks and Factorization Machines (NIPS 2017).
"""

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.common.sources import Source, read


@dataclass(frozen=True)
class Ratings:
    """Who (n,) gave what (n,), both numbered from 0 without gaps, how much (n,): ratings or counts."""

    users: np.ndarray
    items: np.ndarray
    y: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of users and of items."""
        return int(self.users.max()) + 1, int(self.items.max()) + 1

    def rows(self) -> sparse.csr_array:
        """Return the rows, each with a one for its user and a one for its item."""
        n, (n_users, n_items) = len(self.y), self.shape
        columns = np.column_stack([self.users, n_users + self.items]).ravel()
        return sparse.csr_array((np.ones(2 * n), columns, np.arange(0, 2 * n + 1, 2)), shape=(n, n_users + n_items))


# -- readers -----------------------------------------------------------------------------------------------------------


def _ratings(table: np.ndarray) -> Ratings:
    """Return the rows of a table (n, 3), with users and items numbered from 0."""
    users, items = (np.unique(column, return_inverse=True)[1] for column in table[:, :2].T)
    return Ratings(users, items, table[:, 2].astype(float))


def _movielens_100k(folder: Path) -> Ratings:
    """Read the rows of u1.base, and the rows of u1.test after them: together they are all ratings."""
    return _ratings(
        np.vstack(
            [np.loadtxt(folder / file, dtype=int, usecols=(0, 1, 2), ndmin=2) for file in ("u1.base", "u1.test")]
        ),
    )


def movielens_1m(folder: Path) -> np.ndarray:
    """Return users, films and ratings (n, 3) as they are in the file."""
    with gzip.open(folder / "ratings_notimestamp.dat.gz", "rt") as file:
        return np.array(file.read().replace("::", " ").split(), dtype=int).reshape(-1, 3)


def _artist_tags(folder: Path) -> Ratings:
    """Count the users that gave a tag to an artist."""
    return _counts(_assignments(folder)[:, [1, 2]])


def _user_artists(folder: Path) -> Ratings:
    """Count the tags that a user gave to an artist."""
    return _counts(_assignments(folder)[:, [0, 1]])


def _assignments(folder: Path) -> np.ndarray:
    """Return who gave to which artist which tag (n, 3), each once."""
    with gzip.open(folder / "user_taggedartists.dat.gz", "rt") as file:
        return np.unique(np.loadtxt(file, dtype=int, skiprows=1, usecols=(0, 1, 2)), axis=0)


def _counts(pairs: np.ndarray) -> Ratings:
    pairs, counts = np.unique(pairs, axis=0, return_counts=True)
    return _ratings(np.column_stack([pairs, counts]))


_GROUPLENS = "https://grouplens.org/datasets"
_LASTFM = {
    "user_taggedartists.dat.gz": f"user_taggedartists.dat of hetrec2011-lastfm-2k ({_GROUPLENS}/hetrec-2011/), "
    "compressed by gzip"
}
_U1 = {file: f"MovieLens 100K ({_GROUPLENS}/movielens/100k/): {file}" for file in ("u1.base", "u1.test")}
_ONE_MILLION = {
    "ratings_notimestamp.dat.gz": f"ratings.dat of MovieLens 1M ({_GROUPLENS}/movielens/1m/), without the last "
    "column: 'user::movie::rating' a line, compressed by gzip"
}
SETS = {
    "ml-100k": Source("ml-100k", _U1, _movielens_100k),
    "lastfm": Source("lastfm-2k", _LASTFM, _artist_tags),
    "lastfm-users": Source("lastfm-2k", _LASTFM, _user_artists),
    "ml-1m": Source("ml-1m", _ONE_MILLION, lambda folder: _ratings(movielens_1m(folder))),
}


def load(name: str, folder: str | os.PathLike[str]) -> Ratings:
    """Read a set; raise ``MissingDataError`` if a file is not there."""
    return read(SETS, name, folder)


# -- splits ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """Places of the rows to fit, to choose the strength by, and to test on."""

    fit: np.ndarray
    held: np.ndarray
    test: np.ndarray

    @property
    def train(self) -> np.ndarray:
        """All rows that are not for the test."""
        return np.concatenate([self.fit, self.held])


def random_parts(n: int, index: int, shares: tuple[float, float], rows: int | None = None) -> Parts:
    """Return the random split number ``index``."""
    places = np.random.default_rng(index).permutation(n)[:rows]
    ends = np.cumsum([int(share * len(places)) for share in shares])
    return Parts(*np.split(places, ends))

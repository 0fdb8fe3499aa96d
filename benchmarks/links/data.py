"""The graphs of the link prediction study: features of the nodes, links, and splits of the pairs of nodes.

Graphs as in appendix A of Blondel et al., Higher-Order Factorization Machines (NIPS 2016), with two stand-ins: other
gene-disease links, and drug-target links for the metabolic network.
"""

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.common.sources import Source, fields, read

# First years of the age groups, as in the MovieLens 1M data: with them users have the paper's 49 features.
_AGES = (0, 18, 25, 35, 45, 50, 56)
# Groups of release years, equally long: with the 19 genres films have the paper's 29 features.
_YEAR_GROUPS = 10
_TOP_RATING = 5


@dataclass(frozen=True)
class Graph:
    """Two sets of nodes with features (n_A, d_A) and (n_B, d_B), and the links (n_links, 2) between them.

    If the nodes are the same, B is A itself, and i < j: a pair counts once, and no node is paired with itself.
    """

    A: sparse.csr_array
    B: sparse.csr_array
    links: np.ndarray

    @property
    def symmetric(self) -> bool:
        """Whether the nodes of A and B are the same."""
        return self.A is self.B

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of nodes."""
        return self.A.shape[0], self.B.shape[0]

    def mask(self, pairs: np.ndarray) -> np.ndarray:
        """Return a table (n_A, n_B) that is True at these pairs."""
        table = np.zeros(self.shape, dtype=bool)
        table[pairs[:, 0], pairs[:, 1]] = True
        return table

    def rows(self, pairs: np.ndarray) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Return the features of both ends of pairs."""
        return self.A[pairs[:, 0]], self.B[pairs[:, 1]]


# -- readers -----------------------------------------------------------------------------------------------------------


def _nips(folder: Path) -> Graph:
    """Read authors, with the words of all their papers added up; co-authors are linked."""
    authors = [[int(word) for word in line.split()] for line in (folder / "nips.authors").read_text().splitlines()]
    wrote = _table(authors, [1.0] * len(authors))
    with gzip.open(folder / "nips.corpus.gz", "rt") as file:
        papers = [[entry.split(":") for entry in line.split()[1:]] for line in file if line.strip()]
    counts = [[float(count) for _, count in paper] for paper in papers]
    words = _table([[int(word) for word, _ in paper] for paper in papers], counts)
    A = sparse.csr_array(wrote.T @ words)
    together = sparse.coo_array(sparse.triu(wrote.T @ wrote, 1))
    return Graph(A, A, np.column_stack(together.coords))


def _table(columns: list[list[int]], values: list) -> sparse.csr_array:
    """Return a matrix from the columns of each row's entries and their values, lists or one number a row."""
    row = np.repeat(np.arange(len(columns)), [len(places) for places in columns])
    entries = [np.broadcast_to(value, len(places)) for places, value in zip(columns, values, strict=True)]
    column = np.concatenate([np.array(places, dtype=int) for places in columns])
    return sparse.csr_array((np.concatenate(entries), (row, column)))


def _movielens(folder: Path) -> Graph:
    """Read users and films; a rating of 5 is a link."""
    users = fields(folder / "u.user")
    films = fields(folder / "u.item")
    ages = np.searchsorted(_AGES, [int(user[1]) for user in users], side="right")
    columns = [ages, *([user[place] for user in users] for place in (2, 3)), [user[4][0] for user in users]]
    genres = np.array([[float(flag) for flag in film[5:]] for film in films])
    B = np.hstack([_years([film[2][-4:] for film in films]), genres])
    ratings = np.loadtxt(folder / "u.data", dtype=int)
    links = ratings[ratings[:, 2] == _TOP_RATING, :2] - 1
    return Graph(sparse.csr_array(np.hstack([_one_hot(c) for c in columns])), sparse.csr_array(B), links)


def _one_hot(values: object) -> np.ndarray:
    names, place = np.unique(values, return_inverse=True)
    return np.eye(len(names))[place]


def _years(texts: list[str]) -> np.ndarray:
    """Return the group of each year as a row of zeros and a one; of zeros where there is no year."""
    years = np.array([float(text or "nan") for text in texts])
    edges = np.linspace(np.nanmin(years), np.nanmax(years), _YEAR_GROUPS + 1)[1:-1]
    groups = np.eye(_YEAR_GROUPS)[np.searchsorted(edges, years, side="right") % _YEAR_GROUPS]
    return np.where(np.isnan(years)[:, None], 0.0, groups)


def _gene_disease(folder: Path) -> Graph:
    """Read diseases and genes, each with the 0/1 similarities to all of its kind; a node resembles itself."""
    of_diseases, of_genes, links = (sparse.load_npz(folder / f"{name}.npz") for name in ("dd", "gg", "gd"))
    A, B = (sparse.csr_array(table).maximum(sparse.eye_array(table.shape[0])) for table in (of_diseases, of_genes))
    return Graph(A.tocsr(), B.tocsr(), np.column_stack(sparse.coo_array(links.T).coords))


def _ion_channels(folder: Path) -> Graph:
    """Read proteins and drugs, each with the similarities to all of its kind."""
    links, of_targets, of_drugs = (
        np.loadtxt(folder / f"ic_{name}.txt", delimiter="\t", dtype=str)[1:, 1:].astype(float)
        for name in ("admat_dgc", "simmat_dg", "simmat_dc")
    )
    A, B = sparse.csr_array(of_targets), sparse.csr_array(of_drugs)
    return Graph(A, B, np.argwhere(links == 1.0))


_NIPS = "the 'NIPS0-12 test collection' (github.com/gregoryyy/knowceans, nips-corpus-20111211.zip)"
_GROUPLENS = "MovieLens 100K (https://grouplens.org/datasets/movielens/100k/)"
_MGREL = "github.com/ziyang-w/MGREL, folder data"
_YAMANISHI = (
    "the gold standard of Yamanishi et al. 2008, ion channels (http://web.kuicr.kyoto-u.ac.jp/supp/yoshi/drugtarget/)"
)
GRAPHS = {
    "nips": Source(
        "nips12",
        {
            "nips.authors": f"{_NIPS}: the authors of each of the 1740 papers",
            "nips.corpus.gz": f"{_NIPS}: nips.corpus, a paper a line, 'n word:count ...', compressed by gzip",
        },
        _nips,
    ),
    "movielens": Source(
        "ml-100k",
        {name: f"{_GROUPLENS}: {what}" for name, what in
         {"u.user": "943 users", "u.item": "1682 films", "u.data": "100000 ratings"}.items()},
        _movielens,
    ),
    "gene-disease": Source(
        "gene-disease",
        {"gd.npz": f"{_MGREL}: links of 12331 genes and 3215 diseases",
         "gg.npz": f"{_MGREL}: similar genes", "dd.npz": f"{_MGREL}: similar diseases"},
        _gene_disease,
    ),
    "ion-channels": Source(
        "dti-yamanishi2008",
        {"ic_admat_dgc.txt": f"{_YAMANISHI}: links of 204 targets and 210 drugs",
         "ic_simmat_dg.txt": f"{_YAMANISHI}: similarities of targets",
         "ic_simmat_dc.txt": f"{_YAMANISHI}: similarities of drugs"},
        _ion_channels,
    ),
}  # fmt: skip


def load(name: str, folder: str | os.PathLike[str]) -> Graph:
    """Read a graph, with unscaled features; raise ``MissingDataError`` if a file is not there."""
    return read(GRAPHS, name, folder)


# -- scales ------------------------------------------------------------------------------------------------------------


def _unit(X: sparse.csr_array) -> sparse.csr_array:
    """Divide each row by its length."""
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1.0 / np.where(lengths > 0.0, lengths, 1.0)) @ X)


SCALES: dict[str, Callable[[sparse.csr_array], sparse.csr_array]] = {
    "raw": lambda X: X,
    "unit": _unit,
    "log-unit": lambda X: _unit(X.log1p()),
}


def scaled(graph: Graph, scale: str) -> Graph:
    """Return a graph with scaled features; no scale looks at links."""
    A = SCALES[scale](graph.A)
    return Graph(A, A if graph.symmetric else SCALES[scale](graph.B), graph.links)


# -- splits ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinkSplit:
    """Pairs to learn from, with targets 1 and 0, and the links to find among all other pairs."""

    pairs: np.ndarray
    y: np.ndarray
    test_links: np.ndarray


def split(graph: Graph, index: int, share: float = 0.5) -> LinkSplit:
    """Return the random split number ``index``: a share of the links and as many pairs that are none to learn from."""
    rng = np.random.default_rng(index)
    links = graph.links[rng.permutation(len(graph.links))]
    count = int(share * len(links))
    pairs = np.concatenate([links[:count], _absent(graph, count, rng)])
    return LinkSplit(pairs, np.repeat([1.0, 0.0], count), links[count:])


def _absent(graph: Graph, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw pairs that are no links, without repetition."""
    n_B = graph.shape[1]
    taken = set((graph.links @ [n_B, 1]).tolist())
    found: list[int] = []
    while len(found) < count:
        i, j = rng.integers(graph.shape)
        code = int(i * n_B + j)
        if (i < j or not graph.symmetric) and code not in taken:
            taken.add(code)
            found.append(code)
    return np.column_stack(np.divmod(found, n_B))


def hold_out(y: np.ndarray, index: int, share: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of a split's pairs to fit and to validate on, links and others in the same proportion."""
    rng = np.random.default_rng([index, 1])
    kept, held = [], []
    for target in (1.0, 0.0):
        places = rng.permutation(np.flatnonzero(y == target))
        count = int(share * len(places))
        held.append(places[:count])
        kept.append(places[count:])
    return np.concatenate(kept), np.concatenate(held)

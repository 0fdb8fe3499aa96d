"""Observed pairs of users and items with confidences, stored by users and by items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mopn.solvers.tools.blas_threads import in_threads, n_workers
from mopn.solvers.tools.decorators import cached_property

# Pairs, at least, in a block of lines: with fewer, threads cost more than they save.
_LEAST_PAIRS_IN_BLOCK = 20_000
# Blocks of lines for each thread, so that all end at about the same time.
_BLOCKS_PER_THREAD = 4


@dataclass(frozen=True)
class Lines:
    """Pairs by users, or by items: line i has the entries ``starts[i]`` to ``starts[i + 1]``."""

    starts: np.ndarray
    partners: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def line_of_entry(self) -> np.ndarray:
        """The line (n,) of each pair."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def blocks(self) -> list[tuple[int, int]]:
        """Return ranges of lines with about as many pairs each, for threads."""
        pairs = int(self.starts[-1])
        number = n_workers() * _BLOCKS_PER_THREAD if n_workers() > 1 else 1
        number = max(1, min(number, pairs // _LEAST_PAIRS_IN_BLOCK))
        cuts = np.searchsorted(self.starts, np.linspace(0, pairs, number + 1)[1:-1])
        ends = [0, *cuts.tolist(), len(self)]
        return list(pairwise(ends))

    def in_blocks(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a compiled function for each block of lines, the range last."""
        for _ in in_threads(lambda block: function(*arguments, block[0], block[1]), self.blocks()):
            pass


class Pairs:
    """Observed pairs (n_users, n_items) with confidences above 0, in the order of users and in that of items."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.shape = matrix.shape
        self.confidences = matrix.data
        self.users = Lines(matrix.indptr, matrix.indices)
        # The places of the pairs in the order of items; matrices forget explicit zeros.
        places = sparse.csr_array((np.arange(1, matrix.nnz + 1), matrix.indices, matrix.indptr), shape=matrix.shape)
        by_items = sparse.csc_array(places)
        self.items = Lines(by_items.indptr, by_items.indices)
        self.order = by_items.data - 1

    @property
    def number(self) -> int:
        """The number of pairs."""
        return len(self.confidences)

    def matrix(self, values: np.ndarray) -> sparse.csr_array:
        """Return the sparse matrix (n_users, n_items) with a value for each pair."""
        return sparse.csr_array((values, self.users.partners, self.users.starts), shape=self.shape)

    def products(self, P: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """Return <p_u, q_i> of all pairs."""
        from mopn.compiled.alternating import pair_products

        found = np.zeros(self.number)
        self.users.in_blocks(pair_products, P, Q, self.users.starts, self.users.partners, found)
        return found

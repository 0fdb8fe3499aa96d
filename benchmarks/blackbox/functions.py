"""Three functions of x in {0, 1}^d whose minima are known: by their design, by dynamic programming, by enumeration."""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np


class BlackBox(ABC):
    """A function to be minimised; the instance is drawn with a seed.

    Attributes
    ----------
    d : int
        Number of features.
    minimum : float
    one_hot : list of tuples of int
        Groups of features with exactly one 1.
    """

    d: int
    minimum: float
    one_hot: list[tuple[int, ...]]

    @abstractmethod
    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the values (n,) of rows (n, d)."""

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random row (d,) that satisfies the constraints."""
        return rng.integers(0, 2, self.d).astype(float)


class FrustratedLoops(BlackBox):
    """Spins on a torus, with couplings from random loops around a planted state that all of them prefer.

    Of each loop one coupling is against the state and all others for it, so the state is a minimum of every loop, and
    the minimum of their sum is known (Hen et al., Physical Review A, 2015). Loops here are random cells.
    """

    def __init__(self, side: int, loops: int, seed: int) -> None:
        rng, self.d, self.one_hot = np.random.default_rng(seed), side * side, []
        self.J, planted = np.zeros((self.d, self.d)), rng.choice([-1.0, 1.0], self.d)
        self.minimum = 0.0
        for _ in range(loops):
            row, column = rng.integers(0, side, 2)
            corners = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
            cell = [(i % side) * side + j % side for i, j in corners]
            signs = np.ones(4)
            signs[rng.integers(4)] = -1.0
            for sign, i, j in zip(signs, cell, np.roll(cell, -1), strict=True):
                self.J[i, j] -= sign * planted[i] * planted[j]
            self.minimum -= signs.sum()

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the energies."""
        S = 2.0 * X - 1.0
        return np.einsum("ni,ij,nj->n", S, self.J, S)


class Landscape(BlackBox):
    """An NK landscape on a ring: sum_i t_i(x_i, ..., x_{i+K}) with uniform tables t_i, so of degree K + 1.

    Its minimum is found by dynamic programming over the windows, for each state of the first K features (Kauffman and
    Weinberger, Journal of Theoretical Biology, 1989, have the model).
    """

    def __init__(self, d: int, K: int, seed: int) -> None:
        self.d, self.K, self.one_hot = d, K, []
        self.tables = np.random.default_rng(seed).random((d, 2 ** (K + 1)))
        self.minimum = min(self._closed(first) for first in range(2**K))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the sums of the tables' entries."""
        bits = X.astype(int)
        codes = sum(np.roll(bits, -shift, axis=1) << (self.K - shift) for shift in range(self.K + 1))
        return self.tables[np.arange(self.d), codes].sum(axis=1)

    def _closed(self, first: int) -> float:
        """Return the least sum with given features 0, ..., K - 1: by states of K features, from left to right."""
        least = np.full(2**self.K, np.inf)
        least[first] = 0.0
        for table in self.tables:
            # Window w = (x_i, ..., x_{i+K}) leads from the state w >> 1 to the state w without its first bit.
            sums = least[np.arange(2 ** (self.K + 1)) >> 1] + table
            least = np.minimum(*sums.reshape(2, -1))
        return float(least[first])


class Assignment(BlackBox):
    """Facilities to places, at the cost of flows times distances (Koopmans and Beckmann, 1957): one-hot both ways.

    Feature (f, p) is 1 if facility f is at place p.
    """

    def __init__(self, size: int, seed: int) -> None:
        rng, self.size, self.d = np.random.default_rng(seed), size, size * size
        points = rng.random((size, 2))
        self.distances = np.linalg.norm(points[:, None] - points, axis=2)
        flows = np.triu(rng.exponential(size=(size, size)), 1)
        self.flows = flows + flows.T
        cells = np.arange(self.d).reshape(size, size)
        self.one_hot = [tuple(group) for group in (*cells.tolist(), *cells.T.tolist())]
        places = np.array(list(itertools.permutations(range(size))))
        self.minimum = min(float(self._costs(part).min()) for part in np.array_split(places, 6))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the costs of rows that satisfy the constraints."""
        return self._costs(X.reshape(-1, self.size, self.size).argmax(axis=2))

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random assignment."""
        return np.eye(self.size)[rng.permutation(self.size)].ravel()

    def _costs(self, places: np.ndarray) -> np.ndarray:
        apart = self.distances[places[:, :, None], places[:, None, :]]
        return 0.5 * np.einsum("fg,nfg->n", self.flows, apart)


# Drawn with a seed that no search has: else a search could start at the planted state.
_SEED = 1_000_003
FUNCTIONS: dict[str, Callable[[int], BlackBox]] = {
    "loops": lambda d: FrustratedLoops(side=math.isqrt(d), loops=d, seed=_SEED),
    "landscape": lambda d: Landscape(d=d, K=2, seed=_SEED),
    "assignment": lambda d: Assignment(size=math.isqrt(d), seed=_SEED),
}
# The number of features unless another one is asked for.
SIZES = {"loops": 36, "landscape": 32, "assignment": 36}

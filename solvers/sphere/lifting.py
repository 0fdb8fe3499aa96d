"""The space Sym^k(R^d), on which a form of degree 2k on R^d is a quadratic form."""

import math
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from mopn.solvers.tools.decorators import cached_property


class Lifting:
    """Coordinates of Sym^k(R^d) in which h x ... x h has the length ``||h||^k``: all monomials of degree k, scaled.

    ``monomials`` (D, k) has ascending indices of variables, ``scale`` (D,) square roots of multinomial coefficients.
    """

    def __init__(self, d: int, degree: int) -> None:
        self.d = d
        self.degree = degree
        monomials = list(combinations_with_replacement(range(d), degree))
        self.monomials = np.array(monomials, dtype=np.intp).reshape(len(monomials), degree)
        self.scale = np.sqrt(math.factorial(degree) / _factorials(self.monomials))

    @property
    def dimension(self) -> int:
        """The number D of monomials."""
        return len(self.monomials)

    @cached_property
    def scales(self) -> np.ndarray:
        """The products of two scales, (D, D)."""
        return np.outer(self.scale, self.scale)

    def vectors(self, matrices: np.ndarray) -> np.ndarray:
        """Return symmetric matrices (q, d, d) as vectors (q, D) with <w_A, w_B> = <A, B>, for k = 2."""
        i, j = self.monomials.T
        return matrices[:, i, j] * self.scale

    def powers(self, H: np.ndarray) -> np.ndarray:
        """Return z = h x ... x h for the rows of H, (q, D)."""
        return self.scale * np.prod(H[:, self.monomials], axis=2)

    def unfolded(self, vectors: np.ndarray) -> np.ndarray:
        """Return symmetric tensors (q, D) as matrices from Sym^(k-1) to R^d, (q, d, D')."""
        place, scale = self._multiples
        return vectors[:, place] * scale

    def raised(self, form: np.ndarray) -> np.ndarray:
        """Return the form on Sym^k(R^d) with the values of one on Sym^(k-1)(R^d), times ``||h||^2``."""
        raised = np.zeros((self.dimension, self.dimension))
        for place, scale in zip(*self._multiples, strict=True):
            raised[np.ix_(place, place)] += form * np.outer(scale, scale)
        return raised

    def symmetrised(self, form: np.ndarray) -> np.ndarray:
        """Return the fully symmetric part of a form M (D, D), which determines z' M z for the z of any h."""
        groups, sizes = self._products
        sums = np.bincount(groups.ravel(), (self.scales * form).ravel())
        return (sums / sizes)[groups] * self.scales

    def project(self, form: np.ndarray) -> np.ndarray:
        """Return the nearest form that vanishes at the z of every h, symmetric to the last bit if M is."""
        return form - self.symmetrised(form)

    @cached_property
    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        """Index (D, D) of each entry's monomial of degree 2k, and the sum of squared scales for each monomial."""
        keys = self._key(_products_of_pairs(self.monomials, self.monomials))
        _, groups = np.unique(keys, return_inverse=True)
        groups = groups.reshape(self.dimension, self.dimension)
        return groups, np.bincount(groups.ravel(), self.scales.ravel() ** 2)

    @cached_property
    def _multiples(self) -> tuple[np.ndarray, np.ndarray]:
        """Places (d, D') of the products of variables with monomials of degree k - 1, and their relative scales."""
        rest = lifting(self.d, self.degree - 1)
        keys = self._key(_products_of_pairs(np.arange(self.d)[:, None], rest.monomials))
        place = np.searchsorted(self._key(self.monomials), keys)
        return place, rest.scale / self.scale[place]

    def _key(self, monomials: np.ndarray) -> np.ndarray:
        """Return the indices as digits of one number."""
        return monomials @ self.d ** np.arange(monomials.shape[-1])[::-1]


@lru_cache(maxsize=8)
def lifting(d: int, degree: int = 2) -> Lifting:
    """Return Sym^k(R^d), cached."""
    return Lifting(d, degree)


def _products_of_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the products of all pairs of monomials, (len(first), len(second), degree)."""
    left = np.repeat(first[:, None], len(second), axis=1)
    right = np.repeat(second[None], len(first), axis=0)
    return np.sort(np.concatenate([left, right], axis=-1), axis=-1)


def _factorials(monomials: np.ndarray) -> np.ndarray:
    """Return the products of the factorials of the exponents."""
    exponent = np.ones(len(monomials))
    product = np.ones(len(monomials))
    for before, after in zip(monomials.T, monomials.T[1:], strict=False):
        exponent = np.where(before == after, exponent + 1.0, 1.0)
        product *= exponent
    return product

"""The space Sym^2(R^d) of dimension D = d (d + 1) / 2, on which a quartic form on R^d is a quadratic form."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["Lifting", "lifting"]


class Lifting(NamedTuple):
    """Coordinates svec on Sym^2(R^d), with <svec(A), svec(B)> = <A, B>, and the symmetrisation of forms on it."""

    i: np.ndarray
    j: np.ndarray
    scale: np.ndarray
    scales: np.ndarray
    first: np.ndarray
    second: np.ndarray
    third: np.ndarray

    @property
    def dimension(self) -> int:
        """D."""
        return len(self.i)

    def vectors(self, matrices: np.ndarray) -> np.ndarray:
        """Return svec (k, D) of symmetric matrices (k, d, d)."""
        return matrices[:, self.i, self.j] * self.scale

    def matrices(self, vectors: np.ndarray) -> np.ndarray:
        """Return the symmetric matrices (k, d, d) of vectors (k, D)."""
        d = int(self.j[-1]) + 1
        entries = vectors / self.scale
        matrices = np.empty((len(vectors), d, d))
        matrices[:, self.i, self.j] = entries
        matrices[:, self.j, self.i] = entries
        return matrices

    def symmetrised(self, form: np.ndarray) -> np.ndarray:
        """Return sym4 of a form (D, D): the mean over the three pairings of the four indices.

        (hh')' M (hh') depends on sym4(M) alone.
        """
        entries = (form / self.scales).ravel()
        return (entries[self.first] + entries[self.second] + entries[self.third]) / 3.0 * self.scales

    def project(self, form: np.ndarray) -> np.ndarray:
        """Return the nearest form that vanishes on every hh': M - sym4(M)."""
        return form - self.symmetrised(form)


@lru_cache(maxsize=4)
def lifting(d: int) -> Lifting:
    """Index Sym^2(R^d): entry (ij, kl) of sym4 is the mean of those at (ij, kl), (ik, jl) and (il, jk)."""
    i, j = np.triu_indices(d)
    D = len(i)
    place = np.zeros((d, d), dtype=np.intp)
    place[i, j] = place[j, i] = np.arange(D)
    scale = np.where(i == j, 1.0, math.sqrt(2.0))
    a, b = np.arange(D)[:, None], np.arange(D)[None, :]
    i1, j1, k1, l1 = i[:, None], j[:, None], i[None, :], j[None, :]
    return Lifting(
        i,
        j,
        scale,
        np.outer(scale, scale),
        a * D + b,
        place[i1, k1] * D + place[j1, l1],
        place[i1, l1] * D + place[j1, k1],
    )

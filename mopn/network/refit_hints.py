"""Hints of a network problem for refits: numbers of units, and sizes of samples, that a refit can use."""

import math

import numpy as np

from mopn.core.magnitudes import Scales, fits_single
from mopn.core.norms import Norm
from mopn.data.rows import Rows, SumOfLosses
from mopn.network.point import Network

# The least number of units up to which a network is filled at once.
_MIN_FILLED_UNITS = 50
# The largest such number: more units cost time and memory, and few of them are needed.
_MAX_FILLED_UNITS = 200
# Fractions of the samples on which joint refits start, before they take all.
_SAMPLE_FRACTIONS = (1 / 16, 1 / 4)
# Rows for every parameter in a sample for the start of a refit, at least: with fewer it ends near a worse minimum.
_ROWS_PER_PARAMETER = 10
# Rows for every parameter in a sample for the units of a model.
_ROWS_PER_PARAMETER_OF_MODEL = 100
# Rows of such a sample, at least.
_LEAST_ROWS_OF_MODEL = 10_000
# The largest fraction of the rows that is a sample for a model, and the fraction on which other fits start.
_MAX_SAMPLE_FRACTION = 1 / 4
# Rows of the sample on which other fits start, at least. With fewer rows in all, rounds take little time.
_LEAST_ROWS_TO_START = 2000
# Entries of a sample of data in blocks, at most: 256 MiB.
_MOST_ENTRIES_OF_SAMPLE = 1 << 25
# Features up to which local minima of joint refits differ; beyond, they are within about a thousandth of each other.
_MAX_FEATURES_OF_FAR_MINIMA = 1000


class RefitHints:
    """The part of a network problem that tells corrective steps which refits pay."""

    rows: Rows
    losses: SumOfLosses
    norm: Norm
    _scales: Scales

    @property
    def can_rotate_units(self) -> bool:
        """Whether a joint refit can rotate a unit's weights: not under l1, and not with one or two outputs."""
        # With two classes the rows of a loss gradient are multiples of (1, -1), so only the signs can change.
        return self.norm.exponent != math.inf and self.losses.n_outputs > 2

    @property
    def joint_refits_get_stuck(self) -> bool:
        """Whether joint refits end at saddle points: under l1/linf, where one unit has to become two."""
        return self.norm.exponent == 1

    @property
    def minima_are_far_apart(self) -> bool:
        """Whether few units may end in a poor local minimum: not with many features, such as users and items."""
        return self.rows.shape[1] <= _MAX_FEATURES_OF_FAR_MINIMA

    @property
    def gains_by_single(self) -> bool:
        """Whether single precision holds the data and makes joint refits faster, by products of dense data."""
        return self.rows.entries is None and fits_single(self.rows.largest, self._scales)

    def limited(self, network: Network, most: int, *, jointly: bool) -> Network:
        """Return the network with the ``most`` largest units; ``jointly`` counts one for each output under l1."""
        by_output = jointly and self.norm.exponent == math.inf
        sizes = np.abs(network.weights) if by_output else np.linalg.norm(network.weights, axis=1)[:, None]
        if np.count_nonzero(sizes) <= most:
            return network
        kept = np.zeros(sizes.size, bool)
        kept[np.argsort(-sizes, axis=None, kind="stable")[:most]] = True
        return network.with_weights(np.where(kept.reshape(sizes.shape), network.weights, 0.0)).drop_zero_units()

    @property
    def _useful_units(self) -> int:
        """The number of units up to which a network is filled at once: one per eigenvector of the matrices Gamma_c."""
        rank = self.losses.n_outputs * min(self.rows.shape)
        return min(max(rank, _MIN_FILLED_UNITS), _MAX_FILLED_UNITS)

    def sample_fractions(self, network: Network) -> list[float]:
        """Return the fractions of the samples on which to refit both layers first, with enough rows for every unit.

        With few rows for every parameter, or most of the weight on few rows, a refit ends near a worse local minimum.
        """
        n, d = self.rows.shape
        least = _ROWS_PER_PARAMETER * network.n_units * (d + self.losses.n_outputs)
        size = self.rows.effective_size
        return [
            fraction for fraction in _SAMPLE_FRACTIONS if fraction * size >= least and self._fits_memory(fraction * n)
        ]

    def _fraction_for_model(self, n_units: int) -> float | None:
        """Return the fraction of the samples that suffices to choose the units of a model; None if it is large."""
        n, d = self.rows.shape
        wanted = max(_ROWS_PER_PARAMETER_OF_MODEL * n_units * (d + self.losses.n_outputs), _LEAST_ROWS_OF_MODEL)
        fraction = wanted / self.rows.effective_size
        return fraction if fraction <= _MAX_SAMPLE_FRACTION and self._fits_memory(fraction * n) else None

    @property
    def _fraction_to_start(self) -> float | None:
        """The fraction of the samples on which to start; None for few rows, or where a single refit is the fit."""
        enough = not self.can_rotate_units and _MAX_SAMPLE_FRACTION * self.rows.effective_size >= _LEAST_ROWS_TO_START
        return _MAX_SAMPLE_FRACTION if enough and self._fits_memory(_MAX_SAMPLE_FRACTION * self.rows.shape[0]) else None

    def _fits_memory(self, n: float) -> bool:
        """Whether a sample of n rows can be held; a sample of data in blocks takes memory of its own."""
        return self.rows.design is not None or n * self.rows.shape[1] <= _MOST_ENTRIES_OF_SAMPLE

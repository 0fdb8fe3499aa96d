"""Hints of a network problem for refits: how many units, and samples of how many rows, a refit can use."""

import math

import numpy as np

from mopn.core.magnitudes import Scales, fits_single
from mopn.core.norms import Norm
from mopn.data.rows import Rows, SumOfLosses
from mopn.network.point import Network
from mopn.solvers.tools.decorators import doors

# A network is filled at once up to a number of units between these: more cost time and memory, and few are needed.
_LEAST_FILL, _LARGEST_FILL = 50, 200
# Joint refits start on these fractions of the samples, each with as many rows for every parameter.
_SAMPLE_FRACTIONS = (1 / 16, 1 / 4)
_ROWS_PER_PARAMETER = 10
# A model is first fitted to a sample of so many rows for every parameter, and at least so many in all, where that is at
# most this fraction of the rows.
_ROWS_OF_MODEL = 100
_LEAST_ROWS = 10_000
_LARGEST_SAMPLE = 1 / 4
# Other fits start on this fraction where it has at least so many rows: on all of them rounds take longer.
_LEAST_FIRST = 2000
# The largest number of entries of a sample of data in blocks.
_SAMPLE_ENTRIES = 1 << 25
# With more features the local minima of joint refits are within about a thousandth of each other.
_FEW_FEATURES = 1000


@doors
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
        """Whether few units may end in a poor local minimum: not if features are many, such as users and items."""
        return self.rows.shape[1] <= _FEW_FEATURES

    @property
    def gains_by_single(self) -> bool:
        """Whether single precision holds the data and makes joint refits faster: those by products of dense data."""
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
        """How many units a network is filled up to at once: one for every eigenvector of the m matrices Gamma_c."""
        rank = self.losses.n_outputs * min(self.rows.shape)
        return min(max(rank, _LEAST_FILL), _LARGEST_FILL)

    def sample_fractions(self, network: Network) -> list[float]:
        """Return fractions of the samples, with rows for every unit, on which to refit both layers before all.

        With few rows for every parameter, or most of the weight on few, the refit ends near a worse local minimum.
        """
        (n, d), size = self.rows.shape, self.rows.effective_size
        least = _ROWS_PER_PARAMETER * network.n_units * (d + self.losses.n_outputs)
        fractions = [fraction for fraction in _SAMPLE_FRACTIONS if fraction * size >= least]
        return [fraction for fraction in fractions if self._fits_memory(fraction * n)]

    def _fraction_for_model(self, n_units: int) -> float | None:
        """Return the fraction of the samples that tells the units of a model; None where that is most rows."""
        (n, d), m = self.rows.shape, self.losses.n_outputs
        fraction = max(_ROWS_OF_MODEL * n_units * (d + m), _LEAST_ROWS) / self.rows.effective_size
        return fraction if fraction <= _LARGEST_SAMPLE and self._fits_memory(fraction * n) else None

    @property
    def _fraction_to_start(self) -> float | None:
        """The fraction of the samples that tells where to start; None for few rows, or where one refit is the fit."""
        enough = not self.can_rotate_units and _LARGEST_SAMPLE * self.rows.effective_size >= _LEAST_FIRST
        return _LARGEST_SAMPLE if enough and self._fits_memory(_LARGEST_SAMPLE * self.rows.shape[0]) else None

    def _fits_memory(self, n: float) -> bool:
        """Whether a sample of n rows can be held; one of data in blocks takes memory of its own."""
        return self.rows.design is not None or n * self.rows.shape[1] <= _SAMPLE_ENTRIES

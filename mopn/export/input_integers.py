"""Features as integers: whole numbers as they are, all others in steps of a power of 2 from a whole number of steps.

An input i of C stands for ``x = (i + zero) 2^-bits``. Small whole numbers beside large ones are shifted to the left,
``t = i 2^shift``, so that the parameters of both have digits in a common scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mopn.models.quadratic import Quadratic

# Bits of features: at most int16's without the sign; fewer than 5 lose too much.
_MOST_BITS = np.iinfo(np.int16).bits - 1
_FEWEST_BITS = 5
# Features are shifted if that gains so many steps of parameters.
_WORTH = 4.0
_TYPES = ("uint8", "int8", "int16")


@dataclass(frozen=True)
class InputIntegers:
    """The features as integers that C takes.

    An input is the nearest integer to ``x * 2 ** bits``, minus ``zero`` (d,), both 0 where X had whole numbers. It is
    shifted to the left by ``shifts`` (d,) and clamped to [``lowest``, ``highest``]. Squares of features are features,
    too, ``with_squares``, shifted to the right by ``square_shift``.
    """

    dtype: str
    bits: np.ndarray
    zero: np.ndarray
    shifts: np.ndarray
    lowest: int
    highest: int
    with_squares: bool
    square_shift: int

    def integers(self, X: np.ndarray) -> np.ndarray:
        """Return the inputs (n, d) of features (n, d) as int64; numbers beyond the type become its ends."""
        ends = np.iinfo(self.dtype)
        return np.clip(np.rint(np.ldexp(X, self.bits)) - self.zero, ends.min, ends.max).astype(np.int64)

    def features(self, integers: np.ndarray) -> np.ndarray:
        """Return y (n, D) of inputs: shifted and clamped, and their squares."""
        t = np.clip(integers << self.shifts, self.lowest, self.highest)
        return np.hstack([t, t * t >> self.square_shift]) if self.with_squares else t

    def exact_features(self, X: np.ndarray) -> np.ndarray:
        """Return the real numbers (n, D) that y stands for."""
        tau = np.ldexp(np.ldexp(X, self.bits) - self.zero, self.shifts)
        return np.hstack([tau, np.ldexp(tau * tau, -self.square_shift)]) if self.with_squares else tau

    @property
    def ends(self) -> np.ndarray:
        """The smallest and the largest y, (2, D)."""
        ends = np.repeat([[self.lowest], [self.highest]], len(self.bits), axis=1)
        squares = [[0], [max(self.highest, -self.lowest) ** 2 >> self.square_shift]]
        return np.hstack([ends, np.broadcast_to(squares, ends.shape)]) if self.with_squares else ends

    def rewritten(self, outputs: Quadratic) -> Quadratic:
        """Return the outputs as functions of the features t, where x = scale t + origin."""
        scale, origin = np.ldexp(1.0, -self.bits - self.shifts), np.ldexp(self.zero.astype(float), -self.bits)
        linear, squares = outputs.linear, outputs.squares
        return Quadratic(
            outputs.constant + linear @ origin + (squares * origin) @ origin,
            (linear + 2.0 * squares * origin) * scale,
            squares * scale * scale,
            outputs.factors * scale,
            outputs.biases + outputs.factors @ origin,
            outputs.weights,
        )


def choose_inputs(outputs: Quadratic, X: np.ndarray, room: int) -> InputIntegers:
    """Return the inputs for rows X (n, d); ``ValueError`` if a sum of features needs more than ``room`` bits."""
    d, with_squares = X.shape[1], bool(outputs.squares.any())
    most = min(_MOST_BITS, room - int(np.ceil(np.log2(d * (1 + with_squares)))))
    if most < _FEWEST_BITS:
        raise ValueError(
            f"32 bits cannot hold the sums of {d} features of {_FEWEST_BITS} bits; use arithmetic='float', or "
            "dtype='int8', or fewer features"
        )
    top = (1 << most) - 1
    lowest, highest = X.min(axis=0), X.max(axis=0)
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    whole = (np.rint(X) == X).all(axis=0) & (largest <= top)
    center = lowest + 0.5 * (highest - lowest)
    # A feature that hardly varies has steps that are no finer than 2^-15 of it, so that ``zero`` has 32 bits.
    half = np.where(whole, 1.0, np.maximum(0.5 * highest - 0.5 * lowest, np.abs(center) * 2.0**-_MOST_BITS))
    bits = np.where(whole, 0, np.floor(np.log2((top - 1) / half))).astype(int)
    zero = np.where(whole, 0.0, np.rint(np.ldexp(center, bits))).astype(np.int64)
    size = np.where(whole, largest, top)
    inputs = InputIntegers("int16", bits, zero, _shifts(outputs, bits, size), 0, 0, with_squares, 0)
    integers = inputs.integers(X)
    t = integers << inputs.shifts
    held = [np.iinfo(name).min <= integers.min() and integers.max() <= np.iinfo(name).max for name in _TYPES]
    square_bits = 2 * int(np.abs(t).max()).bit_length()
    return replace(
        inputs,
        dtype=_TYPES[held.index(True)],
        lowest=int(t.min()),
        highest=int(t.max()),
        square_shift=max(square_bits - most, 0) if with_squares else 0,
    )


def _shifts(outputs: Quadratic, bits: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return shifts (d,) to the left that make the parameters of features more alike, for inputs up to ``size``."""
    rows = np.vstack([outputs.linear, outputs.factors[0]]) * np.ldexp(1.0, -bits)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    columns = (np.abs(rows) / np.where(largest > 0.0, largest, 1.0)).mean(axis=0)
    free = np.floor(np.log2(size.max() / np.maximum(size, 1.0))) if size.max() >= 1.0 else np.zeros(len(size))
    best = (columns * 2.0**-free).max()
    if best <= 0.0 or best * _WORTH >= columns.max():
        return np.zeros(len(size), int)
    needed = np.ceil(np.log2(np.maximum(columns, best) / best))
    return np.minimum(needed, free).astype(int)

"""Checks that data, and the losses, slopes and weights that follow, are within the range of floating point."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mopn.core.regularizers import Regularizer
from mopn.data.rows import Block, Rows
from mopn.data.validation import LARGEST, check_input

# Largest modulus of data, outputs and slopes in single precision, which ends at 3e38: products of three are finite.
_LARGEST_SINGLE = 1e12


class Scales(NamedTuple):
    """A problem at weights of zero: its loss, its slopes sum_ir |G_ic| max_r |Phi_ir|, and its largest feature."""

    loss: float
    slope: float
    feature: float


def scales_at_zero(rows: Rows, name: str, features: Callable[[Block], np.ndarray]) -> Scales:
    """Return the scales of a problem; raise ``ValueError`` if floating point cannot hold them.

    ``features`` bounds the moduli (n,) of the features of the samples of a block; ``name`` is the argument that has X.
    """
    largest_moduli = rows.sum(_largest_moduli, combine=max)
    for argument, largest in zip(("y", "offset", "sample_weight"), largest_moduli, strict=True):
        check_input(largest, argument)
    loss, slope = rows.sum(_loss_and_slope_at_zero, features)
    feature = rows.sum(lambda block: float(features(block).max()), combine=max)
    scales = Scales(loss, slope, feature)
    if scales.slope > 0 and not all(map(_fits, (loss, scales.slope, loss / scales.slope))):
        raise ValueError(
            f"{name}, y and sample_weight are of sizes too different for floating point: at outputs of zero the losses "
            f"add up to {loss:.3g}, and their slopes to {scales.slope:.3g}; scale {name} and y, to 1 for example"
        )
    return scales


def _largest_moduli(block: Block) -> tuple[float, float, float]:
    """Return the largest moduli of numbers y, of the offset and of the weights; 0 for a missing one."""
    losses = block.losses
    numbers = None if losses.loss.targets == "labels" else losses.y
    return _largest_modulus(numbers), _largest_modulus(losses.offset), _largest_modulus(losses.weights)


def _largest_modulus(values: np.ndarray | None) -> float:
    return 0.0 if values is None else float(np.abs(values).max(initial=0.0))


def _loss_and_slope_at_zero(block: Block, features: Callable[[Block], np.ndarray]) -> tuple[float, float]:
    """Return the losses of outputs of zero, and a bound of the moduli of slopes times features."""
    zeros = np.zeros((block.design.shape[0], block.losses.n_outputs))
    loss, G = block.losses.value_gradient(zeros)
    return loss, float(features(block) @ np.abs(G).sum(axis=1))


def check_products(rows: Rows, factors: Sequence[float], **options: float) -> None:
    """Raise ``ValueError`` if floating point cannot hold options, losses, or products of an entry of each factor.

    ``factors`` are the largest entries of the data whose products are the features.
    """
    for name, option in options.items():
        check_input(option, name)
    features = 1.0
    for largest in factors:
        check_input(largest, "X", LARGEST ** (1.0 / len(factors)))
        features *= largest
    scales_at_zero(rows, "X", lambda block: np.full(block.design.shape[0], features))


def check_regularizer(regularizer: Regularizer, scales: Scales) -> None:
    """Raise ``ValueError`` if a regulariser allows weights, or outputs, that floating point cannot hold."""
    if not (regularizer.active and scales.slope > 0):
        return
    norm = regularizer.largest_norm(scales.loss)
    if not (norm <= LARGEST and norm * scales.feature <= LARGEST):
        raise ValueError(
            f"{regularizer.words} is too weak for floating point: it allows weights of norm {norm:.3g}, with outputs "
            f"up to {norm * scales.feature:.3g}; give a larger strength (0 for none) or a smaller radius"
        )


def check_single(largest: float, scales: Scales) -> None:
    """Raise ``ValueError`` if single precision cannot hold data of a largest modulus, their outputs or slopes."""
    if not fits_single(largest, scales):
        raise ValueError(
            f"X (up to {largest:.3g}) or the losses ({scales.loss:.3g} at outputs of zero) are too large or too small "
            "for precision='single'; scale X, y and sample_weight, to 1 for example, or use precision='double'"
        )


def fits_single(largest: float, scales: Scales) -> bool:
    """Return whether single precision holds data of a largest modulus, their outputs and slopes."""
    if not scales.slope > 0:
        return True
    slope = scales.slope / scales.feature
    output = scales.loss / slope
    return all([_fits(size, _LARGEST_SINGLE) for size in (largest, output, slope)])


def _fits(size: float, limit: float = LARGEST) -> bool:
    return 1.0 / limit <= size <= limit

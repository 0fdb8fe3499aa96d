"""The losses of :mod:`mopn.core.losses` for arrays of any namespace; those of the user's own are computed on the host.

The formulas are the same, without indices by rows, which not all namespaces have; and so are the errors of rounding, as
far as the namespace's exp and log err by a few units in the last place.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

from mopn.core.losses import BinaryLogistic, BinarySquaredHinge, Logistic, Loss, SmoothedHinge, Squared, SquaredHinge
from mopn.core.namespaces import namespace, to_device, to_host

__all__ = ["DeviceLoss", "device_loss"]


class DeviceLoss(ABC):
    """What a ``Loss`` offers on a device."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.targets, self.own_unit = loss.targets, loss.own_unit

    def value(self, y: Any, O: Any) -> Any:  # noqa: E741
        """Loss of every row, (n,)."""
        return self.value_gradient(y, O)[0]

    @abstractmethod
    def value_gradient(self, y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        """Loss of every row (n,) and its gradient (n, m)."""

    @abstractmethod
    def conjugate(self, y: Any, G: Any) -> Any:
        """Conjugate of every row (n,)."""

    @abstractmethod
    def max_scale(self, y: Any, G: Any) -> float:
        """Return the largest s that keeps the conjugate finite at s * G."""


class _Own(DeviceLoss):
    """Any loss, by its own functions of arrays of NumPy."""

    def value(self, y: Any, O: Any) -> Any:  # noqa: E741
        return to_device(self.loss.value(to_host(y), to_host(O)), O)

    def value_gradient(self, y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        values, G = self.loss.value_gradient(to_host(y), to_host(O))
        return to_device(values, O), to_device(G, O)

    def conjugate(self, y: Any, G: Any) -> Any:
        return to_device(self.loss.conjugate(to_host(y), to_host(G)), G)

    def max_scale(self, y: Any, G: Any) -> float:
        return self.loss.max_scale(to_host(y), to_host(G))


class _Logistic(DeviceLoss):
    """log(1 + sum_{c != y} exp(cost + o_c - o_y))."""

    def value_gradient(self, y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        xp, own = namespace(O), _own(y, O)
        margins = xp.where(own, 0.0, _differences(y, O) + self.loss.cost)  # type: ignore[attr-defined]
        largest = xp.max(margins, axis=1)
        E = xp.where(own, 0.0, xp.exp(margins - largest[:, None]))
        excess = xp.sum(E, axis=1) + xp.expm1(-largest)
        P = E / (1.0 + excess)[:, None]
        return largest + xp.log1p(excess), xp.where(own, -xp.sum(P, axis=1)[:, None], P)

    def conjugate(self, y: Any, G: Any) -> Any:
        xp = namespace(G)
        Q = xp.where(_own(y, G), 0.0, _positive(G))
        others = _at_most_one(xp.sum(Q, axis=1))
        return xp.sum(_entropies(Q), axis=1) + _rest(others) - self.loss.cost * others  # type: ignore[attr-defined]

    def max_scale(self, y: Any, G: Any) -> float:
        return _reciprocal(-_of_labels(y, G))


class _SquaredHinge(DeviceLoss):
    """sum_{c != y} max(1 + o_c - o_y, 0)^2."""

    def value_gradient(self, y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        xp, own = namespace(O), _own(y, O)
        Z = xp.where(own, 0.0, _positive(1.0 + _differences(y, O)))
        G = 2.0 * Z
        return xp.sum(Z * Z, axis=1), xp.where(own, -xp.sum(G, axis=1)[:, None], G)

    def conjugate(self, y: Any, G: Any) -> Any:
        xp = namespace(G)
        return xp.sum(xp.where(_own(y, G), 0.0, G * (0.25 * G - 1.0)), axis=1)

    def max_scale(self, y: Any, G: Any) -> float:
        return math.inf


class _Squared(DeviceLoss):
    """(o - y)^2 / 2, per output."""

    def value_gradient(self, y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        R = O - y
        return 0.5 * namespace(O).sum(R * R, axis=1), R

    def conjugate(self, y: Any, G: Any) -> Any:
        return namespace(G).sum(G * (0.5 * G + y), axis=1)

    def max_scale(self, y: Any, G: Any) -> float:
        return math.inf


class _BinaryLogistic(DeviceLoss):
    """log(1 + exp(-y o)), per output."""

    def value_gradient(self, y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        xp, margins = namespace(O), y * O
        e = xp.exp(-xp.abs(margins))
        values = xp.log1p(e) + _positive(-margins)
        return xp.sum(values, axis=1), -y * xp.where(margins > 0.0, e, 1.0) / (1.0 + e)

    def conjugate(self, y: Any, G: Any) -> Any:
        a = _at_most_one(_positive(-y * G))
        return namespace(G).sum(_entropies(a) + _rest(a), axis=1)

    def max_scale(self, y: Any, G: Any) -> float:
        return _reciprocal(abs(G))


class _BinarySquaredHinge(DeviceLoss):
    """max(1 - y o, 0)^2, per output."""

    def value_gradient(self, y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        Z = _positive(1.0 - y * O)
        return namespace(O).sum(Z * Z, axis=1), -2.0 * y * Z

    def conjugate(self, y: Any, G: Any) -> Any:
        a = -y * G
        return namespace(G).sum(a * (0.25 * a - 1.0), axis=1)

    def max_scale(self, y: Any, G: Any) -> float:
        return math.inf


_LOSSES: dict[type[Loss], type[DeviceLoss]] = {
    Logistic: _Logistic,
    SmoothedHinge: _Logistic,
    SquaredHinge: _SquaredHinge,
    Squared: _Squared,
    BinaryLogistic: _BinaryLogistic,
    BinarySquaredHinge: _BinarySquaredHinge,
}


def device_loss(loss: Loss) -> DeviceLoss:
    """Return a loss for arrays on a device. A class that inherits from a known one may have other formulas."""
    return _LOSSES.get(type(loss), _Own)(loss)


def _own(y: Any, O: Any) -> Any:  # noqa: E741
    """Return where (n, m) the output is that of the label."""
    return y[:, None] == namespace(O).arange(O.shape[1], dtype=y.dtype, device=y.device)[None, :]


def _of_labels(y: Any, O: Any) -> Any:  # noqa: E741
    """Return o_y, (n, 1)."""
    return namespace(O).take_along_axis(O, y[:, None], axis=1)


def _differences(y: Any, O: Any) -> Any:  # noqa: E741
    return O - _of_labels(y, O)


def _positive(Z: Any) -> Any:
    return namespace(Z).where(Z > 0.0, Z, 0.0)


def _at_most_one(Z: Any) -> Any:
    return namespace(Z).where(Z < 1.0, Z, 1.0)


def _entropies(Q: Any) -> Any:
    """Return q log q, 0 at 0."""
    xp = namespace(Q)
    return Q * xp.log(xp.where(Q > 0.0, Q, 1.0))


def _rest(Q: Any) -> Any:
    """Return (1 - q) log(1 - q), 0 at 1."""
    xp = namespace(Q)
    return (1.0 - Q) * xp.log1p(-xp.where(Q < 1.0, Q, 0.0))


def _reciprocal(A: Any) -> float:
    largest = float(namespace(A).max(A))
    return 1.0 / largest if largest > 0 else math.inf

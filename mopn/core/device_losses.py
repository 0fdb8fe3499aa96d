"""The losses of samples in the arrays of another namespace; a loss of the user's own is computed on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mopn.core.datafit import DataFit
from mopn.core.losses import BinaryLogistic, BinarySquaredHinge, Logistic, Loss, SmoothedHinge, Squared, SquaredHinge
from mopn.core.namespaces import namespace, to_device, to_host

__all__ = ["device_fit"]


class DeviceFit(DataFit):
    """The sum of losses over the samples of a block: what functions of blocks for any namespace need of it."""

    def value_gradient(self, O: Any) -> tuple[Any, Any]:  # noqa: E741
        values, G = value_gradients(self.loss)(self.y, self._shifted(O))
        return self._sum(values), G if self.weights is None else G * self.weights[:, None]

    def value(self, O: Any) -> Any:  # noqa: E741
        return self.value_gradient(O)[0]

    @property
    def sample_weights(self) -> Any:
        if self.weights is not None:
            return self.weights
        xp = namespace(self.y)
        return xp.ones(self.y.shape[0], dtype=xp.float64, device=self.y.device)

    def _sum(self, values: Any) -> Any:
        return namespace(values).sum(values) if self.weights is None else self.weights @ values


def device_fit(fit: DataFit, like: Any) -> DeviceFit:
    """Return the losses of samples beside an array, on its device."""
    moved = DeviceFit.__new__(DeviceFit)
    vars(moved).update(vars(fit))
    moved.y = to_device(fit.y, like)
    moved.weights = None if fit.weights is None else to_device(fit.weights, like)
    moved.offset = None if fit.offset is None else to_device(fit.offset, like)
    return moved


def value_gradients(loss: Loss) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return ``loss.value_gradient`` for arrays of any namespace."""
    # A class that inherits from one of these may have another gradient.
    return _LOSSES.get(type(loss)) or _on_host(loss)


def _on_host(loss: Loss) -> Callable[[Any, Any], tuple[Any, Any]]:
    def value_gradient(y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        return tuple(to_device(part, O) for part in loss.value_gradient(to_host(y), to_host(O)))

    return value_gradient


def _logistic(y: Any, O: Any, cost: float) -> tuple[Any, Any]:  # noqa: E741
    """log(1 + sum_{c != y} exp(cost + o_c - o_y)), as ``Logistic`` computes it."""
    xp, own = namespace(O), _own(y, O)
    margins = xp.where(own, 0.0, _differences(y, O) + cost)
    largest = xp.max(margins, axis=1)
    E = xp.where(own, 0.0, xp.exp(margins - largest[:, None]))
    excess = xp.sum(E, axis=1) + xp.expm1(-largest)
    P = E / (1.0 + excess)[:, None]
    return largest + xp.log1p(excess), xp.where(own, -xp.sum(P, axis=1)[:, None], P)


def _squared_hinge(y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
    xp, own = namespace(O), _own(y, O)
    Z = xp.where(own, 0.0, _positive(1.0 + _differences(y, O)))
    G = 2.0 * Z
    return xp.sum(Z * Z, axis=1), xp.where(own, -xp.sum(G, axis=1)[:, None], G)


def _squared(y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
    R = O - y
    return 0.5 * namespace(O).sum(R * R, axis=1), R


def _binary_logistic(y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
    xp, margins = namespace(O), y * O
    e = xp.exp(-xp.abs(margins))
    values = xp.log1p(e) + _positive(-margins)
    return xp.sum(values, axis=1), -y * xp.where(margins > 0.0, e, 1.0) / (1.0 + e)


def _binary_squared_hinge(y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
    Z = _positive(1.0 - y * O)
    return namespace(O).sum(Z * Z, axis=1), -2.0 * y * Z


def _own(y: Any, O: Any) -> Any:  # noqa: E741
    """Return where (n, m) the output is that of the label."""
    xp = namespace(O)
    return y[:, None] == xp.arange(O.shape[1], dtype=y.dtype, device=y.device)[None, :]


def _differences(y: Any, O: Any) -> Any:  # noqa: E741
    """Return o_c - o_y."""
    return O - namespace(O).take_along_axis(O, y[:, None], axis=1)


def _positive(Z: Any) -> Any:
    return namespace(Z).where(Z > 0.0, Z, 0.0)


_LOSSES: dict[type, Callable[[Any, Any], tuple[Any, Any]]] = {
    Logistic: partial(_logistic, cost=Logistic.cost),
    SmoothedHinge: partial(_logistic, cost=SmoothedHinge.cost),
    SquaredHinge: _squared_hinge,
    Squared: _squared,
    BinaryLogistic: _binary_logistic,
    BinarySquaredHinge: _binary_squared_hinge,
}

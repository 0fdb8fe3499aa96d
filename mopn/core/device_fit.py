"""F(O) of the samples of a block in the arrays of another namespace, on a device."""

from __future__ import annotations

from typing import Any

from mopn.core.datafit import DataFit
from mopn.core.device_losses import device_loss
from mopn.core.namespaces import namespace, to_device

__all__ = ["DeviceFit"]


class DeviceFit(DataFit):
    """The losses of samples: what functions of blocks for any namespace need of them. Sums are arrays without axes.

    Parameters
    ----------
    fit : DataFit
        The same in arrays of NumPy.
    like : array
        An array on the device.
    """

    def __init__(self, fit: DataFit, like: Any) -> None:
        vars(self).update(vars(fit))
        self.loss: Any = device_loss(fit.loss)
        self.y = to_device(fit.y, like)
        self.weights, self.offset = (
            None if part is None else to_device(part, like) for part in (fit.weights, fit.offset)
        )

    @property
    def sample_weights(self) -> Any:
        if self.weights is not None:
            return self.weights
        xp = namespace(self.y)
        return xp.ones(self.y.shape[0], dtype=xp.float64, device=self.y.device)

    def squared_length(self, D: Any) -> Any:
        return self._sum(namespace(D).sum(D * D, axis=1))

    def conjugates_and_sizes(self, G: Any, scales: Any) -> tuple[Any, Any]:
        xp = namespace(G)
        found = [self._conjugate_and_size(scales[number] * G) for number in range(scales.shape[0])]
        return xp.stack([value for value, _ in found]), xp.stack([size for _, size in found])

    def _conjugate_and_size(self, D: Any) -> tuple[Any, Any]:
        values = self.loss.conjugate(self.y, self._unweighted(D))
        total = self._sum(values)
        if self.offset is not None:
            total = total - namespace(D).sum(D * self.offset)
        return total, self._sum(abs(values))

    def slope_size(self, G: Any) -> Any:
        xp, sizes = namespace(G), abs(G)
        total = self.loss.own_unit * xp.sum(sizes)
        if self.loss.targets != "labels":
            total = total + xp.sum(sizes * abs(self.y))
        return total if self.offset is None else total + xp.sum(sizes * abs(self.offset))

    def _unweighted(self, G: Any) -> Any:
        if self.weights is None:
            return G
        return G / namespace(G).where(self.weights > 0.0, self.weights, 1.0)[:, None]

    def _sum(self, values: Any) -> Any:
        return namespace(values).sum(values) if self.weights is None else self.weights @ values

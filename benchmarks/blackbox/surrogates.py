"""Surrogates, each refitted from where it was after every new row: mopn's network, and a machine trained by Adam."""

from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

import mopn
from mopn.estimators import MultiOutputPNRegressor

# Options of both were tried on single searches, mostly of instances outside the study.
_STRENGTH, _STRENGTH_WITH_LINEAR, _ALPHA, _TOL = mopn.Ratio(0.01), mopn.Ratio(0.03), 1.0, 5e-2
_UNITS, _RATE, _DECAY, _FIRST_STEPS, _STEPS = 8, 0.02, 1e-3, 1000, 30


class Surrogate(Protocol):
    """A model of the function, as a QUBO."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit to the rows so far, from the fit before."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions (n,)."""

    def qubo(self, one_hot: Any) -> tuple[dict[tuple[int, int], float], float]:
        """Return the weights and the offset of the model, with penalties of the constraints."""


class Network:
    """A polynomial network under the norm l1, proven to be near the minimum over all networks; it has no seed."""

    strength: mopn.Ratio = _STRENGTH
    alpha: float | None = None

    def __init__(self, seed: int) -> None:
        self.model = MultiOutputPNRegressor(
            norm="l1", strength=self.strength, alpha=self.alpha, max_units=None, tol=_TOL, warm_start=True
        )

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Refit until the proven gap is at most the tolerance."""
        self.model.fit(X, y)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions (n,)."""
        return self.model.predict(X)

    def qubo(self, one_hot: Any) -> tuple[dict[tuple[int, int], float], float]:
        """Return the output, with the default penalty."""
        return mopn.export.to_qubo(self.model, one_hot=one_hot)


class NetworkBesideLinear(Network):
    """The same with a linear term of its own, whose penalty is a ridge."""

    strength, alpha = _STRENGTH_WITH_LINEAR, _ALPHA


class Adam:
    """The usual machine: w_0 + <w, x> + sum_{i<j} <v_i, v_j> x_i x_j, all rows a step, y standardised."""

    def __init__(self, seed: int) -> None:
        import torch

        self.torch, self.generator = torch, torch.Generator().manual_seed(seed)
        self.parameters: list[Any] = []

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Take some steps of Adam; the first time more of them, from random numbers."""
        torch, steps = self.torch, _STEPS
        self.mean, self.deviation = y.mean(), y.std() or 1.0
        if not self.parameters:
            steps, d = _FIRST_STEPS, X.shape[1]
            draws = 0.1 * torch.randn(d, _UNITS, generator=self.generator)
            self.parameters = [p.requires_grad_() for p in (torch.zeros(1), torch.zeros(d), draws)]
            self.adam = torch.optim.Adam(self.parameters, lr=_RATE, weight_decay=_DECAY)
        rows = torch.as_tensor(X, dtype=torch.float32)
        targets = torch.as_tensor((y - self.mean) / self.deviation, dtype=torch.float32)
        for _ in range(steps):
            self.adam.zero_grad()
            loss = ((self._outputs(rows) - targets) ** 2).mean()
            loss.backward()
            self.adam.step()

    def _outputs(self, X: Any) -> Any:
        constant, w, V = self.parameters
        return constant + X @ w + 0.5 * (((X @ V) ** 2).sum(1) - ((X * X) @ (V * V)).sum(1))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions (n,)."""
        with self.torch.no_grad():
            outputs = self._outputs(self.torch.as_tensor(X, dtype=self.torch.float32)).numpy()
        return self.mean + self.deviation * outputs

    def qubo(self, one_hot: Any) -> tuple[dict[tuple[int, int], float], float]:
        """Return the machine as a model of mopn, whose penalties are the same."""
        constant, w, V = (p.detach().numpy().astype(float) * self.deviation for p in self.parameters)
        model = mopn.FactorizationModel(
            factors=V.T[None] / self.deviation,
            degree=2,
            lams=np.full(_UNITS, self.deviation),
            w=w,
            intercept=float(self.mean + constant[0]),
        )
        return mopn.export.to_qubo(model, one_hot=one_hot)


SURROGATES: dict[str, type[Network] | type[Adam] | None] = {
    "mopn": Network,
    "mopn-linear": NetworkBesideLinear,
    "adam": Adam,
    "random": None,
}


def installed_methods() -> list[str]:
    """Return the methods whose packages are there, and print the omitted ones."""
    if find_spec("torch") is not None:
        return list(SURROGATES)
    print("the machine trained by Adam is left out: the package torch is not installed")
    return [name for name in SURROGATES if name != "adam"]

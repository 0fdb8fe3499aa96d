"""xRFM as an estimator of scikit-learn: kernels that learn which features count, with a quarter held out to choose."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from benchmarks.common.collection import hold_out


class _RecursiveFeatures(BaseEstimator):
    """The machine of Beaglehole et al. (2025) with the parameters that its authors tune, at the package's defaults."""

    _classes: bool

    def __init__(self, bandwidth: float = 10.0, exponent: float = 1.0, reg: float = 1e-3, diag: bool = False) -> None:
        self.bandwidth = bandwidth
        self.exponent = exponent
        self.reg = reg
        self.diag = diag

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit to three quarters of the rows; the others tell how often the features are learned."""
        from xrfm import xRFM

        kernel = {"kernel": "l2_high_dim", "bandwidth_mode": "constant"}
        names = "bandwidth", "exponent", "diag"
        model = kernel | {name: getattr(self, name) for name in names}
        fit = {"reg": self.reg, "iters": 5, "return_best_params": True, "get_agop_best_model": True}
        X, X_quarter, y, y_quarter = hold_out(np.float32(X), self._targets(y), 0, stratify=self._classes)
        self.machine_ = xRFM({"model": model, "fit": fit}, device="cpu", random_state=0, verbose=False)
        self.machine_.fit(X, y, X_quarter, y_quarter)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return classes or numbers (n,)."""
        return np.asarray(self.machine_.predict(np.float32(X))).ravel()


class RecursiveFeatureClassifier(ClassifierMixin, _RecursiveFeatures):
    """For classes 0..m-1."""

    _classes = True

    def _targets(self, y: np.ndarray) -> np.ndarray:
        self.classes_ = np.unique(y)
        return y

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, m)."""
        return np.asarray(self.machine_.predict_proba(np.float32(X)))


class RecursiveFeatureRegressor(RegressorMixin, _RecursiveFeatures):
    """For numbers."""

    _classes = False

    def _targets(self, y: np.ndarray) -> np.ndarray:
        self.center_, self.scale_ = y.mean(), y.std()
        return np.float32((y - self.center_) / self.scale_)[:, None]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return numbers (n,)."""
        return self.center_ + self.scale_ * super().predict(X)

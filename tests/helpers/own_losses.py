"""Losses as users write them: every required method right, every optional one left out."""

import numpy as np
from scipy.special import expit, xlogy

import mopn


class Huber(mopn.Loss):
    """r^2 / 2 up to a threshold of |r|, linear beyond."""

    targets, threshold = "numbers", 1.0

    def smoothness(self, m):
        return 1.0

    def value_gradient(self, y, O):  # noqa: E741
        R = O - y
        G = np.clip(R, -self.threshold, self.threshold)
        return np.sum(G * (R - 0.5 * G), axis=1), G

    def conjugate(self, y, G):
        return np.sum(G * (0.5 * G + y), axis=1)


class LogCosh(mopn.Loss):
    """log cosh r."""

    targets = "numbers"

    def smoothness(self, m):
        return 1.0

    def value_gradient(self, y, O):  # noqa: E741
        R = O - y
        size = np.abs(R)
        return np.sum(size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0), axis=1), np.tanh(R)

    def conjugate(self, y, G):
        return np.sum(0.5 * (xlogy(1.0 + G, 1.0 + G) + xlogy(1.0 - G, 1.0 - G)) + G * y, axis=1)


class Pinball(mopn.Loss):
    """The check function of a quantile, smoothed: sup of g r - width g^2 / 2 over g in [quantile - 1, quantile]."""

    targets = "numbers"
    quantile, width = 0.8, 0.5

    def smoothness(self, m):
        return 1.0 / self.width

    def value_gradient(self, y, O):  # noqa: E741
        R = O - y
        G = np.clip(R / self.width, self.quantile - 1.0, self.quantile)
        return np.sum(G * (R - 0.5 * self.width * G), axis=1), G

    def conjugate(self, y, G):
        return np.sum(G * (0.5 * self.width * G + y), axis=1)


class SoftLabels(mopn.Loss):
    """Cross entropy of the logistic function of the output with a share y in [0, 1]; it declares its link."""

    targets, link = "numbers", "logistic"

    def smoothness(self, m):
        return 0.25

    def value_gradient(self, y, O):  # noqa: E741
        return np.sum(np.logaddexp(0.0, O) - y * O, axis=1), expit(O) - y

    def conjugate(self, y, G):
        Q = np.clip(G + y, 0.0, 1.0)
        return np.sum(xlogy(Q, Q) + xlogy(1.0 - Q, 1.0 - Q), axis=1)


class Sparsemax(mopn.Loss):
    """sup of <q - e_y, o> - (||q||^2 - 1) / 2 over q in the simplex (Martins and Astudillo, ICML 2016)."""

    targets = "labels"

    def smoothness(self, m):
        return 1.0

    def value_gradient(self, y, O):  # noqa: E741
        rows = np.arange(len(y))
        ordered = -np.sort(-O, axis=1)
        levels = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, O.shape[1] + 1)
        Q = np.maximum(O - levels[rows, np.sum(ordered > levels, axis=1) - 1][:, None], 0.0)
        values = np.sum(Q * O, axis=1) - O[rows, y] - 0.5 * (np.sum(Q * Q, axis=1) - 1.0)
        Q[rows, y] -= 1.0
        return values, Q

    def conjugate(self, y, G):
        own = G[np.arange(len(y)), y]
        return np.sum(0.5 * G * G, axis=1) + own


class HuberWithHessian(Huber):
    """The one with all that an interior-point method asks for."""

    def hessian(self, y, O):  # noqa: E741
        from mopn.losses.hessians import Diagonal

        return Diagonal(np.where(np.abs(O - y) <= self.threshold, 1.0, 0.0))


class OfParent(mopn.Loss):
    """A factor times the methods of another loss, ``parent``."""

    factor = 1.0

    def smoothness(self, m):
        return self.factor * self.parent.smoothness(m)

    def value_gradient(self, y, O):  # noqa: E741
        values, G = self.parent.value_gradient(y, O)
        return self.factor * values, self.factor * G

    def conjugate(self, y, G):
        return self.factor * self.parent.conjugate(y, G / self.factor)


OWN_LOSSES = [Huber(), LogCosh(), Pinball(), SoftLabels(), Sparsemax(), HuberWithHessian()]
REGRESSION_LOSSES = [mopn.Huber(0.5), mopn.Quantile(0.8), mopn.Quantile(0.3, width=0.01), mopn.Poisson()]


def data(loss, n=24, d=2, seed=0):
    """Samples, and labels of three classes, counts, or numbers with outliers."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    if loss.targets == "labels":
        return X, np.digitize(X[:, 0] * X[:, 1], [-0.1, 0.1])
    y = 3 * X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(n)
    if loss.targets == "counts":
        return X, rng.poisson(np.exp(1.0 + y)).astype(float)
    y[::4] += 10 * rng.standard_normal(len(y[::4]))
    return X, (np.clip(y, 0, 1) if isinstance(loss, SoftLabels) else y)

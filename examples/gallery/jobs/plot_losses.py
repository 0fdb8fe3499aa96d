"""
Regression: outliers, quantiles and counts
==========================================

All regressors take the same losses: squared, Huber for outliers, a smoothed quantile, and Poisson for counts.
"""

import matplotlib.pyplot as plt
import numpy as np

import mopn
from mopn.estimators import MultiOutputPNRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-2, 2, 200))[:, None]
truth = x[:, 0] ** 2 - x[:, 0]
y = truth + rng.normal(0, 0.4, 200)
y[::12] += 8.0  # every twelfth target is far off
counts = rng.poisson(np.exp(0.5 * truth))

figure, axes = plt.subplots(3, 1, figsize=(4.5, 8.4), layout="constrained", sharex=True)
for ax, values in zip(axes, (y, y, counts), strict=True):
    ax.scatter(x[:, 0], values, s=6, color="0.7")
for loss in ("squared", "huber"):
    model = MultiOutputPNRegressor(loss=loss, max_units=3).fit(x, y)
    print(f"{loss:8} mean error {np.mean(np.abs(model.predict(x) - truth)):.3f}")
    axes[0].plot(x[:, 0], model.predict(x), label=loss)
for level in (0.1, 0.5, 0.8):
    model = MultiOutputPNRegressor(loss=mopn.Quantile(level, 0.2), max_units=3).fit(
        x, y
    )
    below = np.mean(y <= model.predict(x))
    axes[1].plot(
        x[:, 0], model.predict(x), label=f"{level:.0%} (below it: {below:.0%})"
    )
model = MultiOutputPNRegressor(loss="poisson", max_units=3).fit(x, counts)
axes[2].plot(x[:, 0], model.predict(x), label="poisson")
axes[2].plot(x[:, 0], np.exp(0.5 * truth), ":", color="0.3", label="true mean")
for ax, title in zip(axes, ("outliers", "quantiles", "counts"), strict=True):
    ax.set_title(title)
    ax.legend()
axes[2].set_xlabel("x")
plt.show()

"""
Certified radii in the plane
============================

How far a point may move until its class changes, proven: in the l2 norm circles that touch the nearest boundary, in the
l-infinity norm squares. Boundaries between two classes are conic sections, and no sampling is involved.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Rectangle

from mopn.estimators import MultiOutputPNClassifier
from mopn.explain import certified_radius

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (600, 2))
y = (X[:, 0] * X[:, 1] > 0) + 2 * (np.sum(X**2, axis=1) > 0.6)
model = MultiOutputPNClassifier(max_units=6, random_state=0).fit(X, y)

shown = X[:40]
grid = np.meshgrid(np.linspace(-1.3, 1.3, 300), np.linspace(-1.3, 1.3, 300))
regions = model.predict(np.column_stack([grid[0].ravel(), grid[1].ravel()])).reshape(
    grid[0].shape
)
figure, axes = plt.subplots(
    2, 1, figsize=(4.5, 8.6), layout="constrained", sharex=True, sharey=True
)
for ax, norm in zip(axes, ("l2", "linf"), strict=True):
    radii, attack = certified_radius(model, shown, norm, return_attack=True)
    ax.pcolormesh(*grid, regions, cmap="tab10", vmin=0, vmax=9, alpha=0.25)
    for x, r in zip(shown, radii, strict=True):
        ax.add_patch(
            Circle(x, r, fill=False)
            if norm == "l2"
            else Rectangle(x - r, 2 * r, 2 * r, fill=False)
        )
    ax.scatter(*shown.T, s=8, c="k")
    ax.scatter(
        *attack.T, s=8, c="tab:red", label="nearest point found in another class"
    )
    ax.set(
        title=f"{norm}: median radius {np.median(radii):.2f}",
        aspect="equal",
        xlim=(-1.3, 1.3),
        ylim=(-1.3, 1.3),
    )
axes[0].legend(loc="lower left")
plt.show()

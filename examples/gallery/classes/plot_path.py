"""
A path of strengths
===================

The weaker the penalty, the more units. A path solves the problem for descending strengths, each from the solution
before it, and scores every model on held-out rows. In the figures strong penalties are on the left.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import mopn
from mopn.plotting.convergence import NORM_COLORS

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.4, random_state=0, stratify=y
)

figure, axes = plt.subplots(3, 1, figsize=(4.5, 7), layout="constrained", sharex=True)
for norm in ("l1", "l1/l2"):
    problem = mopn.NetworkProblem(
        X_train,
        y_train,
        norm=norm,
        strength=1.0,
        augment=True,
        center=True,
        scale="features",
    )
    path = mopn.path(
        problem, 12, score=lambda model: np.mean(model.predict(X_test) == y_test)
    )
    print(
        f"{norm}: best at strength {path.strengths[path.best]:.3g}, "
        f"{path.n_units[path.best]} units"
    )
    columns = path.n_units, path.scores, path.column("gap") / path.column("fun")
    for ax, column in zip(axes, columns, strict=True):
        ax.plot(path.strengths, column, ".-", label=norm, color=NORM_COLORS[norm])

for ax, label in zip(
    axes, ("units", "accuracy on held-out rows", "proven relative gap"), strict=True
):
    ax.set_xscale("log")
    ax.set_title(label, fontsize=10)
axes[2].set_xlabel("strength")
axes[0].invert_xaxis()
axes[2].set_yscale("log")
axes[0].legend()
plt.show()

# %%
# A single round of units is added per strength, so the gap of a model is wide open where the path goes fast: it
# compares it with networks of any size. ``rounds=None`` solves each problem of the path to the tolerance.

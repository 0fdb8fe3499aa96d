"""
Norms and the output layer
==========================

The penalty decides how classes share units. Under ``"l1"`` every class has its own; under ``"l1/l2"`` and ``"l1/linf"``
a unit is paid for once and used by many.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mopn.estimators import MultiOutputPNClassifier

X, y = load_digits(return_X_y=True)
figure, axes = plt.subplots(3, 1, figsize=(4.5, 7.8), layout="constrained")
for ax, norm in zip(axes, ("l1", "l1/l2", "l1/linf"), strict=True):
    model = MultiOutputPNClassifier(
        norm=norm, max_units=20, scale="data", random_state=0
    ).fit(X[:900], y[:900])
    V = model.weights_
    V = V[np.argsort(np.argmax(np.abs(V), axis=1), kind="stable")]
    V = V / np.abs(V).max(axis=1, keepdims=True)  # the largest weight of each unit is 1
    ax.imshow(V.T, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    used = np.mean(np.abs(V) > 1e-3)
    accuracy = model.score(X[900:], y[900:])
    ax.set_title(
        f"{norm}: {used:.0%} nonzero, test accuracy {accuracy:.1%}", fontsize=10
    )
    ax.set_xticks(range(0, 20, 5))
    ax.set_yticks(range(0, 10, 3))
    ax.set_ylabel("class")
axes[-1].set_xlabel("unit, by the class of its largest weight")
plt.show()

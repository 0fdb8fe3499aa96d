"""
Exact SHAP values
=================

Outputs of degree 2 have SHAP values in closed form: no sampling, no approximation, a few predictions' time. The rows
add up to the output exactly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from mopn.estimators import MultiOutputFMClassifier
from mopn.explain import shap_values

data = load_breast_cancer()
X_train, X_test, y_train, y_test = train_test_split(
    data.data, data.target, random_state=0
)
classifier = MultiOutputFMClassifier(max_units=10, random_state=0).fit(X_train, y_train)
print(f"test accuracy {classifier.score(X_test, y_test):.3f}")

model = classifier.model_
# of the output "benign"
values = shap_values(model, X_test, background=X_train)[:, :, 1]
rest = (
    model.outputs(X_test)[:, 1]
    - values.sum(axis=1)
    - model.outputs(X_train)[:, 1].mean()
)
print(f"largest error of the sums: {np.abs(rest).max():.0e}")

# %%
# Each row of dots is a feature: the values of all test rows, coloured by the feature itself.
order = np.argsort(np.abs(values).mean(axis=0))[-10:]
rng = np.random.default_rng(0)
figure, ax = plt.subplots(figsize=(4.5, 5), layout="constrained")
for place, j in enumerate(order):
    ranks = np.argsort(np.argsort(X_test[:, j])) / len(X_test)
    points = ax.scatter(
        values[:, j],
        place + rng.uniform(-0.3, 0.3, len(values)),
        c=ranks,
        s=8,
        cmap="coolwarm",
    )
ax.set_yticks(range(len(order)), data.feature_names[order])
ax.axvline(0, color="0.6", linewidth=1)
ax.set_xlabel("contribution to the output “benign”")
figure.colorbar(points, label="rank of the feature's value", location="top")
plt.show()

# %%
# ``mopn.explain.to_shap(model, X, background)`` makes the object that the plots of the package shap take.

"""
Ordered levels
==============

Ratings, grades and stages of a disease are ordered: to mistake 1 for 5 is worse than for 2. Ordinal estimators give
each level but the last an output, for the probability of being at most that level; all outputs share their units.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from mopn.estimators import OrdinalPNRegressor

X, y = load_diabetes(return_X_y=True)
levels = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75])) + 1.0
X_train, X_test, y_train, y_test = train_test_split(20 * X, levels, random_state=0)
machine = OrdinalPNRegressor(max_units=10, strength=10.0, fit_intercept=True).fit(
    X_train, y_train
)
probabilities = machine.predict_proba(X_test)
error = np.mean(np.abs(machine.predict(X_test) - y_test))
print(
    f"mean absolute error {error:.2f} levels; of the median level "
    f"{np.mean(np.abs(y_test - 2.5)):.2f}"
)

# %%
# The mean predicted probabilities by the true level: neighbours are mistaken most.
table = np.array(
    [probabilities[y_test == level].mean(axis=0) for level in machine.levels_]
)
figure, ax = plt.subplots(figsize=(4.5, 3.8), layout="constrained")
image = ax.imshow(table, cmap="Blues", vmin=0)
for (i, j), value in np.ndenumerate(table):
    ax.text(
        j,
        i,
        f"{value:.0%}",
        ha="center",
        va="center",
        color="white" if value > 0.35 else "black",
    )
names = [f"{level:g}" for level in machine.levels_]
ax.set_xticks(range(len(names)), names)
ax.set_yticks(range(len(names)), names)
ax.set_xlabel("predicted level")
ax.set_ylabel("true level")
plt.show()

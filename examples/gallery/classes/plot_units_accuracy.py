"""
How many units are enough
=========================

Test accuracy against the number of units, for two norms, and of models that have none. Every network is fitted with
room for this number of units, and is a model of its own.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from mopn.estimators import MultiOutputPNClassifier
from mopn.plotting.convergence import NORM_COLORS

X, y = load_digits(return_X_y=True)
X = X / 16
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, random_state=0, stratify=y
)

# Under l1 three units leave seven classes without one, as the figure shows.
warnings.filterwarnings("ignore", "max_units=", UserWarning)
units = [3, 5, 8, 12, 20, 35]
fig, ax = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
for norm in ("l1", "l1/l2"):
    models = [
        MultiOutputPNClassifier(
            norm=norm, max_units=k, scale="data", random_state=0
        ).fit(X_train, y_train)
        for k in units
    ]
    ax.plot(
        units,
        [model.score(X_test, y_test) for model in models],
        ".-",
        label=norm,
        color=NORM_COLORS[norm],
    )
baselines = {
    "linear": LogisticRegression(max_iter=2000)
    .fit(X_train, y_train)
    .score(X_test, y_test),
    "quadratic SVM": SVC(kernel="poly", degree=2, coef0=1.0)
    .fit(X_train, y_train)
    .score(X_test, y_test),
}
for style, (label, accuracy) in zip((":", "--"), baselines.items(), strict=True):
    ax.axhline(accuracy, color="0.35", linestyle=style, label=label)
ax.set(xlabel="units", ylabel="accuracy", ylim=(0.8, 1.0))
ax.legend()
ax.set_title("Digits: accuracy on the half not trained on", fontsize=10)
plt.show()

# %%
# With room for few units, sharing pays: ten classes of ``"l1"`` need ten units at least.

"""
Accuracy against size and speed
===============================

The accuracy of small models: networks of 12 to 20 units against linear, kernel and tree models. Size is the
count of numbers that a prediction reads; time is for one row alone, in Python.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from mopn.estimators import MultiOutputPNClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, random_state=0, stratify=y
)


def seconds_a_row(predict):
    """Return the median time of a prediction of one row."""
    times = []
    for row in X_test[:100]:
        began = time.perf_counter()
        predict(row[None])
        times.append(time.perf_counter() - began)
    return np.median(times)


def tree_numbers(model):
    """Return the count of nodes times the four numbers of a node."""
    return sum(4 * len(tree.nodes) for trees in model._predictors for tree in trees)


rows = []
for units in (12, 16, 20):
    classifier = MultiOutputPNClassifier(
        max_units=units, scale="data", random_state=0
    ).fit(X_train, y_train)
    model = classifier.model_
    size = model.basis.size + model.weights.size
    rows.append(
        (
            "mopn",
            f"{units} units",
            classifier.score(X_test, y_test),
            size,
            seconds_a_row(model.predict),
        )
    )
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    linear = LogisticRegression(C=1.0).fit(X_train, y_train)
rows.append(
    (
        "others",
        "linear",
        linear.score(X_test, y_test),
        linear.coef_.size,
        seconds_a_row(linear.predict),
    )
)
for kernel, options in (
    ("quadratic SVM", {"kernel": "poly", "degree": 2, "coef0": 1.0}),
    ("RBF SVM", {}),
):
    svm = SVC(C=10.0, **options).fit(X_train, y_train)
    size = svm.support_vectors_.size + svm.dual_coef_.size
    rows.append(
        ("others", kernel, svm.score(X_test, y_test), size, seconds_a_row(svm.predict))
    )
trees = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(
    X_train, y_train
)
score = trees.score(X_test, y_test)
rows.append(
    (
        "others",
        "boosted trees",
        score,
        tree_numbers(trees),
        seconds_a_row(trees.predict),
    )
)

left, right = {"xytext": (-7, -3), "ha": "right"}, {"xytext": (7, -3), "ha": "left"}
above, below = {"xytext": (0, 7), "ha": "center"}, {"xytext": (0, -13), "ha": "center"}
PLACES = {
    "12 units": above,
    "16 units": left,
    "20 units": left,
    "linear": below,
    "quadratic SVM": right,
    "RBF SVM": above,
    "boosted trees": above,
}

# %%
# On the grey line are those that no other model beats in both respects.
figure, axes = plt.subplots(2, 1, figsize=(4.5, 7), layout="constrained")
for ax, column, label in zip(
    axes, (3, 4), ("numbers in the model", "seconds for one row"), strict=True
):
    for row in rows:
        ours, place = row[0] == "mopn", (row[column], 100 * row[2])
        ax.plot(*place, "o" if ours else "s", color="C1" if ours else "C0")
        ax.annotate(row[1], place, textcoords="offset points", **PLACES[row[1]])
    by_cost = sorted(rows, key=lambda row: (row[column], -row[2]))
    best = [
        row
        for i, row in enumerate(by_cost)
        if all(row[2] > other[2] for other in by_cost[:i])
    ]
    ax.step(
        [row[column] for row in best],
        [100 * row[2] for row in best],
        where="post",
        color="0.7",
        zorder=0,
    )
    ax.set_xscale("log")
    ax.set(xlabel=label, ylabel="test accuracy (%)")
    ax.margins(x=0.4, y=0.15)
plt.show()

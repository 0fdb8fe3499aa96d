"""
How many units are enough
=========================

Test accuracy against the number of units, for two norms, beside models that have none. Every network is fitted with
room for so many units, and is a model of its own.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from mopn.estimators import MultiOutputPNClassifier
from mopn.plotting import plot_accuracy

X, y = load_digits(return_X_y=True)
X = X / 16
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

units = [3, 5, 8, 12, 20, 35]
curves = {}
for norm in ("l1", "l1/l2"):
    models = [
        MultiOutputPNClassifier(norm=norm, max_units=k, scale="data", random_state=0).fit(X_train, y_train)
        for k in units
    ]
    curves[norm] = (units, [model.score(X_test, y_test) for model in models])
baselines = {
    "linear": LogisticRegression(max_iter=2000).fit(X_train, y_train).score(X_test, y_test),
    "quadratic SVM": SVC(kernel="poly", degree=2, coef0=1.0).fit(X_train, y_train).score(X_test, y_test),
}
ax = plot_accuracy(curves, baselines)
ax.set_ylim(0.8, 1.0)
ax.set_title("Digits, half for training: accuracy on the other half")
plt.show()

# %%
# With room for few units, sharing pays: ten classes of ``"l1"`` need ten units at least.

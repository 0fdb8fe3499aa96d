"""
The units of digits
===================

A polynomial network computes squares of projections: the output of a class is a weighted sum of squares, one for each
unit. For images the units are images, too, so one can look at the parts of a class.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mopn.estimators import MultiOutputPNClassifier
from mopn.plotting import plot_unit

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# Pixels are of one kind, so all of them are divided by the same number: ``scale="data"``.
classifier = MultiOutputPNClassifier(max_units=20, scale="data", random_state=0).fit(
    X_train, y_train
)
print(
    f"{len(classifier.basis_)} units, test accuracy "
    f"{classifier.score(X_test, y_test):.3f}"
)

# %%
# Each unit next to its weights in the ten classes. Red and blue pixels count against each other; their signs have no
# meaning of their own, as :math:`h` and :math:`-h` are one unit. A positive weight says that the pattern speaks for the
# class, whether it appears as drawn or with its colours swapped.
figure, axes = plt.subplots(
    4, 2, figsize=(4.5, 8), layout="constrained", width_ratios=(1.2, 1)
)
for unit, pair in enumerate(axes):
    plot_unit(classifier, unit, shape=(8, 8), axes=pair)
    pair[1].set_title("weights")
plt.show()

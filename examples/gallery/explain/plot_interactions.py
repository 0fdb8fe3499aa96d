"""
Which products of features matter
=================================

A factorization machine of degree 2 gives every pair of features a weight in every class. The strongest pairs are found
by branch and bound, without a table of all of them, and are exact.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import mopn
from mopn.estimators import MultiOutputFMClassifier, PathCV
from mopn.plotting import plot_interactions

data = load_wine(as_frame=True)
search = PathCV(MultiOutputFMClassifier(), max_units=10).fit(data.data, data.target)
classifier = search.best_estimator_
print(f"strength {classifier.strength_:.2g}, {len(classifier.basis_)} units")

# %%
# Features have units of their own: proline goes up to 1700, hue to 1.7. With ``scale``, weights are for features
# divided by their standard deviations.
found = mopn.explain.strongest_interactions(classifier, 12, scale=data.data.std())
for item in found[:3]:
    print(" x ".join(item.names), item.weight.round(3))

ax = plot_interactions(found, outputs=["0", "1", "2"])
ax.set_xlabel("class of wine")
ax.figure.set_size_inches(4.5, 5)
plt.show()

"""
A model of a table, drawn as a whole
====================================

A model of tables is a constant, a function of each column and a function of each pair of columns. Here they tell three
species of penguins apart by measurements, island and sex, some of them missing.
"""

import inspect
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from mopn.estimators import TableClassifier
from mopn.plotting import plot_effect, plot_model, plot_pair

examples = Path(inspect.getfile(inspect.currentframe())).parents[2]
names = {
    "bill_length_mm": "bill",
    "bill_depth_mm": "depth",
    "flipper_length_mm": "flipper",
    "body_mass_g": "mass",
}
penguins = pd.read_csv(examples / "penguins.csv").rename(columns=names)
X, y = penguins.drop(columns="species"), penguins["species"]
model = TableClassifier().fit(X, y)
print(f"right: {model.score(X, y):.1%}; gap: {model.relative_gap_:.2%}")

# %%
# The whole model on a page: the standard deviations of its effects, and the largest ones of columns and of pairs.
axes = plot_model(model, X)
figure = axes[0].figure
figure.set_size_inches(9.6, 9)
legend = axes[1].get_legend()  # above all panels, not in the first one
names = [*model.classes_, "missing"]
figure.legend(legend.legend_handles, names, loc="outside upper right", ncols=4)
legend.remove()
axes[-1].tick_params("x", labelrotation=45)
plt.show()

# %%
# The length of the bill tells Adélie penguins from the others: the probabilities if all other columns say nothing.
axes = plot_effect(model, "bill", X, scale="probability")
axes[0].figure.set_size_inches(4.5, 3.8)
plt.show()

# %%
# Categories have bars. Chinstraps live on Dream alone, gentoos on Biscoe alone, Adélies on all three islands.
axes = plot_effect(model, "island", X)
axes[0].figure.set_size_inches(4.5, 3.8)
plt.show()

# %%
# The joint effect of length and body mass, beyond their own effects: a long bill and a small body are a chinstrap's.
ax = plot_pair(model, "bill", "mass", X, output="Chinstrap")
ax.figure.set_size_inches(4.5, 3.4)
plt.show()

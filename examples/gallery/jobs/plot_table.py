"""
A model of a table, drawn as a whole
====================================

A model of tables is a constant, a function of each column and a function of each pair of columns. Here they say which
of three species a penguin is, by its measurements, its island and its sex, some of which are missing.
"""

import inspect
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from mopn.estimators import TableClassifier
from mopn.plotting import plot_effect, plot_pair, plot_strengths

examples = Path(inspect.getfile(inspect.currentframe())).parents[2]
penguins = pd.read_csv(examples / "penguins.csv")
X, y = penguins.drop(columns="species"), penguins["species"]
model = TableClassifier().fit(X, y)
print(f"right: {model.score(X, y):.1%}; gap: {model.relative_gap_:.2%}")

# %%
# The columns and pairs of columns that matter most, by the standard deviations of their effects.
plot_strengths(model, X, 10)
plt.show()

# %%
# The length of the bill tells Adélie penguins from the others: the probabilities if all other columns say nothing.
plot_effect(model, X, "bill_length_mm", scale="probability")
plt.show()

# %%
# Levels have bars. Chinstraps live on Dream alone, gentoos on Biscoe alone, Adélies on all three islands.
plot_effect(model, X, "island")
plt.show()

# %%
# What length and body mass say together, beyond what each says alone: a long bill and a small body are a chinstrap's.
plot_pair(model, X, "bill_length_mm", "body_mass_g", output="Chinstrap")
plt.show()

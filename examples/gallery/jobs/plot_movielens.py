"""
Recommend films, and say why
============================

An ordinal factorization machine learns the probability of every rating from one-hot users, films and genres. If the
folder named by the variable ``MOVIELENS`` has MovieLens 100K, its most active users and most rated films are read;
otherwise a small set of the same kind is drawn.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder

import mopn
from mopn.estimators import OrdinalFMRegressor
from mopn.plotting import plot_interactions
from mopn.ranking import grouped_ndcg


def drawn(rng):
    """Return (user, film) and ratings: two kinds of viewers, two kinds of films, and noise."""
    users, films = rng.integers(0, 120, 6000), rng.integers(0, 80, 6000)
    taste, style, quality = (
        rng.normal(size=(120, 2)),
        rng.normal(size=(80, 2)),
        rng.normal(size=80),
    )
    score = (
        3.3
        + 0.6 * quality[films]
        + 0.7 * np.sum(taste[users] * style[films], axis=1)
        + rng.normal(0, 0.5, 6000)
    )
    return np.column_stack([users, films]), np.clip(np.round(score), 1, 5)


def read(folder):
    """Return the ratings of the 150 most active users for the 150 most rated films."""
    table = np.loadtxt(folder / "u.data", dtype=int)[:, :3]
    for column in (0, 1):
        numbers, counts = np.unique(table[:, column], return_counts=True)
        table = table[np.isin(table[:, column], numbers[np.argsort(-counts)[:150]])]
    return table[:, :2], table[:, 2].astype(float)


folder = Path(os.environ.get("MOVIELENS", "ml-100k"))
pairs, ratings = (
    read(folder) if (folder / "u.data").exists() else drawn(np.random.default_rng(0))
)
train, test, y_train, y_test = train_test_split(pairs, ratings, random_state=0)
encoder = OneHotEncoder(handle_unknown="ignore").fit(train)
machine = OrdinalFMRegressor(strength=2.0, max_units=10).fit(
    encoder.transform(train), y_train
)

expected = machine.predict(encoder.transform(test))
rmse = np.sqrt(np.mean((expected - y_test) ** 2))
print(f"test RMSE {rmse:.3f}, of the mean alone {np.std(y_test):.3f}")
print(f"nDCG@5 {grouped_ndcg(y_test, expected, test[:, 0], k=5):.3f}")

# %%
# The films of a user by the expected rating, with the probability of each level.
user = train[0, 0]
films = np.unique(train[:, 1])
rows = encoder.transform(np.column_stack([np.full(len(films), user), films]))
probabilities = machine.predict_proba(rows)
best = np.argsort(machine.predict(rows))[::-1][:8]

figure, ax = plt.subplots(figsize=(4.5, 3.8), layout="constrained")
left = np.zeros(len(best))
colors = plt.get_cmap("viridis")(np.linspace(0, 1, len(machine.levels_)))
for level, color, column in zip(
    machine.levels_, colors, probabilities[best].T, strict=True
):
    ax.barh(range(len(best)), column, left=left, color=color, label=f"{level:g}")
    left += column
ax.set_yticks(range(len(best)), [f"film {films[b]}" for b in best])
ax.invert_yaxis()
ax.set_xlabel("probability of each rating")
figure.legend(ncols=5, loc="outside upper center", columnspacing=1)
plt.show()

# %%
# Reasons for the first one: the user's habit, the film's popularity, and how the two fit. The outputs stand for
# "at most 1", ..., "at most 4", so a negative contribution speaks for a high rating.
n_users = len(encoder.categories_[0])
fields = {"user": range(n_users), "film": range(n_users, rows.shape[1])}
found = mopn.explain.contributions(
    machine, rows[best[0]], encoder.transform(train), fields
)
ax = plot_interactions(
    found, outputs=[f"<= {level:g}" for level in machine.levels_[:-1]]
)
ax.set_title(f"user {user}, film {films[best[0]]}", fontsize=10)
ax.figure.set_size_inches(4.5, 3)
plt.show()

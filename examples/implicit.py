"""The best of all items for a user, from ratings as ones and drawn items as zeros: python examples/implicit.py."""

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from mopn.estimators import FactorizationMachineRegressor
from mopn.ranking import Ranker

rng = np.random.default_rng(0)
# users of two kinds, who rate one half of the items more often
chance = np.where(np.arange(60)[:, None] % 2 == np.arange(40) % 2, 0.5, 0.05)
users, items = np.nonzero(rng.random((60, 40)) < chance)

others, drawn = np.repeat(users, 10), rng.integers(0, 40, 10 * len(users))
new = ~np.isin(others * 40 + drawn, users * 40 + items)  # not rated
pairs = np.column_stack([np.append(users, others[new]), np.append(items, drawn[new])])
y = (np.arange(len(pairs)) < len(users)).astype(float)

encoder = OneHotEncoder(handle_unknown="ignore")
machine = FactorizationMachineRegressor(beta=2, random_state=0)
machine.fit(encoder.fit_transform(pairs), y)
ranker = Ranker(machine, encoder.transform([(-1, item) for item in range(40)]))
best = ranker.rank(encoder.transform([(7, -1)]), n=5, exclude=items[users == 7])
print("of the kind of user 7:", np.sum(best.items % 2 == 1), "of 5")

"""Which items users rated, as features in relation blocks, lowers the error: python examples/relation_blocks.py."""

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

import mopn
from mopn.estimators import OrdinalFMRegressor

rng = np.random.default_rng(0)
taste, style = rng.normal(size=(200, 2)), rng.normal(size=(100, 2))
pairs = rng.permutation(200 * 100)[:8000]
liked = (taste[pairs // 100] * style[pairs % 100]).sum(axis=1)
chosen = rng.normal(size=8000) < liked  # users rate what they like, more often than not
users, items, liked = pairs[chosen] // 100, pairs[chosen] % 100, liked[chosen]
ratings = np.clip(np.round(3 + liked + rng.normal(size=len(users))), 1, 5)
n = len(users) // 2  # the first n are known

rated = sparse.csr_array((np.ones(n), (users[:n], items[:n])), shape=(200, 100))
of_users = sparse.hstack([sparse.eye_array(200), normalize(rated)])
of_items = sparse.hstack([sparse.eye_array(100), normalize(sparse.csr_array(rated.T))])
for tables in ([sparse.eye_array(200), sparse.eye_array(100)], [of_users, of_items]):
    X = mopn.RelationBlocks(tables, np.column_stack([users, items]))
    model = OrdinalFMRegressor(max_units=5).fit(X[:n], ratings[:n])
    rmse = np.sqrt(np.mean((model.predict(X[n:]) - ratings[n:]) ** 2))
    print(f"{X.shape[1]} columns: test RMSE {rmse:.2f}")

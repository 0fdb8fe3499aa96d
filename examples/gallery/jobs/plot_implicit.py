"""
Recommend from clicks, with a proven gap
========================================

Alternating least squares for implicit feedback minimise a convex function of all scores. So their gap to the best
matrix of any rank can be proven: here after every sweep, next to the recall of held-out pairs. The recall settles long
before the gap does. If the folder named by the variable ``MOVIELENS`` has MovieLens 100K, it is read; otherwise a small
set is drawn.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import mopn
from mopn.ranking import recall_at_k


def drawn(rng):
    """Return who liked what: three tastes, and items of different popularity."""
    taste, style = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    chance = 1 / (1 + np.exp(3.5 - rng.normal(size=200) - taste @ style.T))
    return sparse.csr_array(rng.random((300, 200)) < chance, dtype=float)


def read(folder):
    """Return which films users rated."""
    users, films = np.loadtxt(folder / "u.data", dtype=int)[:, :2].T - 1
    return sparse.csr_array((np.ones(len(users)), (users, films)))


folder = Path(os.environ.get("MOVIELENS", "ml-100k"))
rng = np.random.default_rng(0)
likes = read(folder) if (folder / "u.data").exists() else drawn(rng)

users, items = likes.nonzero()
held_out = rng.random(len(users)) < 0.2
train, test = (
    sparse.csr_array(
        (np.ones(mask.sum()), (users[mask], items[mask])), shape=likes.shape
    )
    for mask in (~held_out, held_out)
)

problem = mopn.ImplicitProblem(train, mopn.Ratio(0.1), unobserved_weight=0.3)
gaps, recalls = [], []


def watch(intermediate_result):
    """Prove the gap of the factors so far, and measure their lists."""
    factors = intermediate_result.P, intermediate_result.Q
    gaps.append(mopn.certify(problem, *factors).relative_gap)
    scores = factors[0] @ factors[1].T
    recalls.append(recall_at_k(test, scores, 10, seen=train))


result = mopn.minimize(problem, tol=1e-5, callback=watch)
print(f"{result.P.shape[1]} units, gap {result.relative_gap:.1e}")

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(4.5, 5), layout="constrained", sharex=True
)
top.semilogy(gaps, marker=".")
top.set(ylabel="proven gap, relative")
bottom.plot(recalls, marker=".")
bottom.set(xlabel="sweeps", ylabel="recall@10, held-out pairs")
plt.show()

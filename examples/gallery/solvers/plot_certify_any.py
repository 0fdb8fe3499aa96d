"""
Certify the result of a non-convex solver
=========================================

A factorization machine in its lifted form is not convex: coordinate descent from random starts may end at local optima,
and by itself it cannot tell. ``mopn.certify`` takes the units and weights, however they were found, and bounds how far
they are from the best of any rank.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

import mopn

X, y = load_diabetes(return_X_y=True)
X, y = scale(X), scale(y)
convex = mopn.NetworkProblem(
    X, y, loss="squared", kernel="anova", norm="l1", strength=20.0
)

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
for rank in (1, 2, 3, 4, 6, 10):
    lifted = mopn.LiftedProblem(X, y, rank=rank, beta=20.0, kernel="anova")
    for seed in range(6):
        found = mopn.minimize(
            lifted, mopn.solvers.CoordinateDescent(), tol=1e-7, max_iter=2000, rng=seed
        )
        measure = mopn.certify(convex, *lifted.network(found))
        ax.plot(rank, measure.gap / measure.fun, "o", color="#0072B2", alpha=0.5)
    print(
        f"rank {rank:2d}: objective {measure.fun:.4f}, proven within "
        f"{measure.gap / measure.fun:.1e}"
    )
ax.set_yscale("log")
ax.set_xlabel("rank")
ax.set_ylabel("proven relative gap")
ax.set_title("Six random starts for each rank")
plt.show()

# %%
# Small ranks cannot reach the minimum, and the gap says by how much at most. From some rank on all starts reach it.

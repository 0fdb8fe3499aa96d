"""
Black-box optimisation with constraints
=======================================

Six machines go to six places, and only the total cost of a layout can be measured. A network learns it from a few
layouts; as a QUBO it is minimised by simulated annealing, the proposed layout is measured, and the network is refitted
from where it was.
"""

import itertools

import dimod
import matplotlib.pyplot as plt
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler

import mopn
from mopn.estimators import MultiOutputPNRegressor

size, rng = 6, np.random.default_rng(0)
points, flows = rng.random((size, 2)), np.triu(rng.exponential(size=(size, size)), 1)
distances = np.linalg.norm(points[:, None] - points, axis=2)


def cost(x):
    """Flows between machines times distances of their places; machine i is at place j where x has a 1."""
    places = x.reshape(size, size).argmax(axis=1)
    return np.sum(flows * distances[np.ix_(places, places)])


def is_new_layout(x):
    """Whether annealing, which is no exact method, has kept the constraints, and the row is none of those before."""
    grid = x.reshape(size, size)
    return (
        (grid.sum(axis=0) == 1).all()
        and (grid.sum(axis=1) == 1).all()
        and not (x == X).all(axis=1).any()
    )


# %%
# Feature (i, j) is 1 if machine i is at place j. Every machine has one place and every place one machine: these are the
# groups of ``one_hot``, and the default penalty is proven to suffice.
layouts = np.array(
    [np.eye(size)[list(order)].ravel() for order in itertools.permutations(range(size))]
)
cells = np.arange(size * size).reshape(size, size)
X = rng.permutation(layouts)[:15]
y = np.array([cost(x) for x in X])
model = MultiOutputPNRegressor(
    norm="l1", strength=mopn.Ratio(0.01), max_units=None, tol=0.02, warm_start=True
)
for _ in range(45):
    qubo = mopn.export.to_qubo(model.fit(X, y), X, one_hot=[*cells, *cells.T])
    found = SimulatedAnnealingSampler().sample(
        dimod.BinaryQuadraticModel.from_qubo(*qubo),
        num_reads=20,
        num_sweeps=200,
        seed=1,
    )
    ranked = found.record.sample[np.argsort(found.record.energy)].astype(float)
    x = next((x for x in ranked if is_new_layout(x)), rng.permutation(layouts)[0])
    X, y = np.vstack([X, x]), np.append(y, cost(x))

# %%
# Compared with the same number of random layouts, and the best of all 720.
best = min(cost(x) for x in layouts)
random = [cost(x) for x in rng.permutation(layouts)[: len(y)]]
print(
    f"best of {len(y)}: {y.min():.3f}, of as many random ones {min(random):.3f}, of "
    f"all {best:.3f}"
)
figure, ax = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
for values, color, label in (
    (y, "#D55E00", "surrogate"),
    (random, "0.5", "random layouts"),
):
    best_so_far = np.minimum.accumulate(values)
    ax.step(range(1, len(y) + 1), best_so_far, where="post", color=color, label=label)
ax.axhline(
    best, color="black", linewidth=0.8, linestyle=":", label="best of all layouts"
)
ax.axvspan(1, 15, color="0.95")
ax.set_xlabel("layouts measured")
ax.set_ylabel("least cost so far")
ax.legend(frameon=False)
plt.show()

r"""
The injective norm of a tensor
==============================

Behind every certificate is a maximum over the unit sphere. It also gives the largest overlap of a tensor with products
of unit vectors, the spectral or injective norm, between a value that is attained and a proven bound.

``mopn.solvers.sphere.maximise`` bounds the largest p-norm of :math:`(h^\top\Gamma_1h, \dots, h^\top\Gamma_mh)` over
unit vectors h, for symmetric matrices and p = 1, 2 or infinity. The overlap of a tensor T with :math:`a \otimes b
\otimes u` is that for p = 2 and the matrices with the slices of T in their corners, at h = (a, b) divided by the root
of 2. Some norms are known: 2/3 for the state W, the root of 1/2 for GHZ, of 1/6 for the antisymmetric state.
"""

import matplotlib.pyplot as plt
import numpy as np

from mopn.solvers.sphere import maximise


def injective_norm(T):
    """Return the value, and a proven bound of it."""
    a, b, m = T.shape
    matrices = np.zeros((m, a + b, a + b))
    matrices[:, :a, a:] = T.transpose(2, 0, 1)
    return maximise(matrices + matrices.transpose(0, 2, 1), p=2, tol=1e-6)


W, GHZ, antisymmetric = np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), np.zeros((3, 3, 3))
W[0, 0, 1] = W[0, 1, 0] = W[1, 0, 0] = 1 / np.sqrt(3)
GHZ[0, 0, 0] = GHZ[1, 1, 1] = 1 / np.sqrt(2)
for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    antisymmetric[i, j, k], antisymmetric[j, i, k] = 1 / np.sqrt(6), -1 / np.sqrt(6)
for T, known in ((W, 2 / 3), (GHZ, 1 / np.sqrt(2)), (antisymmetric, 1 / np.sqrt(6))):
    found = injective_norm(T)
    proven = found.bound / found.value - 1 < 2e-6
    print(f"{found.value:.5f} proven to {proven}, known {known:.5f}")

# %%
# The overlaps of W and GHZ with three copies of one vector, by its angle. For these two they reach the proven bounds,
# which hold for three vectors that differ, too.
angles = np.linspace(0, np.pi, 181)
vectors = np.array([np.cos(angles), np.sin(angles)])
figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
for name, T, color in (("W", W, "C0"), ("GHZ", GHZ, "C1")):
    overlaps = np.einsum("ijk,in,jn,kn->n", T, vectors, vectors, vectors)
    ax.plot(angles, np.abs(overlaps), color=color, label=name)
    bound = injective_norm(T).bound
    ax.axhline(bound, color=color, linestyle=":", label=f"{name}, bound")
ax.set(xlabel="angle", ylabel="overlap", ylim=(0, 1))
ax.legend(ncols=2)
plt.show()

# %%
# Vectors are real: complex ones may have a larger overlap with a tensor that is complex or has entries of both signs.
# QETLAB and toqito have complex states; GloptiPoly, TSSOS and SumOfSquares.jl take any polynomial.

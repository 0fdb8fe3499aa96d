"""Stacks of symmetric matrices (m, d, d) that make proofs hard, for the search for false certificates."""

import numpy as np


def draw_stack(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Draw symmetric matrices (m, d, d): tied, of rank one, of very different sizes, opposite, in blocks."""
    m, d = int(rng.integers(1, 7)), int(rng.integers(1, 13))
    kind = rng.choice(["any", "tied", "rank one", "scaled", "opposite", "block", "sparse"])
    A = rng.standard_normal((m, d, d))
    if kind == "tied":
        A = A[:1] + 1e-9 * A
    elif kind == "rank one":
        h = rng.standard_normal((m, d))
        A = h[:, :, None] * h[:, None, :]
    elif kind == "scaled":
        A *= np.power(10.0, rng.uniform(-8, 8, m))[:, None, None]
    elif kind == "opposite":
        A = A[:1] * rng.choice([-1.0, 1.0], m)[:, None, None]
    elif kind == "block":
        A *= (np.arange(d)[:, None] < d // 2) == (np.arange(d) < d // 2)
    elif kind == "sparse":
        A *= rng.uniform(size=A.shape) < 0.2
    return 0.5 * (A + A.transpose(0, 2, 1)) * 10.0 ** rng.integers(-100, 101), f"{kind} m={m} d={d}"


def draw_wide_stack(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Draw matrices (m, d, d) of 27 to 60 features, bounded on some of their directions, that make this hard.

    Slow decay of the spectrum, equal matrices, almost nothing beyond the first directions, and maxima that nearly tie.
    """
    m, d = int(rng.integers(1, 6)), int(rng.integers(27, 61))
    kind = rng.choice(["slow decay", "equal", "tiny rest", "near ties", "any"])
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = rng.standard_normal((m, d, d))
    A = A + A.transpose(0, 2, 1)
    if kind == "slow decay":
        values = rng.choice([-1.0, 1.0], (m, d)) / np.log(np.arange(2, d + 2))
        A = np.einsum("ij,cj,kj->cik", Q, values, Q) + 0.01 * A
    elif kind == "equal":
        A = A[:1] * np.ones((m, 1, 1))
    elif kind == "tiny rest":
        r = int(rng.integers(1, 20))
        A = Q[:, :r] @ A[:, :r, :r] @ Q[:, :r].T + 10.0 ** rng.integers(-16, -2) * A
    elif kind == "near ties":
        values = 1.0 - 10.0 ** rng.integers(-14, -1) * rng.uniform(size=(m, d))
        A = np.einsum("ij,cj,kj->cik", Q, values * rng.choice([-1.0, 1.0], (m, d)), Q)
    return 0.5 * (A + A.transpose(0, 2, 1)) * 10.0 ** rng.integers(-100, 101), f"{kind} m={m} d={d}"


def draw_dependent_stack(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Draw matrices (m, d, d), also of a single feature or output, that nearly depend on each other, or nearly tie.

    What they differ by is about the size of combinations that bounds leave out.
    """
    m, d = int(rng.integers(1, 7)), int(rng.choice([rng.integers(1, 4), rng.integers(4, 13), rng.integers(13, 41)]))
    kind = rng.choice(["any", "tied outputs", "dependent outputs", "tied features", "tied directions", "last"])
    little, sizes = 10.0 ** rng.uniform(-12, -4), rng.uniform(0.5, 1.0) ** np.arange(d)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = rng.standard_normal((m, d, d)) * sizes[:, None] * sizes
    if kind == "tied outputs":
        A = A[:1] + little * A
    elif kind == "dependent outputs":
        A[-1] = little * A[-1] - A[:-1].sum(axis=0)
    elif kind == "tied features":
        pairs = np.arange(d) // 2
        A = A[:, pairs[:, None], pairs] + little * A
    elif kind == "tied directions":
        A = np.eye(d) * rng.choice([-1.0, 1.0], (m, d, 1)) * (1.0 - little * rng.uniform(size=(m, d, 1)))
    elif kind == "last":
        # The best vector is the last direction, if any: many small outputs add up there.
        A *= little
        A[:, -1, -1] += 1.0
        A[0, 0, 0] += 0.999 * np.sqrt(m)
    A = Q @ (A + A.transpose(0, 2, 1)) @ Q.T
    return 0.5 * (A + A.transpose(0, 2, 1)) * 10.0 ** rng.choice([-150, 0, 150]), f"{kind} m={m} d={d}"


def draw_clustered_stack(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Draw two matrices of 60 to 200 features whose leading directions nearly tie.

    Each direction but the best is coupled to one outside of the principal directions. A matrix on these ranks it first,
    so that the leaf's eigenvector is not found from there: the bound of signs must bound the whole matrix.
    """
    k, d = int(rng.choice([14, 22, 34])), int(rng.choice([60, 80, 100, 200]))
    k = min(k, d // 4)
    delta, share, decoy = 10.0 ** rng.uniform(-6, -4), rng.uniform(0.3, 2.0), rng.uniform(0.02, 0.1)
    leading = np.ones(k)
    leading[1:] -= delta * rng.uniform(0.9, 1.1, k - 1)
    tied, others, between = np.arange(1, k), np.arange(d - k + 1, d), np.arange(k + 2, d - k + 1)
    A = np.zeros((2, d, d))
    A[:, np.arange(k), np.arange(k)] = leading / 2
    # -0.9 in the sum by the best signs; 0.9 in the sum of the majorants.
    A[0, others, others], A[1, others, others] = -0.3, -0.6
    # The sum of the squares does not couple a direction and its partner.
    coupling = np.sqrt(share * delta)
    A[0, tied, others], A[1, tied, others] = coupling / 3, 2 * coupling / 3
    # Starts prefer opposite signs, and cheap bounds are loose.
    noise = 1e-3 * rng.standard_normal((k, k))
    A[0, :k, :k] += noise
    A[1, :k, :k] -= noise
    A[0, between, between] = 4 * decoy * rng.choice([-1, 1], len(between)) * rng.uniform(0.9, 1, len(between))
    A[1, between, between] = -A[0, between, between]
    A[0, [k, k + 1], [k, k + 1]] += 0.6, -0.6
    A[1, k, k + 1] += 0.6
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = np.triu(A) + np.triu(A, 1).transpose(0, 2, 1)
    A = Q @ A @ Q.T
    return 0.5 * (A + A.transpose(0, 2, 1)), f"clustered k={k} d={d} delta={delta:.1e}"


def draw_few_outputs(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Draw two to five matrices: rotated sizes, near ties, equal norms in all directions, gradients, spectra."""
    m, d = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    kind = rng.choice(["rotated", "rank one", "ties", "invariant", "gradients", "dependent", "reflections", "spectra"])
    A, mix = rng.standard_normal((m, d, d)), np.linalg.qr(rng.standard_normal((m, m)))[0]
    A = A + A.transpose(0, 2, 1)
    bases = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(m)]
    if kind == "rotated":
        A = np.tensordot(mix, A * 10.0 ** rng.uniform(-9, 0, (m, 1, 1)), 1)
    elif kind == "rank one":
        h = rng.standard_normal(d) + 10.0 ** rng.uniform(-9, 0) * rng.standard_normal((m, d))
        A = h[:, :, None] * h[:, None, :] * rng.choice([-1.0, 1.0], (m, 1, 1))
    elif kind == "ties":
        A[1:] = A[0] + 10.0 ** rng.uniform(-14, -2) * A[1:]
    elif kind == "invariant":
        A = np.zeros((2, d, d))
        A[0, 0, 0], A[0, 1, 1], A[1, 0, 1], A[1, 1, 0] = 1.0, -1.0, 1.0, 1.0
        A = bases[0] @ A @ bases[0].T
    elif kind == "gradients":
        n = int(rng.integers(2, 20))
        X, G = rng.standard_normal((n, d)), rng.dirichlet(np.ones(m), n)
        G[np.arange(n), rng.integers(m, size=n)] -= 1.0
        A = np.einsum("nc,ni,nj->cij", G, X, X)
    elif kind == "dependent":
        A[1:] *= 10.0 ** rng.uniform(-8, -6, (m - 1, 1, 1))
        A = np.tensordot(mix, A, 1)
    elif kind == "reflections":
        A = np.array([(Q * rng.choice([-1.0, 1.0], d)) @ Q.T for Q in bases])
    else:
        clustered, geometric = 1.0 - 10.0 ** rng.uniform(-12, -1) * rng.random(d), 10.0 ** -np.arange(float(d))
        spectra = [clustered, geometric, np.ones(d), np.eye(d)[0]]
        A = np.array([(Q * spectra[int(rng.integers(4))]) @ Q.T for Q in bases])
    return 0.5 * (A + A.transpose(0, 2, 1)) * 10.0 ** rng.choice([0.0, rng.uniform(-100, 100)]), f"{kind} m={m} d={d}"

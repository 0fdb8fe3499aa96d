"""Small files of the MovieLens graph."""

import numpy as np
import pytest


@pytest.fixture
def write_movielens(write):
    """Write users, films and ratings into a folder, and return the pairs of five stars."""

    def write_movielens(folder, n=(12, 15)):
        rng = np.random.default_rng(0)
        jobs, zips = ["artist", "writer", "other"], "0123V"
        users = "".join(f"{u + 1}|{7 + 5 * u}|{'FM'[u % 2]}|{jobs[u % 3]}|{zips[u % 5]}1234\n" for u in range(n[0]))
        genres = ["|".join(map(str, rng.integers(2, size=19))) for _ in range(n[1])]
        films = "".join(f"{f + 1}|Thé {f}|01-Jan-{1922 + 5 * f}||url|{genres[f]}\n" for f in range(n[1] - 1))
        films += f"{n[1]}|unknown||||{genres[-1]}\n"
        rated = rng.permutation(n[0] * n[1])[:120]
        stars = np.where(np.arange(120) % 4, 5, 1 + np.arange(120) % 3)
        ratings = "".join(
            f"{1 + p // n[1]}\t{1 + p % n[1]}\t{s}\t8{i}\n" for i, (p, s) in enumerate(zip(rated, stars, strict=True))
        )
        write(folder / "ml-100k", {"u.user": users, "u.item": films, "u.data": ratings})
        return {(p // n[1], p % n[1]) for p, s in zip(rated, stars, strict=True) if s == 5}

    return write_movielens

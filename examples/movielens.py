"""From MovieLens' raw files to recommendations: top films for a user, why, and the strongest interactions.

Reads the folder of MovieLens 100K (https://grouplens.org/datasets/movielens/100k/): u.data, u.user, u.item. Users,
films, ages, occupations and genres become 0/1 features; an ordinal factorization machine learns the probability of
every rating; films that the user has not rated are ranked by the expected one.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

import mopn
from mopn.estimators import OrdinalFMRegressor
from mopn.ranking import grouped_ndcg

AGES = (18, 25, 35, 45, 50, 56)
GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western"),
)


class MovieLens:
    """The raw files, and tables of (user, film, age group, occupation, flags of the genres) made of them."""

    def __init__(self, folder: Path) -> None:
        users = [line.split("|") for line in (folder / "u.user").read_text("latin-1").splitlines() if line]
        films = [line.split("|") for line in (folder / "u.item").read_text("latin-1").splitlines() if line]
        self.ages = {int(user[0]): int(np.searchsorted(AGES, int(user[1]), side="right")) for user in users}
        self.occupations = {int(user[0]): user[3] for user in users}
        self.titles = {int(film[0]): film[1] for film in films}
        self.genres = {int(film[0]): [float(flag) for flag in film[5:]] for film in films}
        self.ratings = np.loadtxt(folder / "u.data", dtype=int)[:, :3]

    def table(self, users: np.ndarray, films: np.ndarray) -> np.ndarray:
        """Return a row of plain columns for every pair of a user and a film."""
        rows = zip(users.tolist(), films.tolist(), strict=True)
        return np.array([(u, f, self.ages[u], self.occupations[u], *self.genres[f]) for u, f in rows], dtype=object)


def make_model(units: int, strength: float) -> Pipeline:
    """Return the pipeline: columns to 0/1 features, and the factorization machine on them."""
    # Categories that are not in the training data become zeros: a new user is described by age and occupation only.
    one_hot = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer(
        [("", one_hot, [0, 1, 2, 3]), ("genre", "passthrough", slice(4, None))], sparse_threshold=1.0
    )
    return Pipeline([("columns", columns), ("machine", OrdinalFMRegressor(strength=strength, max_units=units))])


def feature_names(model: Pipeline, data: MovieLens) -> list[str]:
    """Return the names of the features."""
    users, films, ages, occupations = model["columns"].transformers_[0][1].categories_
    limits = ("under 18", *(f"{low} to {high - 1}" for low, high in pairwise(AGES)), "56 and over")
    return [
        *(f"user {user}" for user in users),
        *(data.titles[film] for film in films),
        *(limits[age] for age in ages),
        *occupations,
        *GENRES,
    ]


def fields(model: Pipeline) -> dict[str, range]:
    """Return the indices of the features of users, films, age groups, occupations and genres."""
    sizes = [len(categories) for categories in model["columns"].transformers_[0][1].categories_]
    ends = np.cumsum([0, *sizes, len(GENRES)]).tolist()
    names = ("user", "film", "age", "occupation", "genre")
    return {name: range(*limits) for name, limits in zip(names, pairwise(ends), strict=True)}


def main(arguments: list[str] | None = None) -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with u.data, u.user and u.item")
    parser.add_argument("--user", type=int, default=196, help="whom to recommend films (default %(default)s)")
    parser.add_argument("--top", type=int, default=10, help="how many (default %(default)s)")
    parser.add_argument("--units", type=int, default=30, help="largest number of units (default %(default)s)")
    parser.add_argument("--strength", type=float, default=20.0, help="of the penalty (default %(default)s)")
    args = parser.parse_args(arguments)

    data = MovieLens(args.data)
    users, films, ratings = data.ratings.T
    train, test = train_test_split(np.arange(len(ratings)), test_size=0.25, random_state=0)
    table = data.table(users, films)
    model = make_model(args.units, args.strength).fit(table[train], ratings[train])

    found = model.predict(table[test])
    print(f"{len(train)} ratings to learn from, {len(test)} to test on, {len(model['machine'].basis_)} units")
    print(f"test RMSE {np.sqrt(np.mean((found - ratings[test]) ** 2)):.4f}", end="")
    print("".join(f", nDCG@{k} {grouped_ndcg(ratings[test], found, users[test], k):.4f}" for k in (1, 5)))

    rated = set(films[users == args.user].tolist())
    unseen = np.array([film for film in sorted(data.titles) if film not in rated])
    rows = data.table(np.full(len(unseen), args.user), unseen)
    expected, liked = model.predict(rows), model.predict_proba(rows)[:, -1]
    print(f"\nfor user {args.user}, who has rated {len(rated)} films: expected rating, probability of the highest one")
    order = np.argsort(-expected, kind="stable")
    for place in order[: args.top]:
        print(f"  {expected[place]:.2f}  {liked[place]:4.0%}  {data.titles[unseen[place]]}")

    # Output c is for ratings of at most c, so features that decrease the outputs increase the rating.
    machine = model["machine"].model_
    liking = mopn.FactorizationModel.from_outputs(machine, -np.ones(machine.weights.shape[1]))
    best, background = (model["columns"].transform(part) for part in (rows[order[:1]], table[train]))
    print(f"\nwhy {data.titles[unseen[order[0]]]}: what adds to the mean of all ratings' log-odds, added up")
    for contribution in mopn.contributions(liking, best, background, fields(model))[: args.top]:
        print(f"  {contribution.value:+.3f}  {' x '.join(contribution.fields)}")
    print("\nstrongest interactions, all ratings' log-odds added up")
    for interaction in mopn.strongest_interactions(liking, args.top, names=feature_names(model, data)):
        print(f"  {interaction.weight:+.3f}  {' x '.join(interaction.names)}")


if __name__ == "__main__":
    main()

"""From MovieLens' raw files to recommendations: top films for a user, why, and the strongest interactions.

Reads the folder of MovieLens 100K (https://grouplens.org/datasets/movielens/100k/): u.data, u.user, u.item. Users,
films, ages, occupations and genres become 0/1 features; an ordinal factorization machine learns the probability of
every rating; films that the user has not rated are ranked by the expected one, with the reasons for the first, and
films that are like it. A user who is not in the data gives some ratings, as ``--user 0 --ratings 50=5 181=5 288=1``,
and is folded in without another fit.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

import mopn
from mopn.estimators import OrdinalFMRegressor
from mopn.ranking import Ranker, grouped_ndcg, similar_features

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
        return np.array(
            # The age and the occupation of a new user are unknown.
            [(u, f, self.ages.get(u, -1), self.occupations.get(u, ""), *self.genres[f]) for u, f in rows],
            dtype=object,
        )


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


def only(X: sparse.csr_array, features: list[int]) -> sparse.csr_array:
    """Return X with some features as they are and zeros in place of all others."""
    kept = np.zeros(X.shape[1])
    kept[features] = 1.0
    return sparse.csr_array(X.multiply(kept))


def with_column(X: sparse.csr_array, value: float) -> sparse.csr_array:
    """Return X with one more column, the last, of equal numbers."""
    return sparse.csr_array(sparse.hstack([X, np.full((X.shape[0], 1), value)]))


def given_ratings(texts: list[str], data: MovieLens) -> dict[int, int]:
    """Return the ratings that are given as film=rating."""
    try:
        ratings = {int(film): int(rating) for film, rating in (text.split("=") for text in texts)}
    except ValueError:
        raise SystemExit(f"--ratings takes pairs such as 50=5, got {' '.join(texts)}") from None
    unknown = sorted(ratings.keys() - data.titles.keys())
    if unknown or not set(ratings.values()) <= set(range(1, 6)):
        raise SystemExit(f"--ratings takes films of u.item and ratings from 1 to 5; unknown films: {unknown}")
    return ratings


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with u.data, u.user and u.item")
    parser.add_argument("--user", type=int, default=196, help="whom to recommend films (default %(default)s)")
    parser.add_argument("--ratings", nargs="+", default=[], help="of a user who is not in the data, as film=rating")
    parser.add_argument("--top", type=int, default=10, help="how many (default %(default)s)")
    parser.add_argument("--units", type=int, default=10, help="largest number of units (default %(default)s)")
    parser.add_argument("--strength", type=float, default=3.5, help="of the penalty (default %(default)s)")
    return parser.parse_args(arguments)


def print_scores(ratings: np.ndarray, found: np.ndarray, users: np.ndarray) -> None:
    """Print the errors of predicted ratings, and of their order for each user."""
    print(f"test RMSE {np.sqrt(np.mean((found - ratings) ** 2)):.4f}", end="")
    print("".join(f", nDCG@{k} {grouped_ndcg(ratings, found, users, k):.4f}" for k in (1, 5)))


def liking_of(machine: mopn.FactorizationModel, names: list[str]) -> mopn.FactorizationModel:
    """Return the model of all ratings' log-odds, added up."""
    # Output c is for ratings of at most c, so features that decrease the outputs increase the rating.
    liking = mopn.FactorizationModel.from_outputs(machine, -np.ones(machine.weights.shape[1]))
    return replace(liking, feature_names=names)


def print_similar(
    machine: mopn.FactorizationModel,
    film: int,
    groups: dict[str, Any],
    background: sparse.csr_array,
    names: list[str],
    top: int,
) -> None:
    """Print the films that the same users like or dislike as a film, by its feature."""
    print(f"\nfilms that the same users like or dislike as {names[film]}: cosine of their interactions with users")
    counts = np.asarray((background != 0).sum(axis=0)).ravel()
    for item in similar_features(machine, film, groups["film"], top, groups["user"], counts=counts):
        print(f"  {item.cosine:+.3f}  {names[item.feature]}")


def print_interactions(model: mopn.FactorizationModel, groups: dict[str, Any], top: int) -> None:
    """Print the strongest interactions that can occur: no row has two users, two films, or two age groups."""
    print("\nstrongest interactions, all ratings' log-odds added up")
    field = {feature: name for name, features in groups.items() for feature in features if name != "genre"}
    possible = (
        interaction
        for interaction in mopn.explain.strongest_interactions(model, 100 * top)
        if len({field.get(feature, feature) for feature in interaction.features}) == 2
    )
    for interaction in islice(possible, top):
        print(f"  {interaction.weight:+.3f}  {' x '.join(interaction.names)}")


def main(arguments: list[str] | None = None) -> None:
    """Run the example."""
    args = parse(arguments)
    data = MovieLens(args.data)
    users, films, ratings = data.ratings.T
    new = given_ratings(args.ratings, data)
    if (args.user in data.ages) == bool(new):
        raise SystemExit(
            f"user {args.user} is in the data; leave --ratings out, or give another number"
            if new
            else f"user {args.user} is not in the data; give some ratings as well, such as --ratings 50=5 181=5 288=1"
        )
    train, test = train_test_split(np.arange(len(ratings)), test_size=0.25, random_state=0)
    table = data.table(users, films)
    model = make_model(args.units, args.strength).fit(table[train], ratings[train])

    print(f"{len(train)} ratings to learn from, {len(test)} to test on, {len(model['machine'].basis_)} units")
    print_scores(ratings[test], model.predict(table[test]), users[test])

    rated = set(new) or set(films[users == args.user].tolist())
    unseen = np.array([film for film in sorted(data.titles) if film not in rated])
    columns = model["columns"]
    machine = model["machine"].model_
    groups = fields(model)
    names = feature_names(model, data)
    rows = columns.transform(data.table(np.full(len(unseen), args.user), unseen))
    background = columns.transform(table[train])
    if new:
        known = columns.transform(data.table(np.full(len(new), args.user), np.array(list(new))))
        machine = model["machine"].fold_in(known, list(new.values()))
        rows = with_column(rows, 1.0)
        background = with_column(background, 0.0)
        groups["user"] = [*groups["user"], len(names)]
        names.append(f"user {args.user}")
    of_films = [*groups["film"], *groups["genre"]]
    of_user = [*groups["user"], *groups["age"], *groups["occupation"]]
    order, expected = Ranker(machine, only(rows, of_films)).rank(only(rows[:1], of_user), len(unseen))
    liked = machine.predict_proba(rows)[:, -1]
    print(f"\nfor user {args.user}, who has rated {len(rated)} films: expected rating, probability of the highest one")
    for place, level in zip(order[: args.top], expected, strict=False):
        print(f"  {level:.2f}  {liked[place]:4.0%}  {data.titles[unseen[place]]}")

    liking = liking_of(machine, names)
    print(f"\nwhy {data.titles[unseen[order[0]]]}: what adds to the mean of all ratings' log-odds, added up")
    for contribution in mopn.explain.contributions(liking, rows[order[:1]], background, groups)[: args.top]:
        print(f"  {contribution.value:+.3f}  {' x '.join(contribution.fields)}")
    trained = columns.transformers_[0][1].categories_[1].tolist()
    place = next(trained.index(film) for film in unseen[order].tolist() if film in trained)
    print_similar(machine, groups["film"][place], groups, background, names, args.top)
    print_interactions(liking, groups, args.top)


if __name__ == "__main__":
    main()

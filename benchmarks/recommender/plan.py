"""The plan of the recommender studies: cells, their grids of strengths, and the columns of their rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.recommender.models import MODELS

_ORDINAL, _ONE_OUTPUT = MODELS[:3], ("A2-linear", "H2-linear")
_KERNELS = ("A2-augment", "A2-linear", "H2-augment", "H2-linear", "all-subsets")
# Strengths by set and by the beginning of a model's name.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "ml-100k": {
        "ordinal-l1/linf": (5.0, 6.0, 7.0, 8.5),
        "ordinal-l1/l2": (3.0, 3.5, 4.2),
        "ordinal-l1": (2.0, 2.5, 3.0),
        "": (6.0, 9.0, 12.0, 16.0, 22.0),
    },
    "ml-1m": {
        "ordinal-l1/linf": (8.5, 10.0, 12.0),
        "ordinal-l1/l2": (4.5, 5.5),
        "ordinal-l1": (3.0, 4.0),
        "": (8.0, 11.0, 15.0, 20.0, 27.0),
    },
    "lastfm": {"": (10.0, 30.0, 60.0, 100.0, 200.0)},
    "lastfm-users": {"": (10.0, 20.0, 40.0, 80.0)},
}


@dataclass(frozen=True)
class Plan:
    """Cells of a study on a set: all of these models, numbers of units and splits.

    With ``rows``, this number of rows, drawn at random, stands for all.
    """

    models: tuple[str, ...]
    ks: tuple[int, ...]
    splits: int = 1
    rows: int | None = None


STUDIES = ("ranking", "kernels")
# In the order in which they run: what takes long comes last. A cell of ordinal models takes a minute on MovieLens 100K
# and minutes on 1M.
PLANS: dict[tuple[str, str], Plan] = {
    ("ranking", "ml-100k"): Plan(_ONE_OUTPUT + _ORDINAL, (5, 10, 20, 30, 50), splits=2),
    ("kernels", "lastfm"): Plan(_KERNELS, (5, 10, 20, 30, 50)),
    ("kernels", "lastfm-users"): Plan(_KERNELS, (5, 10, 20, 30, 50)),
    ("kernels", "ml-1m"): Plan(_KERNELS, (5, 10, 30)),
    ("ranking", "ml-1m"): Plan(_ONE_OUTPUT + _ORDINAL[::-1], (10, 30)),
}
QUICK_ROWS = 10_000


@dataclass(frozen=True)
class Cell:
    """A model with k units on a split of a set."""

    study: str
    set: str
    split: int
    model: str
    k: int
    rows: int | None = None

    @property
    def grid(self) -> tuple[float, ...]:
        """The strengths to choose from."""
        grids = GRIDS[self.set]
        return next(grid for start, grid in grids.items() if self.model.startswith(start))

    @property
    def key(self) -> dict[str, Any]:
        """The entries that tell its row from others."""
        names = {name: getattr(self, name) for name in ("study", "set", "split", "model", "k")}
        return names | {"rows": self.rows or "", "grid": _joined(self.grid)}


def _joined(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)


KEY = ["study", "set", "split", "model", "k", "rows", "grid"]
MEASURES = ["rmse", "ndcg1", "ndcg5", "linear1", "linear5"]
COLUMNS = [*KEY, "fitted", "strength", "validation", *MEASURES, "units", "seconds", "curve"]


def cells(studies: Sequence[str], sets: Sequence[str], quick: bool) -> list[Cell]:
    """Return the cells of some studies on some sets."""
    found: list[Cell] = []
    for (study, name), plan in PLANS.items():
        if study in studies and name in sets:
            plan = replace(plan, ks=(5, 10), splits=1, rows=QUICK_ROWS) if quick else plan
            found += _cells(study, name, plan)
    return found


def _cells(study: str, name: str, plan: Plan) -> Iterator[Cell]:
    """Yield the cells by number of units, so that a run that is stopped has whole comparisons."""
    for index in range(plan.splits):
        for k in plan.ks:
            yield from (Cell(study, name, index, model, k, plan.rows) for model in plan.models)

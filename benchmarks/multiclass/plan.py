"""The plan of the multi-class benchmark: the sets, their splits, and the grids of strengths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from benchmarks.multiclass.fits import Task
from benchmarks.multiclass.paper_tables import NORMS, Cell

# Strengths multiply the norm in an objective whose losses are summed. The grids were placed on split 0 so that the best
# validation accuracy lies inside or on a plateau; the grids of satimage's squared hinge and of letter are by analogy.
# l1/linf charges a row once for all its entries, so it bears more.
_STRENGTHS = {
    ("vowel", "logistic"): {"l1": (0.02, 0.06, 0.2, 0.6), "l1/l2": (0.03, 0.1, 0.3, 1), "l1/linf": (0.03, 0.1, 0.3, 1)},
    ("vowel", "squared-hinge"): {"l1": (0.1, 0.3, 1, 3), "l1/l2": (0.1, 0.3, 1, 3), "l1/linf": (0.3, 1, 3, 10)},
    ("segment", "logistic"): dict.fromkeys(NORMS, (0.05, 0.2, 0.8)),
    ("segment", "squared-hinge"): dict.fromkeys(NORMS, (0.3, 1, 4)),
    ("satimage", "logistic"): {"l1": (0.5, 1.5, 4), "l1/l2": (0.5, 1.5, 4), "l1/linf": (2, 6, 15)},
    ("satimage", "squared-hinge"): {"l1": (1.5, 5, 15), "l1/l2": (1.5, 5, 15), "l1/linf": (5, 15, 50)},
    ("letter", "logistic"): {"l1": (0.1, 0.3, 1), "l1/l2": (0.1, 0.3, 1), "l1/linf": (0.3, 1, 3)},
    ("letter", "squared-hinge"): {"l1": (0.3, 1, 3), "l1/l2": (0.3, 1, 3), "l1/linf": (1, 3, 10)},
}
_REST_STRENGTHS = {
    "vowel": (0.03, 0.1, 0.3, 1),
    "segment": (0.03, 0.1, 0.3),
    "satimage": (0.03, 0.1, 0.3),
    "letter": (0.1, 0.3, 1),
}
_SQUARED_L2_STRENGTHS = {
    "vowel": (0.01, 0.03, 0.1, 0.3),
    "segment": (0.1, 0.5, 2),
    "satimage": (0.1, 0.5, 2),
    "letter": (0.03, 0.1, 0.3),
}
# scikit-learn's C, which multiplies the loss.
_C = {"linear": (1, 10, 100, 1000, 10000), "svm": (0.01, 0.1, 1, 10, 100), "nystrom": (1, 10, 100, 1000)}


@dataclass(frozen=True)
class SetPlan:
    """Sizes of the runs on one set: random splits, and units by method.

    ``full_units`` are the units of full refits, which need fewer, a fit each; ``rest_units`` the rounds of each class's
    network of one-vs-rest; ``landmarks`` the numbers of landmarks of the Nyström method.
    """

    splits: int
    max_units: int = 50
    full_units: tuple[int, ...] = (10, 20, 30)
    random_units: int = 50
    rest_units: int = 20
    landmarks: tuple[int, ...] = (5, 10, 15, 20, 30, 40, 50)


SETS = {
    "segment": SetPlan(10),
    "vowel": SetPlan(10),
    "satimage": SetPlan(5),
    "letter": SetPlan(1, 150, (50, 100, 150), 150, 20, (25, 50, 75, 100, 125, 150)),
}


# The sets of a run without ``--sets``; letter takes an hour a split.
DEFAULT_SETS, QUICK_SETS = ("segment", "vowel", "satimage"), ("segment", "vowel")
# A quick run has one loss and half of each grid, and ends within two minutes on two cores.
QUICK_SPLITS = 2
QUICK_UNITS = 25
# The rows of the tables and the curves of the figure, the baselines first.
CELLS = (
    *(Cell(method) for method in ("linear", "svm", "nystrom")),
    Cell("one-vs-rest", "l1", "binary-logistic", "output"),
    *(Cell("projected-gradient", norm, "logistic", "full") for norm in (*NORMS, "squared-l2")),
    *(
        Cell("conditional-gradient", norm, loss, refit)
        for loss, refit, norm in product(("logistic", "squared-hinge"), ("output", "full"), NORMS)
    ),
)


def tasks(sets: Sequence[str], *, quick: bool = False) -> Iterator[Task]:
    """Yield all fits on some sets, splits outermost, so that all cells of the tables fill evenly."""
    splits = {name: QUICK_SPLITS if quick else SETS[name].splits for name in sets}
    cells = [cell for cell in CELLS if not quick or cell.loss != "squared-hinge"]
    for split in range(max(splits.values(), default=0)):
        for name, cell in product((name for name in sets if split < splits[name]), cells):
            for max_units, strength in product(_sizes(name, cell, quick), _grid(name, cell, quick)):
                yield Task(name, split, *cell, strength=float(strength), max_units=max_units)


def _sizes(name: str, cell: Cell, quick: bool) -> Sequence[int]:
    """Numbers of units to fit; output-layer refits are judged at every number up to it as well."""
    sizes = SETS[name]
    planned: Sequence[int] = {
        "linear": (0,),
        "svm": (0,),
        "nystrom": sizes.landmarks,
        "one-vs-rest": (sizes.rest_units,),
        "projected-gradient": (sizes.random_units,),
        "conditional-gradient": sizes.full_units if cell.refit == "full" else (sizes.max_units,),
    }[cell.method]
    return sorted({min(count, QUICK_UNITS) for count in planned}) if quick else planned


def _grid(name: str, cell: Cell, quick: bool) -> Sequence[float]:
    if cell.method in _C:
        return _C[cell.method]
    if cell.method == "one-vs-rest":
        grid = _REST_STRENGTHS[name]
    elif cell.norm == "squared-l2":
        grid = _SQUARED_L2_STRENGTHS[name]
    else:
        grid = _STRENGTHS[name, cell.loss][cell.norm]
    return grid[1:3] if quick else grid

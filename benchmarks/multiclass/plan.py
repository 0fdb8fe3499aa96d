"""What the multi-class benchmark fits: the sets, their splits, and the grids of strengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.multiclass.fits import METHODS, Task
from benchmarks.multiclass.paper_tables import NORMS, Cell

LOSSES = ("logistic", "squared-hinge")
REFITS = ("output", "full")

# Strengths multiply the norm in an objective whose losses are summed. The grids were placed on split 0 so that the best
# validation accuracy lies inside or on a plateau; those of satimage's squared hinge and of letter are by analogy.
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
    """Sizes of the runs on one set.

    Attributes
    ----------
    splits : int
        Number of random splits.
    max_units : int
        Units of conditional gradient with output-layer refits.
    full_units : tuple of int
        The same with full refits, which need fewer units; each number is a fit of its own.
    random_units : int
        Units of projected gradient.
    rest_units : int
        Rounds of each class's network of one-vs-rest.
    landmarks : tuple of int
        Of the Nyström method.
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


@dataclass(frozen=True)
class Plan:
    """A selection of all there is to fit; None leaves a field to the set's plan, ``quick`` halves the grids."""

    sets: Sequence[str] = ("segment", "vowel", "satimage")
    methods: Sequence[str] = tuple(METHODS)
    norms: Sequence[str] = NORMS
    losses: Sequence[str] = LOSSES
    refits: Sequence[str] = REFITS
    splits: int | None = None
    strengths: Sequence[float] | None = None
    max_units: int | None = None
    quick: bool = False

    def with_options(self, options: dict[str, Any]) -> Plan:
        """Return the plan with some fields changed."""
        return replace(self, **options)


def default_plan() -> Plan:
    """Return the plan of a run without options; letter takes an hour a split and must be asked for."""
    return Plan()


def quick_plan() -> Plan:
    """Return a plan that ends within two minutes on two cores."""
    return Plan(sets=("segment", "vowel"), losses=("logistic",), splits=2, max_units=25, quick=True)


def tasks(plan: Plan) -> Iterator[Task]:
    """Yield all fits of a plan, splits outermost, so that all cells of the tables fill evenly."""
    splits = {name: SETS[name].splits if plan.splits is None else plan.splits for name in plan.sets}
    for split in range(max(splits.values(), default=0)):
        for name in plan.sets:
            if split < splits[name]:
                yield from _split_tasks(plan, name, split)


def _split_tasks(plan: Plan, name: str, split: int) -> Iterator[Task]:
    for cell in _cells(plan):
        for max_units in _sizes(plan, name, cell):
            for strength in _grid(plan, name, cell):
                yield Task(name, split, *cell, strength=float(strength), max_units=max_units)


def _cells(plan: Plan) -> Iterator[Cell]:
    """Yield the rows of the tables, the baselines first."""
    for method in ("linear", "svm", "nystrom"):
        if method in plan.methods:
            yield Cell(method)
    if "one-vs-rest" in plan.methods:
        yield Cell("one-vs-rest", "l1", "binary-logistic", "output")
    if "projected-gradient" in plan.methods:
        for norm in (*plan.norms, "squared-l2"):
            yield Cell("projected-gradient", norm, "logistic", "full")
    if "conditional-gradient" in plan.methods:
        for loss in plan.losses:
            for refit in plan.refits:
                for norm in plan.norms:
                    yield Cell("conditional-gradient", norm, loss, refit)


def _sizes(plan: Plan, name: str, cell: Cell) -> Sequence[int]:
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
    if plan.max_units is None:
        return planned
    return sorted({min(count, plan.max_units) for count in planned})


def _grid(plan: Plan, name: str, cell: Cell) -> Sequence[float]:
    if plan.strengths is not None and cell.method in ("conditional-gradient", "projected-gradient", "one-vs-rest"):
        return plan.strengths
    if cell.method in _C:
        return _C[cell.method]
    if cell.method == "one-vs-rest":
        grid = _REST_STRENGTHS[name]
    elif cell.norm == "squared-l2":
        grid = _SQUARED_L2_STRENGTHS[name]
    else:
        grid = _STRENGTHS[name, cell.loss][cell.norm]
    return grid[1:3] if plan.quick else grid

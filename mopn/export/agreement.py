"""Agreement of outputs and classes in integers with outputs and classes in floats, on some rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.export.comparison import Change, changed_classes, sizes_of


@dataclass(frozen=True)
class Agreement:
    """Agreement of integers with floats on some rows.

    Errors are in the units of the outputs. If a model predicts several numbers, spread and errors belong to the output
    whose bound is largest relative to its spread.

    Attributes
    ----------
    rows : int
    spread : float
        The difference of the largest and the smallest output of these rows, in floats.
    bound, error, relative : float
        A proven bound of the error of every output of these rows, the largest error found, and the latter relative to
        the spread.
    may_change, changed : int or None
        Rows whose class may change, by the bound, and whose class changes; None if the model predicts no classes.
    clamped : int
        Rows with a feature beyond the ranges from which the integers were made, which counts as the end of its range.
    inner_bound, inner_error : float
        ``bound`` and ``error`` of all other rows; 0 if there are none.
    """

    rows: int
    spread: float
    bound: float
    error: float
    relative: float
    may_change: int | None
    changed: int | None
    clamped: int
    inner_bound: float
    inner_error: float

    @property
    def change(self) -> Change:
        """The changes of the predictions: the share of changed classes, or the largest error relative to the spread."""
        if self.changed is None:
            return Change(self.rows, self.relative, None)
        return Change(self.rows, 0.0, self.changed)

    def __str__(self) -> str:
        text = (
            f"outputs of {self.rows:,} rows, with a spread of {self.spread:.2g}, are off by at most {self.bound:.2g} "
            f"(proven), {self.error:.2g} (found)"
        )
        if self.may_change is not None:
            text += f"; at most {self.may_change:,} of them change their class (proven), {self.changed:,} do (found)"
        if self.clamped:
            text += f"; {self.clamped:,} rows have features beyond the ranges, which are clamped"
        inside = self.rows - self.clamped
        if self.clamped and inside:
            text += f": without these at most {self.inner_bound:.2g} (proven), {self.inner_error:.2g} (found)"
        return text


NO_ROWS = Agreement(0, 0.0, 0.0, 0.0, 0.0, None, None, 0, 0.0, 0.0)


def agreement(model: Any, exact: np.ndarray, found: np.ndarray, bound: np.ndarray, clamped: np.ndarray) -> Agreement:
    """Return the agreement of outputs found (n, m) with exact ones, by bounds (n, m) of errors; ``clamped`` is (n,)."""
    errors = np.abs(found - exact)
    sizes = sizes_of(exact)
    may_change = changed = None
    shown = np.arange(exact.shape[1])
    if model.target in ("labels", "indicator"):
        may_change = int(np.sum(~_classes_stay(model, exact, bound)))
        changed = changed_classes(model, exact, found)
    else:
        shown = shown[[np.argmax(bound.max(axis=0) / sizes)]]
    inside = ~clamped[:, None]
    bound = bound[:, shown]
    errors = errors[:, shown]
    return Agreement(
        rows=len(exact),
        spread=float(np.ptp(exact[:, shown], axis=0).max()),
        relative=float((errors.max(axis=0) / sizes[shown]).max()),
        bound=float(bound.max()),
        error=float(errors.max()),
        may_change=may_change,
        changed=changed,
        clamped=int(clamped.sum()),
        inner_bound=float(bound.max(where=inside, initial=0.0)),
        inner_error=float(errors.max(where=inside, initial=0.0)),
    )


def _classes_stay(model: Any, outputs: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Return for each row whether its class, or all its indicators, provably stay."""
    if model.target == "indicator" or outputs.shape[1] == 1:
        return (np.abs(outputs) > bound).all(axis=1)
    best = outputs.argmax(axis=1)[:, None]
    least = np.take_along_axis(outputs - bound, best, axis=1)
    others = outputs + bound
    np.put_along_axis(others, best, -np.inf, axis=1)
    return (others < least).all(axis=1)

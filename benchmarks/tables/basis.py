"""Which functions of a column of numbers a network of tables should have: the encoder's, and others in their place.

The encoder's: the column itself, standardised, and 8 cosines of its rank, the k-th of size 1 / k. Beside it: fewer and
more cosines; other decays; no column itself, or one that is not cut off at 3 deviations; cosines of values in place of
ranks; cubic B-splines of scikit-learn with knots at quantiles or at equal distances, as many as cosines, each of
deviation 1, beside the column itself. All are interpolated between 33 knots, and the strength is the one that the
estimator chooses. Prints what each gains, with standard errors, and scores by set::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables.basis --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import SplineTransformer

from benchmarks.common.study import run
from benchmarks.tables.variants import Variant, fit_variants, gains_table, parser_of, scores_table
from mopn.estimators import TableClassifier, TableRegressor
from mopn.tables.columns import NumberColumns
from mopn.tables.encoding import TableEncoding
from mopn.tables.reading import Table

__all__ = ["BASES", "VARIANTS", "main"]

_SETS = ["glass", "ecoli", "bupa", "ionosphere", "vowel", "pima", "vehicle"]
_SETS += ["hitters", "diabetes", "births", "wage", "abalone"]

# From the values (n,) of a column, knots (q,) and the encoder's functions (q, 1 + K) there to knots and functions.
Basis = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _cosines_alone(x: np.ndarray, knots: np.ndarray, functions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return knots, functions[:, 1:]


def _to_the_end(x: np.ndarray, knots: np.ndarray, functions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return knots, np.column_stack([(knots - x.mean()) / x.std(), functions[:, 1:]])


def _of_values(x: np.ndarray, knots: np.ndarray, functions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    u, k = np.linspace(0.0, 1.0, len(knots)), np.arange(1, functions.shape[1])
    at = knots[0] + u * np.ptp(knots)
    itself = np.interp(at, knots, functions[:, 0])
    return at, np.column_stack([itself, np.sqrt(2.0) * np.cos(np.pi * u[:, None] * k) / k])


def _splines(x: np.ndarray, knots: np.ndarray, functions: np.ndarray, *, place: str) -> tuple[np.ndarray, np.ndarray]:
    at = knots if place == "quantile" else np.linspace(knots[0], knots[-1], len(knots))
    # Of degree 3 there are two more splines than knots, without the first one of them one more.
    count = max(functions.shape[1] - 2, 2)
    # Quantiles of the encoder's knots: those of x may be equal.
    splines = SplineTransformer(count, knots=place, include_bias=False).fit(knots[:, None])
    values, of_rows = splines.transform(at[:, None]), splines.transform(x[:, None])
    deviations = of_rows.std(axis=0)
    used = deviations > 0
    centred = (values - of_rows.mean(axis=0))[:, used] / deviations[used]
    return at, np.column_stack([np.interp(at, knots, functions[:, 0]), centred])


BASES: dict[str, Basis] = {
    "without the column itself": _cosines_alone,
    "the column itself to its ends": _to_the_end,
    "cosines of values": _of_values,
    "splines, knots at quantiles": partial(_splines, place="quantile"),
    "splines, knots at equal distances": partial(_splines, place="uniform"),
}


class _OfBasis:
    """Puts the functions of another basis in the place of the encoder's."""

    basis: Basis

    encoding_: TableEncoding

    def _learn(self, table: Table, weights: np.ndarray | None) -> None:
        super()._learn(table, weights)  # type: ignore[misc]
        encoding = self.encoding_
        parts = [
            self.basis(table.columns[j][~np.isnan(table.columns[j])], knots, functions)
            if functions.shape[1] > 1
            else (knots, functions)
            for j, (knots, functions) in zip(encoding.number_columns, encoding.numbers.parts, strict=True)
        ]
        numbers = NumberColumns.of([at for at, _ in parts], [values for _, values in parts], encoding.numbers.gaps)
        self.encoding_ = replace(encoding, numbers=numbers)


def _estimator(classes: bool, **parameters: Any) -> Any:
    return (TableClassifier if classes else TableRegressor)(**parameters)


def _with_basis(classes: bool, basis: Basis) -> Any:
    base = TableClassifier if classes else TableRegressor
    return type(base.__name__, (_OfBasis, base), {"basis": staticmethod(basis)})()


VARIANTS: dict[str, Variant] = {
    "8 cosines of ranks, decay 1": _estimator,
    **{f"{count} cosines": partial(_estimator, curves=count) for count in (0, 2, 4, 16)},
    **{f"decay {decay:g}": partial(_estimator, smoothness=decay) for decay in (0.0, 0.5, 2.0)},
    **{name: partial(_with_basis, basis=basis) for name, basis in BASES.items()},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(parser_of("basis", __doc__, _SETS), _program, arguments)


def _program(options: argparse.Namespace) -> int:
    fits, failures = fit_variants(options, VARIANTS)
    print(f"\n{gains_table(fits)}\n\n{scores_table(fits)}")
    return failures


if __name__ == "__main__":
    sys.exit(main())

"""How an estimator of tables should choose the strength of its penalty: the default, and other ways beside it.

The default takes, of five shares of the strength whose solution is zero, the one of least loss on held-out rows.
Beside it: the same choice among six shares; these six, fixed; 5-fold cross-validation along warm paths (``PathCV``) of
the five shares, and of the six; and the best of the six in hindsight, by the score and by the loss of the test, which
nobody can choose. Prints scores by set, and what each gains over the default, with standard errors::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables.strength --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import pandas as pd
from sklearn.pipeline import make_pipeline

from benchmarks.common.study import KEY, run
from benchmarks.tables.variants import Variant, fit_variants, gains_table, parser_of, scores_table
from mopn import Ratio
from mopn.estimators import (
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    PathCV,
    TableClassifier,
    TableEncoder,
    TableRegressor,
    strength_choice,
)

__all__ = ["SHARES", "VARIANTS", "main", "with_hindsight"]

_SETS = ["ecoli", "glass", "ionosphere", "arrhythmia", "waveform5000", "sonar", "heart", "german", "vowel", "vehicle"]
_SETS += ["hitters", "diabetes", "births", "abalone"]
SHARES = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
_NETWORKS = {True: MultiOutputPNClassifier, False: MultiOutputPNRegressor}
_HINDSIGHT = "best share in hindsight"


def _chosen(classes: bool, strength: Any = "auto") -> Any:
    return (TableClassifier if classes else TableRegressor)(strength=strength)


class _OfSix:
    """Chooses among all shares of the study."""

    def fit(self, X: Any, y: Any) -> Any:
        with patch.object(strength_choice, "_RATIOS", tuple(map(Ratio, SHARES))):
            return super().fit(X, y)  # type: ignore[misc]


def _chosen_of_six(classes: bool) -> Any:
    base = type(_chosen(classes))
    return type(base.__name__, (_OfSix, base), {})()


def _crossed(classes: bool, shares: Sequence[float]) -> Any:
    table = _chosen(classes)
    options = {name: getattr(table, name) for name in ("norm", "max_units", "tol")}
    network = _NETWORKS[classes](scale="data", **options)
    scoring = "neg_log_loss" if classes else "neg_mean_squared_error"
    search = PathCV(network, strengths=list(map(Ratio, shares)), max_units=table.max_units, cv=5, scoring=scoring)
    return make_pipeline(TableEncoder(), search)


VARIANTS: dict[str, Variant] = {
    "default": _chosen,
    "default, six shares": _chosen_of_six,
    **{f"{share:g}": partial(_chosen, strength=Ratio(share)) for share in SHARES},
    "5 folds, five shares": partial(_crossed, shares=SHARES[:-1]),
    "5 folds, six shares": partial(_crossed, shares=SHARES),
}


def with_hindsight(fits: pd.DataFrame) -> pd.DataFrame:
    """Return the fits with the best fixed share of every split: the best score, and the least loss."""
    fixed = fits[fits["method"].isin([f"{share:g}" for share in SHARES])]
    best = fixed.groupby(KEY[:2], sort=False).agg({"score": "max", "loss": "min", "fit": "sum"}).reset_index()
    return pd.concat([fits, best.assign(method=_HINDSIGHT)], ignore_index=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(parser_of("strength", __doc__, _SETS), _program, arguments)


def _program(options: argparse.Namespace) -> int:
    fits, failures = fit_variants(options, VARIANTS)
    fits = with_hindsight(fits)
    print(f"\n{gains_table(fits)}\n\n{scores_table(fits)}")
    return failures


if __name__ == "__main__":
    sys.exit(main())

"""The worth of a ridge to ``MultiOutputPNClassifier``: accuracy, log loss, units, CPU seconds and gap by its size.

Means over random splits, a quarter for the test. Rows are printed as they are ready::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.ablation.ridge --data FOLDER
"""

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.common.study import make_parser, run
from benchmarks.common.tables import load_table
from mopn.estimators import MultiOutputPNClassifier

_BUNDLED = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
SETS = (*_BUNDLED, "glass", "vowel", "segment", "satimage", "waveform5000", "usps")
_RIDGES = (0.0, 0.03, 0.1, 0.3)
_HEAD = "| set | ridge | accuracy | log loss | units | CPU s | gap |\n|---|---|---|---|---|---|---|"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = make_parser("ablation.ridge", __doc__ or "", sets=SETS)
    parser.add_argument("--splits", type=int, default=4, help="number of splits (default 4)")
    parser.add_argument("--norm", default="l1")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> int:
    print(_HEAD)
    for name in args.sets:
        X, y = _load(name, args.data)
        for ridge in _RIDGES:
            rows = [_row(X, y, ridge, args.norm, seed) for seed in range(args.splits)]
            accuracy, loss, units, seconds, gap = np.mean(rows, axis=0)
            print(
                f"| {name} | {ridge:g} | {100 * accuracy:.2f} | {loss:.4f} | {units:.0f} | {seconds:.2f} | {gap:.1e} |",
                flush=True,
            )
    return 0


def _load(name: str, data: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and the numbers of classes."""
    if name in _BUNDLED:
        return _BUNDLED[name](return_X_y=True)
    table = load_table(name, data)
    return np.asarray(table.X, dtype=np.float64), np.unique(table.y, return_inverse=True)[1]


def _row(X: np.ndarray, y: np.ndarray, ridge: float, norm: str, seed: int) -> tuple[float, ...]:
    """Return accuracy, log loss, units, CPU seconds and relative gap of a split."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    began = time.process_time()
    model = MultiOutputPNClassifier(norm=norm, ridge=ridge).fit(X_train, y_train)  # type: ignore[arg-type]
    seconds = time.process_time() - began
    loss = log_loss(y_test, model.predict_proba(X_test))
    return model.score(X_test, y_test), loss, len(model.basis_), seconds, model.relative_gap_


if __name__ == "__main__":
    sys.exit(main())

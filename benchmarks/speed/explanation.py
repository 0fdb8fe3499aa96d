"""What exact SHAP values cost, in predictions of the same rows by the same model.

Random models of the sizes of real fits, with one output and with several. The background, 100 rows, enters by its mean
and covariance; to compute these is part of the time. A time is the best of several::

    OMP_NUM_THREADS=1 python -m benchmarks.speed.explanation
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

import mopn
from benchmarks.common.measures import seconds_of
from benchmarks.common.printing import Table
from benchmarks.common.study import make_parser, run
from mopn.explain import shap_values

# Rows, features, units, outputs.
_SHAPES = {"digits": (2_000, 64, 20, 10), "letter": (5_000, 16, 150, 26), "usps": (1_000, 256, 50, 10)}
_BACKGROUND = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("speed.explanation", __doc__, data=False)
    parser.add_argument("--repeats", type=int, default=9, help="runs a time, the best of them is taken (default 9)")
    parser.add_argument("--rows", type=int, help="explained rows (default: by the shape)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    table = Table(
        "sizes of:9s, kernel:12s, outputs:d, prediction:.2f ms, SHAP values:.2f ms, in predictions:.1f, an output:.1f"
    )
    for name, (n, d, k, most) in _SHAPES.items():
        for kernel, dummies in (("homogeneous", 1), ("anova", 2)):
            basis, weights = rng.standard_normal((k, dummies + d)), rng.standard_normal((k, most))
            X, background = rng.standard_normal((args.rows or n, d)), rng.standard_normal((_BACKGROUND, d))
            for m in (1, most):
                model = mopn.Model(basis, weights[:, :m], kernel=kernel, augment=True)
                prediction = min(seconds_of(lambda model=model, X=X: model.outputs(X), args.repeats))
                values = min(seconds_of(lambda model=model, X=X, b=background: shap_values(model, X, b), args.repeats))
                ratio = values / prediction
                table.row(name, kernel, m, 1e3 * prediction, 1e3 * values, ratio, ratio / m)


if __name__ == "__main__":
    sys.exit(main())

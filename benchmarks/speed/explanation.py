"""What exact SHAP values cost, in predictions of the same rows by the same model.

Random models of the sizes of real fits, with one output and with several. The background, 100 rows, enters by its mean
and covariance; to compute these is part of the time. A time is the best of several::

    OMP_NUM_THREADS=1 python -m benchmarks.speed.explanation
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

import mopn
from benchmarks.common.study import make_parser, run

__all__ = ["main"]

# Rows, features, units, outputs.
_SHAPES = {"digits": (2_000, 64, 20, 10), "letter": (5_000, 16, 150, 26), "usps": (1_000, 256, 50, 10)}
_BACKGROUND = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("speed.explanation", __doc__, data=False)
    parser.add_argument("--repeats", type=int, default=9, help="of which the best is taken (default 9)")
    parser.add_argument("--rows", type=int, help="explained rows (default: by the shape)")
    return parser


def _program(args: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    print("sizes of  kernel         outputs   prediction   SHAP values   in predictions   and for each output")
    for name, (n, d, k, most) in _SHAPES.items():
        for kernel, dummies in (("homogeneous", 1), ("anova", 2)):
            basis, weights = rng.standard_normal((k, dummies + d)), rng.standard_normal((k, most))
            X, background = rng.standard_normal((args.rows or n, d)), rng.standard_normal((_BACKGROUND, d))
            for m in (1, most):
                model = mopn.Model(basis, weights[:, :m], kernel=kernel, augment=True)
                prediction = _best(lambda model=model, X=X: model.outputs(X), args.repeats)
                values = _best(
                    lambda model=model, X=X, b=background: mopn.explain.shap_values(model, X, b), args.repeats
                )
                print(
                    f"{name:10s}{kernel:12s}{m:10d}{1e3 * prediction:10.2f} ms{1e3 * values:11.2f} ms"
                    f"{values / prediction:17.1f}{values / prediction / m:22.1f}"
                )


def _best(call: Callable[[], object], repeats: int) -> float:
    """Return the least seconds of a call."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    sys.exit(main())

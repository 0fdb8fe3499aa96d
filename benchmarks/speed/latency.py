"""How long users wait: the import, the first fit of a process, and single fits of the paper's sets.

Every figure is the median over fresh processes, one BLAS thread each; the fits are timed inside, after the import. No
code is compiled at run time: there is no cold start beyond the import::

    python -m benchmarks.speed.latency --data FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import mopn
from benchmarks.common.datasets import load, split

_IMPORT = "import time; t = time.perf_counter(); import mopn; print(time.perf_counter() - t)"


def main() -> None:
    """Run the measurements, or, with --fit, one fit in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data", help="folder with the data sets (default ../shared/data)")
    parser.add_argument("--repeats", type=int, default=3, help="processes a figure (default 3)")
    parser.add_argument("--fit", nargs=3, metavar=("SET", "UNITS", "STRENGTH"), help="internal: one fit, as JSON")
    args = parser.parse_args()
    if args.fit:
        name, units, strength = args.fit
        print(json.dumps(fit(name, args.data, int(units), float(strength))))
        return
    seconds = [float(_python("-c", _IMPORT)) for _ in range(args.repeats)]
    print(f"import mopn{'':35s} {statistics.median(seconds):8.2f} s")
    for name, units, strength in (("digits", 20, 3.0), ("vowel", 50, 0.1), ("letter", 100, 0.5)):
        call = ("-m", "benchmarks.speed.latency", "--data", args.data, "--fit", name, str(units), str(strength))
        rows = [json.loads(_python(*call)) for _ in range(args.repeats)]
        median = statistics.median(row["seconds"] for row in rows)
        print(
            f"{name}: l1/l2, strength {strength}, {units} units, full refit {median:8.2f} s   "
            f"(first fit of its process; test accuracy {rows[0]['accuracy']:.4f}, {rows[0]['n_units']} units)"
        )


def fit(name: str, folder: str, units: int, strength: float) -> dict[str, float]:
    """Fit one set, and time the problem's construction and the solve."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True) if name == "digits" else load(name, folder)
    data = split(X, y, 0)
    began = time.perf_counter()
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=strength, augment=True)
    result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full", max_units=units))
    seconds = time.perf_counter() - began
    accuracy = (mopn.Model.from_result(problem, result).predict(data.X_test) == data.y_test).mean()
    return {"seconds": seconds, "accuracy": float(accuracy), "n_units": len(result.basis)}


def _python(*arguments: str) -> str:
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, *arguments], env=os.environ | threads, capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()

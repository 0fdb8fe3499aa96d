"""Seconds an epoch of coordinate descent, against other tools in the same run, and predictions a second.

``python -m benchmarks.epochs --data FOLDER`` reads the sets recsys, sparse_wide and dense from ``FOLDER/NAME.npz``: X
as ``train_dense``, or as the parts ``train_data``, ``train_indices``, ``train_indptr`` and ``train_shape`` of a CSR
matrix; ``y_train``; and ``P0_k{k}`` (k, d), where all tools start. Every figure is a process of its own; compilation is
timed apart. ``--against NAME COMMAND`` runs another tool alternately with mopn: the command, with {set}, {model} and
{epochs} filled in, prints a line of JSON with "seconds_per_epoch" and "objective".
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import mopn
from benchmarks.common.measures import seconds_of
from benchmarks.common.processes import last_json, run_program
from benchmarks.common.sources import Source, check, read
from benchmarks.common.study import make_parser, run

# Set, model, epochs. Strengths belong to 1/2 sum (p - y)^2 + a/2 ||w||^2 + a/2 ||P||^2.
CASES = [
    ("recsys", "fm2", 20),
    ("sparse_wide", "fm2", 5),
    ("sparse_wide", "fm3", 5),
    ("sparse_wide", "pn2", 5),
    ("sparse_wide", "pn3", 3),
    ("dense", "fm2", 20),
    ("dense", "fm3", 20),
    ("dense", "pn3", 20),
]
STRENGTHS = {"recsys": 10.0, "sparse_wide": 1.0, "dense": 1.0}
_PN_SEED = 7
_REPEATS = 10


Data = tuple[Any, np.ndarray, np.ndarray]


def _read(path: Path) -> Data:
    with np.load(path) as file:
        start = next(file[key] for key in file if key.startswith("P0_k"))
        if "train_dense" in file:
            return file["train_dense"], file["y_train"], start
        parts = file["train_data"], file["train_indices"], file["train_indptr"]
        return sparse.csr_matrix(parts, shape=tuple(file["train_shape"])), file["y_train"], start


def _source(file: str) -> Source:
    how = "a set of the user's own; `python -m benchmarks.epochs --help` describes it"
    return Source(".", {file: how}, lambda folder: _read(folder / file))


SETS = {name: _source(f"{name}.npz") for name in STRENGTHS}


def load(folder: str | Path, name: str) -> Data:
    """Return X (n, d), y (n,) and P0 (k, d) of a set."""
    return read(SETS, name, folder)


def make_problem(name: str, model: str, X: Any, y: np.ndarray, k: int) -> Any:
    """Return the problem of a case: a factorization machine or a polynomial network, and its degree."""
    degree = int(model[2:])
    if model.startswith("pn"):
        return mopn.LiftedProblem(X, y, degree=degree, rank=k, beta=1.0, augment=True)
    a = STRENGTHS[name]
    return mopn.FactorizationProblem(
        X, y, degree=degree, n_components=k, alpha=a, beta=a, penalty="frobenius", fit_linear=True
    )


def one(folder: str, name: str, model: str, epochs: int, threads: int) -> dict[str, Any]:
    """Run one case in this process: epochs, after one of another run that compiles or loads the machine code."""
    X, y, P0 = load(folder, name)
    k, d = P0.shape
    problem = make_problem(name, model, X, y, k)
    if model.startswith("pn"):
        rng = np.random.RandomState(_PN_SEED)
        start = {"U": 0.1 * rng.randn(problem.degree, k, d + 1)}
    else:
        start = {"P": P0[None]}
    solver = mopn.solvers.CoordinateDescent(n_threads=threads)
    # Other programs on the machine do not count, unless threads are to show what they gain.
    clock = time.process_time if threads == 1 else time.perf_counter
    began = clock()
    mopn.minimize(problem, solver, start=start, tol=0, max_iter=1)
    first = clock() - began
    ends: list[float] = []

    def watch(intermediate_result: mopn.Result) -> None:
        ends.append(clock())

    result = mopn.minimize(problem, solver, start=start, tol=0, max_iter=epochs, callback=watch)
    return {"seconds_per_epoch": float(np.median(np.diff(ends))), "objective": result.fun, "first_call": first}


def ours(folder: str, name: str, model: str, epochs: int, threads: int = 1, cache: str | None = None) -> dict[str, Any]:
    """Run one case in a process of its own; with a folder for the machine code to be cold about it."""
    environment = {"NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    return run_program("epochs", "--data", folder, "--one", name, model, epochs, threads, **environment)


def _median(runs: list[dict[str, Any]]) -> float:
    return statistics.median(run["seconds_per_epoch"] for run in runs)


def compare(folder: str, cases: Sequence[tuple[str, str, int]], others: list[list[str]], repeats: int) -> Iterator[str]:
    """Yield a line a case: seconds an epoch of mopn and of the other tools, and the ratios."""
    for name, model, epochs in cases:
        runs: dict[str, list[dict[str, Any]]] = {"mopn": []}
        for _ in range(repeats):
            runs["mopn"].append(ours(folder, name, model, epochs))
            for tool, template in others:
                command = template.format(set=name, model=model, epochs=epochs)
                done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    runs.setdefault(tool, []).append(last_json(done.stdout))
        base = _median(runs["mopn"])
        line = f"{name:12s} {model}  mopn {base:.4f} s  objective {runs['mopn'][0]['objective']:.4f}"
        for tool, theirs in runs.items():
            if tool != "mopn":
                line += f"  | {tool} {_median(theirs):.4f} s ({_median(theirs) / base:.2f}x)"
                line += f"  objective {theirs[0]['objective']:.4f}"
        yield line


def threads(folder: str, repeats: int) -> Iterator[str]:
    """Yield the seconds an epoch with one and two threads on one-hot fields, and whether the results are equal."""
    runs = [[ours(folder, "recsys", "fm2", 200, count) for count in (1, 2)] for _ in range(repeats)]
    single, double = (_median([pair[i] for pair in runs]) for i in (0, 1))
    equal = all(a["objective"] == b["objective"] for a, b in runs)
    ratio = f"{single / double:.2f}x"
    yield f"recsys fm2, one thread {single:.4f} s, two {double:.4f} s: {ratio}, equal objectives: {equal}"


def predictions(folder: str) -> Iterator[str]:
    """Yield rows a second of predictions of degree 2 on one-hot rows."""
    X, _, P0 = load(folder, "recsys")
    X = sparse.vstack([X] * 10, format="csr")
    model = mopn.FactorizationModel(factors=P0[None], degree=2, lams=np.ones(len(P0)), w=np.zeros(P0.shape[1]))
    model.predict(X)
    rate = X.shape[0] / statistics.median(seconds_of(lambda: model.predict(X), _REPEATS)) / 1e6
    yield f"predict, recsys x 10 ({X.shape[0]} rows), k = {len(P0)}: {rate:.1f} million rows a second, checks included"
    from mopn.core.factor_kernels import make_factor_kernel
    from mopn.data.designs import make_design

    design, kernel, lams = make_design(X), make_factor_kernel("anova", 2), np.ones(len(P0))
    kernel.outputs(design, P0, lams)
    rate = X.shape[0] / seconds_of(lambda: kernel.outputs(design, P0, lams))[0] / 1e6
    yield f"the kernels' sum alone, data in place: {rate:.1f} million rows a second"


def compilation(folder: str) -> Iterator[str]:
    """Yield the seconds of a first epoch in a new process: nothing compiled before, and everything."""
    for name, model in (("recsys", "fm2"), ("dense", "fm3"), ("dense", "pn3")):
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (ours(folder, name, model, 1, cache=cache)["first_call"] for _ in range(2))
        yield f"{name} {model}: first epoch {cold:.1f} s with cold caches, {warm:.2f} s with warm ones"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("epochs", __doc__)
    parser.add_argument("--against", nargs=2, action="append", default=[], metavar=("NAME", "COMMAND"))
    parser.add_argument("--repeats", type=int, default=3, help="processes a figure")
    parser.add_argument("--quick", action="store_true", help="one process a figure, small cases only")
    parser.add_argument("--one", nargs=4, metavar=("SET", "MODEL", "EPOCHS", "THREADS"), help="one case, as JSON")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Run the program."""
    if args.one:
        name, model, epochs, count = args.one
        print(json.dumps(one(args.data, name, model, int(epochs), int(count))))
        return
    cases = [case for case in CASES if case[:2] in (("recsys", "fm2"), ("dense", "fm2"))] if args.quick else CASES
    repeats = 1 if args.quick else args.repeats
    check(SETS, dict.fromkeys(name for name, _, _ in cases), args.data, "--quick")
    print("Seconds an epoch, one thread, median of processes; in brackets the other tool's time over mopn's")
    for line in compare(args.data, cases, args.against, repeats):
        print(line, flush=True)
    for part in (threads(args.data, repeats), predictions(args.data), compilation(args.data)):
        for line in part:
            print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""How long a pass over the rows takes, by threads and in files, and what a fit of data larger than memory needs.

``passes``: one evaluation of the objective and the gradients of both layers (d = 20 features, m = 10 outputs, k = 10
units, double precision) on rows in memory, beside the matrix products that it consists of, alone, on the same blocks,
and beside reading all rows once (their sum). The measured function is called in turn with the others, and the least of
several times counts.

``losses``: the same pass with every loss, and of wider rows of fewer outputs, in seconds of the processor.

``dask``: the same pass by workers of one thread each, processes on this machine, beside as many threads of this
process; and on a thousand rows, where all that it takes is overhead.

``cluster``: rows that two processes of a cluster make and hold, as a rehearsal of a larger one: the seconds until they
are held, of a pass, of a pass in the processors of both, and of a short fit (2 units, two minutes at most).

``files``: the fit of float32 rows from a file of their own, by blocks, beside the same in memory, each in a process of
its own; time, passes and the peak of memory, the interpreter and its libraries included.

``samples``: classifiers at their defaults, whose units are found on a sample of the rows, beside the same on all rows
from the start; accuracy is that on 20,000 other rows.

``starts``: classifiers of few units, each on 120,000 rows of another function, of the kinds of the study of growth,
found on a sample or on all rows: how many end in a poor minimum.

``sizes``: classifiers whose units are found on samples of several sizes, of 250,000 rows.

``limit``: rows that a script makes, block by block, as many gigabytes as asked for, in a process that may have no more
than so many gigabytes of address space (``ulimit -v``).

    python -m benchmarks.scaling --parts passes files
    python -m benchmarks.scaling --parts limit --gigabytes 20 --allowed 4
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.processes import run_program
from benchmarks.common.study import make_parser, run
from benchmarks.scaling import cluster, fits, minima, passes
from benchmarks.scaling.stages import KINDS
from mopn.losses.losses import LOSSES

_PARTS = ("passes", "losses", "dask", "cluster", "files", "samples", "starts", "sizes", "limit")

# Units of the fits of samples.
_UNITS = (5, 10, 30)
# Fits of few units, of how many functions each; accuracies below this are of poor minima, where squares allow 0.89.
_STARTS = [("squares", 5, "a sample"), ("squares", 5, "all rows"), ("squares", 10, "a sample")]
_STARTS += [("steps", 5, "a sample"), ("steps", 10, "a sample")]
_DRAWS, _POOR = 20, 0.85
# Rows for every parameter, in samples of several sizes.
_PER_PARAMETER = ("all", 25, 50, 100, 200)
# Features and outputs of the rows of losses.
_SHAPES = [(20, 10), (100, 5)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("scaling", __doc__, data=False)
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=["passes", "files"])
    parser.add_argument("--rows", nargs="+", type=int, help="default: 10^4 to 10^6 for passes, 10^7 for files")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--blocks", type=int, default=8, help="blocks of the rows of dask and cluster (default 8)")
    parser.add_argument("--gigabytes", type=float, default=20.0, help="size of the rows of limit (default 20)")
    parser.add_argument("--allowed", type=float, default=4.0, help="gigabytes that its process may have (default 4)")
    parser.add_argument("--folder", type=Path, help="where files is to write its rows (default: a temporary folder)")
    parser.add_argument("--cell", nargs="+", help="internal: one measurement, as JSON")
    return parser


def _program(args: argparse.Namespace) -> None:
    """Run the parts, or, with --cell, one measurement in this process."""
    if args.cell:
        print(json.dumps(_cell(*args.cell)))
        return
    if "passes" in args.parts:
        _passes(args.rows or [10_000, 100_000, 1_000_000], args.threads)
    if "losses" in args.parts:
        _losses(args.rows or [200_000])
    if "dask" in args.parts:
        _dask(args.rows or [1000, 1_000_000], args.threads, args.blocks)
    if "cluster" in args.parts:
        _cluster(args.rows or [10_000, 10_000_000], args.blocks)
    if "files" in args.parts:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            _files(args.rows or [10_000_000], args.threads, Path(folder))
    if "samples" in args.parts:
        _samples(args.rows or [100_000, 1_000_000])
    if "starts" in args.parts:
        _starts(args.rows or [120_000])
    if "sizes" in args.parts:
        _sizes()
    if "limit" in args.parts:
        _limit(args.gigabytes, args.allowed)


def _cell(part: str, *arguments: str) -> dict[str, Any]:
    if part == "passes":
        return passes.measure(int(arguments[0]))
    if part == "losses":
        return passes.of_loss(arguments[0], *map(int, arguments[1:]))
    if part == "dask":
        return passes.on_workers(*map(int, arguments))
    if part == "cluster":
        return cluster.rehearse(*map(int, arguments))
    if part == "samples":
        return fits.sampled(int(arguments[0]), int(arguments[1]), arguments[2])
    if part == "starts":
        return minima.drawn(arguments[0], int(arguments[1]), int(arguments[2]), arguments[3], int(arguments[4]))
    if part == "sizes":
        return minima.of_sizes(arguments[0], int(arguments[1]), arguments[2])
    if part == "limit":
        return fits.within_limit(*map(float, arguments))
    return fits.measure(part, Path(arguments[0]))


def _passes(sizes: Sequence[int], threads: Sequence[int]) -> None:
    print("      rows  threads       pass   products   reading  pass/products  speed-up")
    for n in sizes:
        first = None
        for count in threads:
            row = run_program("scaling", "--cell", "passes", n, OMP_NUM_THREADS=str(count))
            first = first or row["pass"]
            print(
                f"{n:10d} {count:8d} {1e3 * row['pass']:7.2f} ms {1e3 * row['products']:7.2f} ms "
                f"{1e3 * row['reading']:6.2f} ms {row['pass'] / row['products']:14.2f} {first / row['pass']:9.2f}",
                flush=True,
            )


def _losses(sizes: Sequence[int]) -> None:
    print("\n      rows  features  outputs  loss                    pass   products  pass/products")
    for n, (d, m), name in itertools.product(sizes, _SHAPES, LOSSES):
        row = run_program("scaling", "--cell", "losses", name, n, d, m)
        print(
            f"{n:10d} {d:9d} {m:8d}  {name:20s} {1e3 * row['pass']:5.1f} ms {1e3 * row['products']:7.1f} ms "
            f"{row['pass'] / row['products']:14.2f}",
            flush=True,
        )


def _dask(sizes: Sequence[int], workers: Sequence[int], blocks: int) -> None:
    print("\n      rows  blocks  workers    a pass   as many threads  threads/workers")
    for n in sizes:
        for count in workers:
            row = run_program("scaling", "--cell", "dask", n, count, blocks, OMP_NUM_THREADS=str(count))
            print(
                f"{n:10d} {blocks:7d} {count:8d} {1e3 * row['workers']:7.1f} ms {1e3 * row['threads']:13.1f} ms "
                f"{row['threads'] / row['workers']:16.2f}",
                flush=True,
            )


def _cluster(sizes: Sequence[int], blocks: int) -> None:
    print("\n      rows  blocks    load    a pass  processors  million rows/s      fit  passes  peak of a worker")
    for n in sizes:
        row = run_program("scaling", "--cell", "cluster", n, 2, blocks)
        print(
            f"{n:10d} {blocks:7d} {row['load']:5.1f} s {row['pass']:7.3f} s {row['processors']:9.2f} s "
            f"{n / row['pass'] / 1e6:15.2f} {row['fit']:6.1f} s {row['passes']:7.0f} {row['peak'] / 1e6:14.0f} MB",
            flush=True,
        )


def _files(sizes: Sequence[int], threads: Sequence[int], folder: Path) -> None:
    print("\n      rows  form     threads       time  passes  peak memory  objective")
    for n in sizes:
        path = fits.write(folder / f"{n}.npy", n)
        for count in threads:
            for form in ("memory", "blocks"):
                row = run_program("scaling", "--cell", form, path, OMP_NUM_THREADS=str(count))
                print(
                    f"{n:10d}  {form:7s} {count:8d} {row['seconds']:8.1f} s {row['passes']:7d} "
                    f"{row['peak'] / 1e6:9.0f} MB  {row['fun']:.8g}",
                    flush=True,
                )


def _samples(sizes: Sequence[int]) -> None:
    print("\n      rows  units  first     processor     clock    objective  accuracy")
    for n, units, first in itertools.product(sizes, _UNITS, ("all rows", "a sample")):
        row = run_program("scaling", "--cell", "samples", n, units, first)
        print(
            f"{n:10d} {units:6d}  {first:8s} {row['seconds']:8.1f} s {row['clock']:7.1f} s  {row['fun']:.8g}  "
            f"{row['accuracy']:8.4f}",
            flush=True,
        )


def _starts(sizes: Sequence[int]) -> None:
    print("\nkind         rows  units  first     poor  objective a row  accuracy: mean  least  processor a fit")
    for n, (kind, units, first) in itertools.product(sizes, _STARTS):
        row = run_program("scaling", "--cell", "starts", kind, n, units, first, _DRAWS)
        poor = f"{sum(accuracy < _POOR for accuracy in row['accuracy'])}/{_DRAWS}" if kind == "squares" else ""
        print(
            f"{kind:8s} {n:8d} {units:6d}  {first:8s} {poor:>5s} {np.mean(row['fun']):16.4f} "
            f"{np.mean(row['accuracy']):15.4f} {np.min(row['accuracy']):6.4f} {np.mean(row['seconds']):14.2f} s",
            flush=True,
        )


def _sizes() -> None:
    print("\nkind      units  rows for a parameter  processor  objective a row  accuracy")
    for kind, units, count in itertools.product(KINDS, (5, 10, 20), _PER_PARAMETER):
        row = run_program("scaling", "--cell", "sizes", kind, units, count)
        print(
            f"{kind:8s} {units:6d} {count!s:>21s} {row['seconds']:8.1f} s {row['fun']:16.5f} {row['accuracy']:9.4f}",
            flush=True,
        )


def _limit(gigabytes: float, allowed: float) -> None:
    row = run_program("scaling", "--cell", "limit", gigabytes, allowed)
    print(
        f"\n{gigabytes:g} GB of float32 rows ({row['rows']:.0f} x {row['features']:.0f}), {allowed:g} GB allowed: "
        f"{row['seconds']:.0f} s, {row['passes']:.0f} passes, peak {row['peak'] / 1e9:.2f} GB, "
        f"gap {row['gap']:.2e} of the objective, status {row['status']}"
    )


if __name__ == "__main__":
    sys.exit(main())

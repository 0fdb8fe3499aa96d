"""How long a pass over the rows takes, by threads and in files, and the needs of a fit of data larger than memory.

``passes``: one evaluation of the objective and the gradients of both layers (d = 20 features, m = 10 outputs, k = 10
units, double precision) on rows in memory, against its matrix products alone, on the same blocks, and against reading
all rows once (their sum). The measured function is called in turn with the others, and the least of several times
counts.

``losses``: the same pass with every loss, and of wider rows of fewer outputs, in seconds of the processor.

``dask``: the same pass by workers of one thread each, processes on this machine, against as many threads of this
process; and on a thousand rows, where all that it takes is overhead.

``files``: the fit of float32 rows from a file of their own, by blocks, against the same in memory, each in a process of
its own; time, passes and the peak of memory, the interpreter and its libraries included.

``samples``: classifiers at their defaults, which start on a sample of the rows and prove no gap of many, against the
same on all rows from the start, and with a proof; accuracy is measured on 20,000 other rows.

``limit``: rows that a script makes, block by block, a given number of gigabytes, in a process with limited address
space (``ulimit -v``).

    python -m benchmarks.scaling --parts passes files
    python -m benchmarks.scaling --parts limit --gigabytes 20 --allowed 4
"""

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.printing import Table
from benchmarks.common.processes import run_program
from benchmarks.common.study import make_parser, run
from benchmarks.scaling import fits, passes
from mopn.losses.losses import LOSSES

# Features and outputs of the rows of losses.
_SHAPES = [(20, 10), (100, 5)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("scaling", __doc__, data=False)
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=["passes", "files"])
    parser.add_argument("--rows", nargs="+", type=int, help="default: 10^4 to 10^6 for passes, 10^7 for files")
    parser.add_argument("--units", nargs="+", type=int, default=[5, 10, 30], help="of the fits of samples")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--blocks", type=int, default=8, help="blocks of the rows of dask (default 8)")
    parser.add_argument("--gigabytes", type=float, default=20.0, help="size of the rows of limit (default 20)")
    parser.add_argument("--allowed", type=float, default=4.0, help="gigabytes that its process may have (default 4)")
    parser.add_argument("--folder", type=Path, help="where files is to write its rows (default: a temporary folder)")
    parser.add_argument("--cell", nargs="+", help="internal: one measurement, as JSON")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Run the parts, or, with --cell, one measurement in this process."""
    if args.cell:
        print(json.dumps(_cell(*args.cell)))
        return
    for part in args.parts:
        _PARTS[part](args)
        print()


def _cell(part: str, *arguments: str) -> dict[str, Any]:
    if part == "passes":
        return passes.measure(int(arguments[0]))
    if part == "losses":
        return passes.of_loss(arguments[0], *map(int, arguments[1:]))
    if part == "dask":
        return passes.on_workers(*map(int, arguments))
    if part == "samples":
        return fits.sampled(int(arguments[0]), int(arguments[1]), arguments[2])
    if part == "limit":
        return fits.within_limit(*map(float, arguments))
    return fits.measure(part, Path(arguments[0]))


def _passes(args: argparse.Namespace) -> None:
    table = Table(
        "rows:8d, threads:d, pass:7.2f ms, products:7.2f ms, reading:6.2f ms, pass/products:.2f, speed-up:.2f"
    )
    for n in args.rows or [10_000, 100_000, 1_000_000]:
        first = None
        for count in args.threads:
            row = run_program("scaling", "--cell", "passes", n, OMP_NUM_THREADS=str(count))
            first = first or row["pass"]
            table.row(
                n,
                count,
                *(1e3 * row[x] for x in ("pass", "products", "reading")),
                row["pass"] / row["products"],
                first / row["pass"],
            )


def _losses(args: argparse.Namespace) -> None:
    table = Table("rows:8d, features:d, outputs:d, loss:20s, pass:7.1f ms, products:7.1f ms, pass/products:.2f")
    for n, (d, m), name in itertools.product(args.rows or [200_000], _SHAPES, LOSSES):
        row = run_program("scaling", "--cell", "losses", name, n, d, m)
        table.row(n, d, m, name, 1e3 * row["pass"], 1e3 * row["products"], row["pass"] / row["products"])


def _dask(args: argparse.Namespace) -> None:
    table = Table("rows:8d, blocks:d, workers:d, a pass:7.1f ms, as many threads:.1f ms, threads/workers:.2f")
    for n in args.rows or [1000, 1_000_000]:
        for count in args.threads:
            row = run_program("scaling", "--cell", "dask", n, count, args.blocks, OMP_NUM_THREADS=str(count))
            table.row(
                n, args.blocks, count, 1e3 * row["workers"], 1e3 * row["threads"], row["threads"] / row["workers"]
            )


def _files(args: argparse.Namespace) -> None:
    table = Table("rows:9d, form:7s, threads:d, time:8.1f s, passes:d, peak memory:.0f MB, objective:12.8g")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for n in args.rows or [10_000_000]:
            path = fits.write(Path(folder) / f"{n}.npy", n)
            for count in args.threads:
                for form in ("memory", "blocks"):
                    row = run_program("scaling", "--cell", form, path, OMP_NUM_THREADS=str(count))
                    table.row(n, form, count, row["seconds"], row["passes"], row["peak"] / 1e6, row["fun"])


def _samples(args: argparse.Namespace) -> None:
    table = Table("rows:8d, units:d, fit:8s, processor:.1f s, clock:7.1f s, objective:12.8g, gap:8.1e, accuracy:.4f")
    for n, units, variant in itertools.product(args.rows or [100_000, 1_000_000], args.units, fits.VARIANTS):
        row = run_program("scaling", "--cell", "samples", n, units, variant)
        table.row(n, units, variant, row["seconds"], row["clock"], row["fun"], row["gap"], row["accuracy"])


def _limit(args: argparse.Namespace) -> None:
    row = run_program("scaling", "--cell", "limit", args.gigabytes, args.allowed)
    print(
        f"{args.gigabytes:g} GB of float32 rows ({row['rows']:.0f} x {row['features']:.0f}), "
        f"{args.allowed:g} GB allowed: {row['seconds']:.0f} s, {row['passes']:.0f} passes, "
        f"peak {row['peak'] / 1e9:.2f} GB, gap {row['gap']:.2e} of the objective, status {row['status']}"
    )


_PARTS = {
    "passes": _passes, "losses": _losses, "dask": _dask, "files": _files, "samples": _samples, "limit": _limit
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())

"""The command line of a campaign; see :mod:`tests.fuzz`."""

import argparse
import contextlib
import itertools
import os
import sys

import tests.fuzz


def main(argv=None):
    """Run a campaign, or one call of it; return 1 if there are faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=tests.fuzz.__doc__.split("\n\n")[0])
    parser.add_argument("--calls", type=int, default=50_000, help="default 50000")
    parser.add_argument("--seed", type=int, default=0, help="of the campaign; default 0")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; default one per core")
    parser.add_argument("--only", metavar="CATEGORY", help="calls of one category")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="make one call of the campaign, with its traceback")
    args = parser.parse_args(argv)
    # Matrices are small, and two BLAS threads only wait for each other; read when NumPy is imported.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from tests.fuzz.campaign import CATEGORIES, drawn, numbers, report, run_all
    from tests.fuzz.checks import FAULTS, observe

    if args.case is not None:
        record, trial = drawn(args.seed, args.case)
        sys.stdout.write(f"{record.category}: {record.interface}, {record.change}\n")
        outcome = observe(trial)
        sys.stdout.write(f"{outcome.trace}{outcome.kind}: {outcome.detail}\n")
        return int(outcome.kind in FAULTS)
    if args.only is not None and args.only not in CATEGORIES:
        sys.exit(f"--only must be one of: {', '.join(CATEGORIES)}")
    records = []
    # After Ctrl-C the report is about the calls made.
    with contextlib.suppress(KeyboardInterrupt):
        for record in run_all(args.seed, itertools.islice(numbers(args.seed, args.only), args.calls), args.jobs):
            records.append(record)
            if sys.stderr.isatty():
                faults = sum(record.kind in FAULTS for record in records)
                sys.stderr.write(f"\r{len(records)} of {args.calls} calls, {faults} faults ")
    sys.stdout.write(report(records, args.seed) + "\n")
    return int(any(record.kind in FAULTS for record in records))


if __name__ == "__main__":
    sys.exit(main())

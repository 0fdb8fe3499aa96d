"""The two tiers of the suite: the quick one by default, all of it with ``--all``.

Both run a test with several parameters on a part of their product: in the quick one every value occurs, in the other
one every pair of values. The quick tier also leaves out cases that are marked ``slow``, the studies and the clusters,
and tries properties on fewer examples. The summary has the median and the longest case, in seconds of the processor,
and names quick cases that take too much; with ``--budget`` the run then fails.
"""

import gc
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

# The matrices of the tests are small, and two BLAS threads only wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from numba.core import event  # noqa: E402  (imports NumPy, which reads the variables)

# Seconds of processor that a quick case may take: alone, and where it starts a process or is the first to import a
# library. A busy machine inflates even these seconds: so no run fails for them unless it is asked to.
BUDGET, BUDGET_OF_STARTS = 0.5, 2.0
BEYOND_BUDGET = []
# Seconds of the processor that each case took.
SECONDS = {}
HERE = Path(__file__).parent

settings.register_profile("quick", max_examples=30, deadline=None, derandomize=True, database=None)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=40)


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run all tests, on more cases and examples")
    parser.addoption("--budget", action="store_true", help="fail where a quick case takes too much of the processor")


def pytest_configure(config):
    settings.load_profile("thorough" if config.getoption("all") else "quick")


def pytest_sessionstart(session):
    """Compile once, before workers start that would each do it."""
    if getattr(session.config.option, "tx", None) and not hasattr(session.config, "workerinput"):
        subprocess.run([sys.executable, "-m", "mopn.compile"], check=True, cwd=HERE.parent, stdout=sys.stderr)


def pytest_ignore_collect(collection_path, config):
    """Leave studies and clusters to ``--all``, but for the test that every study has its results."""
    slow = {"benchmarks", "cluster"} & {*collection_path.parts[len(HERE.parts) :]} and collection_path.suffix == ".py"
    return True if slow and collection_path.name != "test_programs.py" and not config.getoption("all") else None


def pytest_collection_modifyitems(config, items):
    if config.getoption("all"):
        kept = covering(items, 2)
    else:
        kept = covering([item for item in items if not item.get_closest_marker("slow")], 1)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish():
    """Spare the garbage collector the modules and the items, which live as long as the run."""
    gc.collect()
    gc.freeze()


def covering(items, size):
    """Cases, in a fixed random order, each with a combination of parameter values that none before it has."""
    kept, seen = set(), defaultdict(set)
    for item in sorted(items, key=lambda item: crc32(item.nodeid.encode())):
        given = item.callspec.params.items() if hasattr(item, "callspec") else []
        values = [(name, id(value)) for name, value in given]
        together = set(combinations(values, min(size, len(values))))
        if together - seen[item.function]:
            kept.add(item)
            seen[item.function] |= together
    return kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Note a case's time of the processor; fixtures are not counted, and neither is the compiler."""
    own, children, compiler, modules = *processor(), COMPILER.seconds, len(sys.modules)
    result = yield
    own, children = (after - before for after, before in zip(processor(), (own, children), strict=True))
    item.user_properties.append(("processor", own + children - (COMPILER.seconds - compiler)))
    item.user_properties.append(("budget", BUDGET_OF_STARTS if children or len(sys.modules) > modules else BUDGET))
    return result


def pytest_runtest_logreport(report):
    """Collect what cases took, of all processes in the one that prints the summary."""
    found = dict(report.user_properties)
    if report.when != "call" or "processor" not in found:
        return
    SECONDS[report.nodeid] = found["processor"]
    if found["processor"] > found["budget"]:
        BEYOND_BUDGET.append(f"{report.nodeid} ({found['processor']:.2f} s)")


def pytest_sessionfinish(session, exitstatus):
    quick = not session.config.getoption("all")
    if BEYOND_BUDGET and quick and session.config.getoption("budget") and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if SECONDS:
        longest = max(SECONDS, key=SECONDS.get)
        median = statistics.median(SECONDS.values())
        terminalreporter.write_line(f"tests: median {median:.3f} s, longest {SECONDS[longest]:.2f} s ({longest})")
    if BEYOND_BUDGET and not config.getoption("all"):
        cases = ", ".join(sorted(BEYOND_BUDGET))
        terminalreporter.write_line(f"Too much of the processor: make smaller, or mark slow: {cases}", yellow=True)


def processor():
    """Seconds of this process with its threads, and of its children that have ended."""
    times = os.times()
    return time.process_time(), times.children_user + times.children_system


class Compiler(event.Listener):
    """Seconds of processor that numba has compiled for."""

    def __init__(self):
        self.seconds, self.depth = 0.0, 0
        event.register("numba:compile", self)

    def on_start(self, _):
        if not self.depth:
            self.began = time.process_time()
        self.depth += 1

    def on_end(self, _):
        self.depth -= 1
        if not self.depth:
            self.seconds += time.process_time() - self.began


COMPILER = Compiler()

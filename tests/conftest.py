"""The two tiers of the suite: the quick one by default, all of it with ``--all``.

The quick one leaves out what is marked ``slow``, tries properties on fewer examples, and runs a test with several
parameters on a pairwise covering of their product: every two values of two parameters meet in a case. With the mark
``covering(1)`` every value occurs in a case.
"""

import gc
import os
from collections import defaultdict
from itertools import combinations
from zlib import crc32

from hypothesis import settings

# The matrices of the tests are small, and two BLAS threads only wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("quick", max_examples=30, deadline=None, derandomize=True, database=None)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=100)


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run all tests, on all cases and on more examples")


def pytest_configure(config):
    settings.load_profile("thorough" if config.getoption("all") else "quick")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("all"):
        kept = covering([item for item in items if not item.get_closest_marker("slow")])
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def pytest_collection_finish():
    """Spare the garbage collector the modules and the items, which live as long as the run."""
    gc.collect()
    gc.freeze()


def covering(items):
    """Cases, in a fixed random order, in which values of parameters meet that met in none before them."""
    kept, seen = set(), defaultdict(set)
    for item in sorted(items, key=lambda item: crc32(item.nodeid.encode())):
        parameters = (
            [(name, id(value)) for name, value in item.callspec.params.items()] if hasattr(item, "callspec") else []
        )
        mark = item.get_closest_marker("covering")
        strength = min(mark.args[0] if mark else 2, len(parameters))
        together = set(combinations(parameters, strength)) - seen[item.function]
        if together:
            kept.add(item)
            seen[item.function] |= together
    return kept

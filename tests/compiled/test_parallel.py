"""Fits with numba's threads in forked processes and in several Python threads; each in a process of its own."""

import os
import subprocess
import sys

import pytest

DATA = """
import os, threading
import numpy as np, mopn
from scipy import sparse

rng, n = np.random.default_rng(0), 20_000
fields = [sparse.csr_array((np.ones(n), (np.arange(n), rng.integers(0, k, n))), shape=(n, k)) for k in (60, 40)]
problem = mopn.FactorizationProblem(sparse.hstack(fields, format="csr"), rng.standard_normal(n), n_components=3)

def fit(n_threads):
    return mopn.minimize(problem, mopn.solvers.CoordinateDescent(n_threads=n_threads), tol=0, max_iter=3).x

one = fit(1)
"""

FORK = """
from mopn.compiled.jit import threads_usable

assert not THREADS_STARTED or np.array_equal(fit(2), one)
if (child := os.fork()) == 0:
    os._exit(0 if threads_usable() != THREADS_STARTED and np.array_equal(fit(2), one) else 1)
assert os.waitpid(child, 0)[1] == 0
"""

THREADS = """
equal = []
threads = [threading.Thread(target=lambda: equal.append(np.array_equal(fit(2), one))) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert equal == [True] * 4
"""


def run(code, **environment):
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"} | environment
    subprocess.run([sys.executable, "-c", DATA + code], check=True, env=environment)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.parametrize("started", [True, False])
def test_a_forked_process_has_threads_unless_its_parent_started_some(started):
    run(f"THREADS_STARTED = {started}" + FORK)


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["workqueue", "default"])
def test_fits_in_several_threads_of_a_process(layer):
    run(THREADS, NUMBA_THREADING_LAYER=layer)

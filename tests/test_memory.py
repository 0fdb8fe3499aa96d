"""Allocations that fail at any moment: a fit leaves the best point so far or a MemoryError, never a broken model."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("resource")

# Each of 12 forks limits its address space to another size, between the size before the fit and a little more than a
# whole fit takes.
SCRIPT = """
import ctypes, os, resource, signal, sys, traceback
import numpy as np
import mopn
from mopn.solvers import ConditionalGradient, CoordinateDescent, driver

SIZES = 12
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (40_000, 30))
y = np.digitize(X[:, 0] * X[:, 1] + 0.5 * X[:, 2], (-0.2, 0.2))

def kilobytes(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

def network(n=len(X)):
    problem = mopn.NetworkProblem(X[:n], y[:n], strength=5.0)
    return problem, mopn.minimize(problem, ConditionalGradient(refit=sys.argv[1], max_units=3), max_iter=1)

def factors(n=len(X)):
    problem = mopn.FactorizationProblem(X[:n], X[:n, 0] * X[:n, 1], n_components=4, fit_linear=True)
    return problem, mopn.minimize(problem, CoordinateDescent(), max_iter=2)

run = factors if sys.argv[1] == "factors" else network
np.ones((300, 300)) @ np.ones((300, 300))
np.dot(X.T, X[:, :3])  # OpenBLAS crashes where it cannot allocate its buffers for products of such shapes
run(200)  # all imports and compiled functions of the first use, and the memory of linear algebra, are there by now
libc = ctypes.CDLL(None)
if hasattr(libc, "mallopt"):
    libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD: the heap keeps freed memory
    libc.mallopt(-3, 1 << 17)  # M_MMAP_THRESHOLD: larger arrays are not in the heap
if hasattr(libc, "malloc_trim"):
    libc.malloc_trim(0)  # memory that was freed is given back, so that it must be allocated again
before = kilobytes("VmSize")

def extend_heap():
    # Where the buffers of an iterator of NumPy cannot be allocated, NumPy (2.4) raises the error without holding the
    # interpreter lock, and crashes; so the heap has some memory, and the larger arrays fail.
    [bytearray(1 << 16) for _ in range(64)]

def outcome(size):
    extend_heap()
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
    try:
        problem, result = run()
    except MemoryError:
        return 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert np.isfinite(result.fun), result
    again = problem.measure(problem.start(result))
    assert abs(again.fun - result.fun) <= 1e-9 * abs(result.fun), (again.fun, result.fun)
    if isinstance(problem, mopn.NetworkProblem):
        outputs = mopn.Model.from_result(problem, result).outputs(X)
        assert result.gap >= 0 and result.fun - result.gap <= again.fun
    else:
        outputs = mopn.FactorizationModel.from_result(problem, result).outputs(X)
    assert np.isfinite(outputs).all()
    return 2 if result.error is not None else 3

def in_a_fork(work):
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writer, str(work()).encode())
        except BaseException:
            os.write(writer, b"x" + traceback.format_exc().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    exitcode = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if exitcode == -signal.SIGSEGV:
        return 0  # NumPy's products, and OpenBLAS, may crash where they cannot allocate their buffers: no model is left
    assert exitcode == 0
    assert text and not text.startswith("x"), text
    return int(text)

def whole():
    extend_heap()
    run()
    return kilobytes("VmPeak")

after = in_a_fork(whole)
assert after > before
# The peak differs between runs: freed memory is reused or not.
sizes = (before + (after - before) * np.linspace(0.0, 1.25, SIZES)) * 1024
print(*(in_a_fork(lambda: outcome(int(size))) for size in sizes))
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the sizes of a process are read from /proc")
@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="older NumPy may crash where memory is short")
@pytest.mark.parametrize("fit", ["none", "output", "full", "factors"])
def test_an_allocation_that_fails_leaves_the_best_point_or_an_error(fit):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT, fit], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = done.stdout.split()
    assert len(outcomes) == 12
    # The least size is too small, the largest suffices.
    assert outcomes[0] == "1"
    assert outcomes[-1] == "3"
    assert outcomes.count("0") <= 1

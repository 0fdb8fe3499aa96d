"""Compiled functions with a cache, without one, with one that is damaged; and with threads in several processes."""

import contextlib
import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest

from mopn.compiled import jit as jitted

ROOT = Path(__file__).parents[2]
SOURCE = "from mopn.compiled.jit import jit\n\n\n@jit()\ndef double(x):\n    return 2 * x\n"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write a module, import it anew, and return it: its functions know only their cache."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(source=SOURCE):
        path = tmp_path / "functions.py"
        # Older versions of numba take a file that was written anew for another.
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
        spec = importlib.util.spec_from_file_location("functions", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "functions", module)
        spec.loader.exec_module(module)
        return module

    return load


def from_cache(function):
    """Whether the machine code was read, not compiled."""
    (count,) = [*function.stats.cache_hits.values(), *function.stats.cache_misses.values()]
    assert count == 1
    return bool(function.stats.cache_hits)


def test_compiling_is_told_and_reading_is_not(load, caplog):
    for messages in (1, 0):
        jitted._announce.cache_clear()
        caplog.clear()
        load().double(3)
        load().double(3)
        assert ["once; later" in record.getMessage() for record in caplog.records] == [True] * messages


class Gone:
    """Cannot be unpickled, like a class whose module has moved."""

    def __reduce__(self):
        return importlib.import_module, ("a_module_that_has_moved",)


def cut(content):
    return content[: len(content) // 2]


def names_what_is_gone(content):
    version = pickle.dumps(numba.__version__)
    return version + pickle.dumps(Gone())


@pytest.mark.parametrize("damaged", [cut, lambda content: b"", names_what_is_gone])
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache_is_replaced(load, tmp_path, damaged, suffix):
    load().double(3)
    (file,) = (tmp_path / "__pycache__").glob(f"*{suffix}")
    file.write_bytes(damaged(file.read_bytes()))
    for hit in (False, True):
        module = load()
        assert module.double(3) == 6
        assert from_cache(module.double) == hit


def test_a_class_may_move_to_another_module(load, tmp_path):
    """The types of arguments in the cache name its old place."""
    shapes = "from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n    a: int\n    b: int\n"
    source = "from {} import Pair\nfrom mopn.compiled.jit import jit\n\n\n@jit()\ndef total(x):\n    return x.a + x.b\n"
    for place in ("old_place", "new_place"):
        (tmp_path / f"{place}.py").write_text(shapes)
        module = load(source.format(place))
        assert module.total(module.Pair(2, 3)) == 5
        (tmp_path / f"{place}.py").unlink()
        del sys.modules[place]


def test_where_nothing_can_be_saved_functions_are_compiled(load, tmp_path):
    module = load()
    shutil.rmtree(tmp_path / "__pycache__")
    (tmp_path / "__pycache__").touch()
    assert module.double(3) == 6
    assert not from_cache(module.double)


def test_the_sources_are_part_of_the_key(load, monkeypatch):
    for hit in (False, True, True):
        module = load()
        assert module.double(3) == 6
        assert from_cache(module.double) == hit
    monkeypatch.setattr(jitted, "SOURCES", "sources of a newer version")
    module = load()
    assert module.double(3) == 6
    assert not from_cache(module.double)


@pytest.mark.slow
def test_fits_need_no_folder_for_a_cache(tmp_path):
    """No user may write where there is a file: neither next to the sources, nor in the home folder."""
    package = tmp_path / "mopn"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mopn", package, ignore=ignored)
    shutil.copytree(ROOT / "solvers", package / "solvers", ignore=ignored)
    (package / "compiled" / "__pycache__").touch()
    nowhere = str(package / "__init__.py" / "home")
    environment = dict(os.environ, PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", HOME=nowhere)
    environment |= {"XDG_CACHE_HOME": nowhere, "LOCALAPPDATA": nowhere}
    environment.pop("NUMBA_CACHE_DIR", None)
    code = """
import numpy as np, mopn
from mopn.compiled.stochastic import count_entries
from mopn.data.designs import make_design

assert mopn.__file__.startswith({folder!r})
mopn.FactorizationProblem
assert count_entries.stats.cache_path is None
assert count_entries(make_design(np.eye(3)).row_lines).tolist() == [1, 1, 1]
"""
    code = code.format(folder=str(tmp_path))
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "set NUMBA_CACHE_DIR" in run.stderr


# -- numba's threads in forked processes and in several Python threads; each in a process of its own -------------------


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


def run_apart(code, **environment):
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"} | environment
    subprocess.run([sys.executable, "-c", DATA + code], check=True, env=environment)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.parametrize("started", [True, False])
def test_a_forked_process_has_threads_unless_its_parent_started_some(started):
    run_apart(f"THREADS_STARTED = {started}" + FORK)


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["workqueue", "default"])
def test_fits_in_several_threads_of_a_process(layer):
    run_apart(THREADS, NUMBA_THREADING_LAYER=layer)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_ctrl_c_waits_for_the_compiler(handler):
    """It ends the call afterwards, with the code compiled, or does nothing if it is ignored."""
    compiled = []

    def compiler(signature):
        signal.raise_signal(signal.SIGINT)
        compiled.append(signature)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with contextlib.nullcontext() if handler is signal.SIG_IGN else pytest.raises(KeyboardInterrupt):
            jitted._compile(compiler, "a signature")
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert compiled == ["a signature"]
    with ThreadPoolExecutor(1) as threads:  # of which none may set handlers
        assert threads.submit(jitted._compile, str.upper, "a").result() == "A"


# -- without the compiler ----------------------------------------------------------------------------------------------


FITS = """
import sys
import numpy as np, mopn
from mopn.estimators import FactorizationMachineClassifier, PolynomialNetworkRegressor, TableRegressor
from mopn.solvers import SGD, AdaGrad, ConditionalGradient, CoordinateDescent, LBFGS
from scipy import sparse

rng = np.random.default_rng(0)
X = rng.standard_normal((20, 4))
y = X[:, 0] * X[:, 1]
blocks = mopn.RelationBlocks([X[:5], X[5:8]], np.stack([rng.integers(0, 5, 20), rng.integers(0, 3, 20)], axis=1))

def fit(problem, solver):
    return mopn.minimize(problem, solver, tol=0, max_iter=3, rng=0)

def fits():
    for data in (X, sparse.csr_array(X * (np.abs(X) > 0.5)), sparse.csr_array(X > 0.5, dtype=float), blocks):
        network = mopn.NetworkProblem(data, y, loss="squared", norm="l1", strength=1.0)
        yield fit(network, ConditionalGradient("full")).fun
        for solver in (CoordinateDescent(), CoordinateDescent(n_threads=2), SGD(), AdaGrad(), LBFGS()):
            kernels = [("anova", 2)] if data is blocks else [("anova", 2), ("anova", 3), ("all-subsets", 2)]
            for kernel, degree in kernels:
                problem = mopn.FactorizationProblem(data, y, kernel=kernel, degree=degree, n_components=3)
                if problem.oracles >= solver.needs:
                    yield fit(problem, solver).x
    lower = mopn.FactorizationProblem(X, y, degree=3, n_components=3, fit_lower="augment")
    yield fit(lower, CoordinateDescent()).x
    for augment, degree in ((False, 2), (True, 2), (False, 3)):
        yield fit(mopn.LiftedProblem(X, y, degree=degree, rank=3, augment=augment), CoordinateDescent()).x
    for loss, target in (("huber", y), ("binary-logistic", np.sign(y)), ("binary-squared-hinge", np.sign(y))):
        for solver in (CoordinateDescent(), SGD()):
            options = {"loss": loss, "degree": 3, "n_components": 3}
            yield fit(mopn.FactorizationProblem(X, target, **options), solver).x
    classifier = FactorizationMachineClassifier(loss="logistic", degree=3, max_iter=3, tol=0, random_state=0)
    yield classifier.fit(X, y > 0).predict_proba(X)
    yield PolynomialNetworkRegressor(degree=3, max_iter=3, tol=0, random_state=0).fit(X, y).predict(X)
    table = {"a": X[:, 0], "b": np.array(["x", "y"] * 10)}
    yield TableRegressor(max_units=2).fit(table, y).predict(table)

np.savez(sys.argv[1], *fits())
"""


@pytest.mark.slow
def test_without_the_compiler_python_computes_the_same(tmp_path):
    pytest.importorskip("numpy", "2.0", reason="without the compiler NumPy 1 makes floats of indices")
    """NUMBA_DISABLE_JIT=1, as for debuggers and coverage."""
    found = []
    for disabled in ("0", "1"):
        path = tmp_path / f"{disabled}.npz"
        environment = os.environ | {"NUMBA_DISABLE_JIT": disabled, "PYTHONWARNINGS": "ignore"}
        subprocess.run([sys.executable, "-c", FITS, str(path)], check=True, env=environment, cwd=ROOT)
        with np.load(path) as arrays:
            found.append([arrays[name] for name in arrays])
    assert len(found[0]) == len(found[1]) > 40
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=1e-6, atol=1e-8)

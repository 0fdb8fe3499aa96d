"""One problem, one answer: in whatever form samples are given, with any number of threads, on any processor.

As a program it writes the answers for dense samples, and the kernels that OpenBLAS uses, as JSON.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from networks import data, random_network
from scipy import sparse
from threadpoolctl import threadpool_info

import mopn
from mopn.solvers import FISTA, LBFGS, ConditionalGradient, CoordinateDescent, InteriorPoint


class Samples(NamedTuple):
    """Samples X (n, d), which float32 represents exactly, targets, weights 0, 1, 2 and 3, and a number of threads."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    n_threads: int = 1

    def rows(self, rows):
        return self._replace(X=self.X[rows], y=self.y[rows], weights=self.weights[rows])

    def arrays(self, change):
        return self._replace(X=change("X", self.X), y=change("y", self.y), weights=change("weights", self.weights))


def draw(loss, augment=False, n=60, m=3, **options):
    X, y = data(loss, n=n, d=4 if augment else 5, m=m)
    return Samples(X.astype(np.float32).astype(np.float64), y, np.random.default_rng(1).integers(0, 4, n))


def read_only(samples, folder):
    def copy(name, array):
        array = array.copy()
        array.setflags(write=False)
        return array

    return samples.arrays(copy)


def memory_mapped(samples, folder):
    def on_disk(name, array):
        np.save(folder / f"{name}.npy", array)
        return np.load(folder / f"{name}.npy", mmap_mode="r")

    return samples.arrays(on_disk)


def repeated(samples, folder):
    n = len(samples.y)
    return samples.rows(np.repeat(np.arange(n), samples.weights))._replace(weights=None)


def permuted(samples, folder):
    return samples.rows(np.random.default_rng(2).permutation(len(samples.y)))


def stored(convert):
    return lambda samples, folder: samples._replace(X=convert(samples.X))


FORMS: dict[str, Callable[[Samples, Path], Samples]] = {
    "dense": lambda samples, folder: samples,
    "dense, two threads": lambda samples, folder: samples._replace(n_threads=2),
    "float32": stored(np.float32),
    "CSR": stored(sparse.csr_array),
    "CSR, two threads": lambda samples, folder: samples._replace(X=sparse.csr_array(samples.X), n_threads=2),
    "CSC": stored(sparse.csc_array),
    "read-only": read_only,
    "memory-mapped": memory_mapped,
    "repeated": repeated,
    "permuted": permuted,
}


class Answer(NamedTuple):
    """An objective and its proven gap, where a solver ended or at another point."""

    fun: float
    gap: float
    solved: bool = True


class Case(NamedTuple):
    """A problem's samples, its answers by name, and a relative gap that the best of them stays below."""

    samples: Samples
    solve: Callable[[Samples], dict[str, Answer]]
    gap: float


def network_problem(samples, options):
    return mopn.NetworkProblem(samples.X, samples.y, sample_weight=samples.weights, **options)


def minimum(problem, solver, samples, tol=1e-9, max_iter=10):
    return mopn.minimize(problem, solver, tol=tol, max_iter=max_iter, n_threads=samples.n_threads)


def answer(result):
    return Answer(result.fun, result.gap)


def network(n=60, m=3, **options):
    """All units: the fit of a network, and a point near it, where a lower bound too large excludes the fit."""

    def solve(samples):
        problem = network_problem(samples, options)
        result = minimum(problem, ConditionalGradient(refit="full"), samples)
        assert len(result.basis)
        nearby = (1.0 - 1e-5) * result.weights
        near = mopn.certify(problem, result.basis, nearby, linear=result.linear, n_threads=samples.n_threads)
        return {"conditional gradient": answer(result), "a nearby point": Answer(near.fun, near.gap, solved=False)}

    # Where the objective is the minimum up to rounding, gaps are about the root of that, 1e-8. Proofs by sums of
    # squares end at a relative accuracy near 1e-7.
    loose = options["norm"] == "l1/l2" and m > 2
    return Case(draw(n=n, m=m, **options), solve, 1e-6 if loose else 3e-8)


def layer(**options):
    """Fixed units: the output layer."""

    def solve(samples):
        whole = network_problem(samples, options)
        problem = whole.output_layer(random_network(whole))
        return {
            "interior point": answer(minimum(problem, InteriorPoint(), samples, tol=1e-10, max_iter=100)),
            "FISTA": answer(minimum(problem, FISTA(), samples, tol=1e-12, max_iter=1000)),
        }

    return Case(draw(**options), solve, 1e-8)


def single_output(beta, **options):
    """One output: the convex problem, and its lifted form."""

    def solve(samples):
        convex = network_problem(samples, {**options, "norm": "l1", "strength": beta})
        lifted = mopn.LiftedProblem(samples.X, samples.y, rank=8, beta=beta, sample_weight=samples.weights, **options)
        found = {"conditional gradient": answer(minimum(convex, ConditionalGradient(refit="full"), samples))}
        for name, solver in {"coordinate descent": CoordinateDescent(), "L-BFGS": LBFGS()}.items():
            result = minimum(lifted, solver, samples, tol=1e-12, max_iter=1000)
            found[name] = answer(mopn.certify(convex, *lifted.network(result), n_threads=samples.n_threads))
        return found

    samples = draw(**options)
    return Case(samples._replace(y=np.ascontiguousarray(samples.y[:, 0])), solve, 1e-7)


CASES = {
    "l1, homogeneous": network(norm="l1", loss="squared-hinge", strength=74.0),
    "l1, homogeneous, dummies": network(norm="l1", augment=True, loss="binary-squared-hinge", strength=90.0),
    "l1, homogeneous, centered and scaled": network(
        norm="l1", augment=True, center=True, scale="features", loss="logistic", strength=6.0
    ),
    "l1, anova": network(norm="l1", kernel="anova", loss="squared", strength=35.0),
    "l1, anova, dummies": network(norm="l1", kernel="anova", augment=True, loss="logistic", strength=10.0),
    "l1/l2, homogeneous": network(norm="l1/l2", loss="squared", strength=100.0),
    "l1/l2, homogeneous, dummies": network(norm="l1/l2", augment=True, loss="binary-squared-hinge", strength=94.0),
    "l1/l2, anova": network(norm="l1/l2", kernel="anova", loss="squared-hinge", strength=46.0),
    "l1/l2, anova, dummies": network(norm="l1/l2", kernel="anova", augment=True, loss="logistic", strength=13.0),
    "l1/linf, homogeneous": network(norm="l1/linf", loss="logistic", strength=28.0),
    "l1/linf, homogeneous, dummies": network(norm="l1/linf", augment=True, loss="squared-hinge", strength=190.0),
    "l1/linf, anova": network(norm="l1/linf", kernel="anova", loss="squared-hinge", radius=0.5),
    "l1/linf, anova, dummies": network(
        norm="l1/linf", kernel="anova", augment=True, loss="binary-logistic", strength=19.0
    ),
    "two classes": network(m=2, norm="l1/l2", kernel="anova", loss="smoothed-hinge", strength=5.0),
    "a linear term": network(norm="l1", kernel="anova", alpha=1.0, loss="binary-logistic", radius=1.0),
    # Enough for products of dense samples, and sums over the rows of sparse ones, to use two threads if they may.
    "many samples": network(n=17_000, norm="l1", augment=True, loss="squared", strength=13e3),
    "output layer, l1": layer(norm="l1", loss="squared-hinge", strength=2.0),
    "output layer, l1/l2": layer(norm="l1/l2", augment=True, loss="squared", radius=2.0),
    "output layer, l1/linf": layer(norm="l1/linf", kernel="anova", augment=True, loss="logistic", strength=2.0),
    "one output, homogeneous": single_output(5.0, augment=True, kernel="homogeneous", loss="squared"),
    "one output, anova": single_output(1.0, kernel="anova", loss="binary-logistic"),
}


# -- tests ------------------------------------------------------------------------------------------------------------

# Core types of OpenBLAS, and the instructions that their kernels need. Prescott's have no fused multiply-add.
CORES = {
    "Prescott": {"pni"},
    "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"},
    "SkylakeX": {"avx2", "fma", "avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"},
}


def check_same(answers):
    """Require of answers to one problem the same minimum, and that no certificate excludes another's objective."""
    solved = {name: answer.fun for name, answer in answers.items() if answer.solved}
    least = min(solved.values())
    apart = {name: fun for name, fun in solved.items() if fun - least > 1e-9 * least}
    assert len(solved) >= 2
    assert not apart, (apart, least)
    least = min(answer.fun for answer in answers.values())
    excluding = {name: answer for name, answer in answers.items() if answer.fun - answer.gap > least}
    assert not excluding, (excluding, least)


def instructions():
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.M) if cpuinfo.exists() else None
    return set(found[1].split()) if found else set()


def run_on(core):
    paths = os.pathsep.join([path for path in sys.path if path])  # the folder of helpers among them
    environment = os.environ | {"OPENBLAS_CORETYPE": core, "PYTHONPATH": paths}
    program = [sys.executable, __file__]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (core, done.stderr)
    return json.loads(done.stdout)


# Two norms and both kernels.
QUICK = {"l1, homogeneous, dummies", "l1, anova", "two classes"}
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in CASES]


@pytest.mark.parametrize("name", NAMES)
def test_every_form_of_the_samples_has_the_same_answer(name, tmp_path):
    samples, solve, gap = CASES[name]
    answers = {}
    for form, give in FORMS.items():
        found = solve(give(samples, tmp_path))
        assert min(answer.gap / answer.fun for answer in found.values()) <= gap, form
        answers |= {f"{form}, {solver}": answer for solver, answer in found.items()}
    check_same(answers)


@pytest.mark.slow
def test_every_core_type_has_the_same_answers():
    if not any(library["internal_api"] == "openblas" for library in threadpool_info()):
        pytest.skip("linear algebra is not by OpenBLAS, which chooses its kernels by OPENBLAS_CORETYPE")
    runnable = [core for core, needed in CORES.items() if needed <= instructions()]
    if len(runnable) < 2:
        pytest.skip(f"of the core types {', '.join(CORES)} this processor is known to run {runnable}")
    # The oldest and the newest.
    runnable = [runnable[0], runnable[-1]]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(runnable, pool.map(run_on, runnable), strict=True))
    if len({tuple(run["kernels"]) for run in found.values()}) < 2:
        pytest.skip("this build of OpenBLAS has the kernels of one core type")
    for name in CASES:
        check_same(
            {
                f"{core}, {solver}, {name}": Answer(*answer)
                for core, run in found.items()
                for solver, answer in run["answers"][name].items()
            }
        )


if __name__ == "__main__":
    kernels = sorted({library["architecture"] for library in threadpool_info() if "architecture" in library})
    answers = {name: case.solve(case.samples) for name, case in CASES.items()}
    json.dump({"kernels": kernels, "answers": answers}, sys.stdout)

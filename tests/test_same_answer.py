"""One problem, one answer: in whatever form samples are given, with any number of threads, on any processor."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import same_answers
from same_answers import CASES, FORMS, Answer
from threadpoolctl import threadpool_info

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
    environment = os.environ | {"OPENBLAS_CORETYPE": core}
    program = [sys.executable, same_answers.__file__]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (core, done.stderr)
    return json.loads(done.stdout)


# Of two norms and both kernels.
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

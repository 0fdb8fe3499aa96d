"""The pool of threads, in its own process and in forked ones."""

import os
import subprocess
import sys

import pytest

from mopn.data.thread_pool import in_threads, n_workers


def square(base):
    return base**2


@pytest.mark.parametrize("workers", ["1", "3"])
def test_results_have_the_order_of_the_arguments(monkeypatch, workers):
    monkeypatch.setenv("OMP_NUM_THREADS", workers)
    assert n_workers() == int(workers)
    assert list(in_threads(square, range(20))) == [base**2 for base in range(20)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_forked_process_has_threads_of_its_own():
    """It also ends, although the threads of its parent never will."""
    code = """
import os, sys
from mopn.data.thread_pool import in_threads

def squares():
    return list(in_threads(lambda base: base**2, range(8)))

assert squares() == [base**2 for base in range(8)]
if (child := os.fork()) == 0:
    sys.exit(0 if squares() == [base**2 for base in range(8)] else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"OMP_NUM_THREADS": "2"})

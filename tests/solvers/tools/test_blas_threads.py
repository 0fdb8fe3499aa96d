"""Threads of linear algebra: limited for the time of a call, restored after it, whatever runs at the same time."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from cases import network
from threadpoolctl import ThreadpoolController, threadpool_limits

import mopn
from mopn.data.rows import ArrayRows
from mopn.solvers import FISTA, ConditionalGradient
from mopn.solvers.tools import blas_threads
from mopn.solvers.tools.blas_threads import (
    LARGE_OPERATIONS,
    limited_threads,
    most_threads,
    single_threaded,
    threads_for,
)


def counts():
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.get_num_threads() for library in libraries}


@pytest.fixture(autouse=True)
def _found():
    """Two threads before each call; a machine whose linear algebra has one thread only proves nothing here."""
    with threadpool_limits(2, user_api="blas"):
        if counts() != {2}:
            pytest.skip("no linear algebra whose threads can be set")
        yield
        assert counts() == {2}


def test_a_call_has_one_thread_but_for_large_products():
    with limited_threads():
        assert counts() == {1}
        with threads_for(LARGE_OPERATIONS):
            assert counts() == {2}
        with threads_for(0.5 * LARGE_OPERATIONS):
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}
    with threads_for(LARGE_OPERATIONS):
        assert counts() == {2}


def test_a_number_that_was_given_is_for_blocks_and_large_products():
    with limited_threads(3):
        assert most_threads() == 3
        assert counts() == {1}
        with threads_for(LARGE_OPERATIONS):
            assert counts() == {3}
        with limited_threads(4):
            assert most_threads() == 3
        with single_threaded():
            with single_threaded(), threads_for(LARGE_OPERATIONS):
                assert counts() == {1}
            with threads_for(LARGE_OPERATIONS):
                assert counts() == {1}
        with threads_for(LARGE_OPERATIONS):
            assert counts() == {3}
    assert most_threads() is None


@pytest.mark.parametrize("n_threads", [1, 2, None])
def test_terms_of_blocks_have_one_thread(n_threads, monkeypatch):
    """As many Python threads as the call was given compute them, and all give the same bits."""
    monkeypatch.setattr(blas_threads, "LARGE_OPERATIONS", 0.0)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    X = np.random.default_rng(0).uniform(-1, 1, (100, 3))
    y = X[:, 0] * X[:, 1] > 0
    seen = set()

    def term(block):
        with threads_for(1.0):
            seen.add(frozenset(counts()))
        return block.design.project(np.eye(3)).sum(axis=0)

    whole = mopn.NetworkProblem(X, y, strength=1.0).rows
    in_blocks = mopn.NetworkProblem(mopn.RowBlocks(X, y), strength=1.0).rows
    for rows in (ArrayRows(whole.design, whole.losses, 10), in_blocks):
        with limited_threads(1):
            expected = rows.sum(term)
        with limited_threads(n_threads):
            np.testing.assert_array_equal(rows.sum(term), expected)
    assert seen == {frozenset({1})}


@pytest.mark.parametrize("given", [None, 2])
def test_minimise_limits_its_threads_and_restores_them(given):
    seen = []
    mopn.minimize(
        network(),
        ConditionalGradient(),
        max_iter=2,
        n_threads=given,
        callback=lambda **_: seen.append((counts(), most_threads())),
    )
    assert seen == 3 * [({1}, given)]
    assert counts() == {2}


def test_what_fails_restores_the_threads():
    with pytest.raises(ZeroDivisionError), limited_threads():
        raise ZeroDivisionError
    assert counts() == {2}
    with pytest.raises(TypeError):
        mopn.minimize(network(), FISTA())
    assert counts() == {2}


def test_the_first_of_calls_in_several_python_threads_sets_and_restores():
    """The second call begins within the first, and ends after it: it leaves the threads alone."""
    entered, ended = threading.Event(), threading.Event()
    seen = []

    def second():
        with limited_threads(5):
            entered.set()
            ended.wait()
            with threads_for(LARGE_OPERATIONS):
                seen.append((counts(), most_threads()))

    with limited_threads():
        other = threading.Thread(target=second)
        other.start()
        entered.wait()
        assert counts() == {1}
        assert most_threads() is None
    assert counts() == {2}
    ended.set()
    other.join()
    assert seen == [({2}, 5)]
    assert counts() == {2}


FORKED = """
import os, sys
from threadpoolctl import ThreadpoolController
import mopn
from mopn.solvers.tools import blas_threads as threads

def counts():
    return {library.get_num_threads() for library in ThreadpoolController().select(user_api="blas").lib_controllers}

before = counts()
with threads.limited_threads():
    threads._BLAS._lock.acquire()  # as if another thread held it at the moment of the fork
    child = os.fork()
    if child == 0:
        assert counts() == before
        with threads.limited_threads():
            assert counts() == {1}
        assert counts() == before
        os._exit(7)
    threads._BLAS._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert counts() == {1}
assert counts() == before
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_within_a_call_has_the_threads_of_before():
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60, env=environment)

"""Threads of linear algebra: limited for the time of a call, restored after it, whatever runs at the same time."""

import os
import subprocess
import sys
import threading

import pytest
from cases import network
from threadpoolctl import ThreadpoolController, threadpool_limits

import mopn
from mopn.solvers import FISTA, ConditionalGradient
from mopn.solvers.numerics.threads import _LARGE, limited_threads, most_threads, threads_for


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
        with threads_for(_LARGE):
            assert counts() == {2}
        with threads_for(0.5 * _LARGE):
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}
    with threads_for(_LARGE):
        assert counts() == {2}


def test_a_number_that_was_given_holds_for_all_products():
    with limited_threads(3):
        assert most_threads() == 3
        assert counts() == {3}
        with threads_for(_LARGE):
            assert counts() == {3}
        with limited_threads():
            assert counts() == {3}
    assert most_threads() is None


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, True, "2"])
def test_bad_numbers_of_threads(n_threads):
    with pytest.raises(ValueError, match="n_threads must be an integer >= 1 or None, got"):
        mopn.minimize(network(), ConditionalGradient(), n_threads=n_threads)


@pytest.mark.parametrize("given", [None, 2])
def test_minimise_limits_its_threads_and_restores_them(given):
    seen = []
    mopn.minimize(
        network(), ConditionalGradient(), max_iter=2, n_threads=given, callback=lambda **_: seen.append(counts())
    )
    assert seen == 3 * [{given or 1}]
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
            with threads_for(_LARGE):
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
from mopn.solvers.numerics import threads

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

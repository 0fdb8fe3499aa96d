"""Sums over blocks of rows: the same numbers for any threads, and against the sums over all rows at once."""

import operator
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import mopn
from mopn.data.designs import make_design
from mopn.data.losses_of_rows import Losses
from mopn.data.rows import ArrayRows, tree_sum
from mopn.solvers.tools.blas_threads import in_threads, n_workers

RNG = np.random.default_rng(0)
N, D, M = 23, 4, 3
X, Y, A = RNG.standard_normal((N, D)), RNG.standard_normal((N, M)), RNG.standard_normal((N, 2))


def rows(size):
    return ArrayRows(make_design(X), Losses.of_data("squared", Y, N), size)


def squares(block, array, factor):
    return factor * array.T @ block.design.matrix(), float((array**2).sum())


def projected(block, H):
    return block.design.project(H)


def recorded(a, b):
    return f"({a}{b})"


@pytest.mark.parametrize("tree", ["0", "(01)", "((01)2)", "(((01)(23))4)", "(((01)(23))((45)6))"])
def test_the_tree_is_that_of_the_numbers(tree):
    assert tree_sum(filter(str.isdigit, tree), recorded) == tree


@examples(50)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=100))
def test_the_tree_adds_every_term_once(numbers):
    assert tree_sum(numbers) == sum(numbers)
    assert tree_sum([(number, -number) for number in numbers], max) == (max(numbers), -min(numbers))


@pytest.mark.parametrize("size", [1, 5, 22, 23, 100])
def test_sums_and_maps_are_those_of_all_rows(size):
    of_blocks = rows(size)
    assert [block.rows.start for block in of_blocks.blocks] == list(range(0, N, size))
    crossed, total = of_blocks.sum(squares, 2.0, along=(A,))
    np.testing.assert_allclose(crossed, 2.0 * A.T @ X, rtol=1e-12)
    assert total == pytest.approx(np.sum(A**2), rel=1e-13)
    H = RNG.standard_normal((5, D))
    found = of_blocks.map(projected, H)
    np.testing.assert_allclose(found, X @ H.T, rtol=1e-12)
    assert found.flags.f_contiguous
    np.testing.assert_allclose(of_blocks.crossed(A, Y), A.T @ Y, rtol=1e-12)
    assert of_blocks.inner(A, A) == pytest.approx(np.sum(A**2), rel=1e-13)
    assert of_blocks.sum(lambda block: block.design.largest, combine=max) == np.abs(X).max()


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_change_no_bit(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    crossed, total = rows(2).sum(squares, 1.0, along=(A,))
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    same, too = rows(2).sum(squares, 1.0, along=(A,))
    np.testing.assert_array_equal(crossed, same)
    assert total == too


def test_passes_are_counted_with_those_of_views():
    of_blocks = rows(5)
    for view in (of_blocks, of_blocks.single(), of_blocks.sample(0.5, 0), of_blocks.plus(np.zeros((N, M)))):
        view.sum(squares, 1.0, along=(A[: view.shape[0]],))
    assert of_blocks.passes == 3, "a sample counts its own"


@pytest.mark.parametrize("threads", ["1", "3"])
def test_an_error_in_a_block_ends_the_sum(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)

    def fails(block):
        if block.rows.start == 10:
            raise ZeroDivisionError("in block 5")
        return 1.0

    with pytest.raises(ZeroDivisionError, match="in block 5"):
        rows(2).sum(fails)
    assert rows(2).sum(lambda block: 1.0) == 12.0


def test_threads_handle_overflow_as_their_caller(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    overflow = partial(rows(2).sum, lambda block: float(np.exp(np.full(2, 1e5))[0]), combine=operator.add)
    with np.errstate(over="ignore"):
        assert overflow() == np.inf
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        overflow()


def test_sums_over_blocks_have_what_sums_can_tell():
    """Nothing is inherited that would need the targets of all rows, and no Hessian."""
    losses = mopn.NetworkProblem(mopn.RowBlocks(X, Y), loss="squared", strength=1.0).losses
    assert not hasattr(losses, "hessian")
    assert not hasattr(losses, "y")
    with pytest.raises(TypeError, match="data in blocks is not held in memory"):
        _ = losses.in_memory


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
from mopn.solvers.tools.blas_threads import in_threads

def squares():
    return list(in_threads(lambda base: base**2, range(8)))

assert squares() == [base**2 for base in range(8)]
if (child := os.fork()) == 0:
    sys.exit(0 if squares() == [base**2 for base in range(8)] else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"OMP_NUM_THREADS": "2"})

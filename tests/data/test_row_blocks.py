"""Data in blocks that are read in every pass: from arrays, files and callables, and their faults."""

import math
import re
import weakref
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from networks import data, every_kernel, every_norm, random_network
from scipy import sparse

import mopn
from mopn.data.chunked_rows import checksum
from mopn.data.rows import RowArray
from mopn.estimators import (
    FactorizationMachineClassifier,
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    OrdinalFMRegressor,
    TableClassifier,
)
from mopn.solvers import ConditionalGradient, Status

X, Y = data("logistic", n=40, d=4)
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, 40)
CUTS = (0, 7, 23, 40)
CENTERED = {"augment": True, "center": True, "scale": "features"}
NETWORK = np.random.default_rng(2).standard_normal((3, 4)), np.random.default_rng(3).standard_normal((3, 3))


def cut(array):
    return [array[first:stop] for first, stop in pairwise(CUTS)]


def callables(*arrays):
    return [lambda parts=parts: parts for parts in zip(*map(cut, arrays), strict=True)]


def from_files(folder, suffix, parts):
    paths = []
    for number, part in enumerate(parts):
        paths.append(folder / f"{number}{suffix}")
        if suffix == ".npy":
            np.save(paths[-1], part)
        elif suffix == ".npz":
            sparse.save_npz(paths[-1], sparse.csr_array(part))
        else:
            pyarrow = pytest.importorskip("pyarrow")
            from pyarrow import parquet

            parquet.write_table(pyarrow.table({f"x{j}": column for j, column in enumerate(part.T)}), paths[-1])
    return paths


@pytest.mark.parametrize("form", ["arrays", "csr", ".npy", ".npz", ".parquet", "callables", "memmap", "one file"])
@pytest.mark.parametrize("options", [{}, {"alpha": 1.0}, {"ridge": 0.5}, CENTERED])
def test_every_form_of_blocks_is_the_problem_in_memory(tmp_path, form, options):
    forms = {
        "arrays": lambda: mopn.RowBlocks(cut(X), Y, WEIGHTS),
        "csr": lambda: mopn.RowBlocks([sparse.csr_array(part) for part in cut(X)], Y, WEIGHTS),
        "callables": lambda: mopn.RowBlocks(callables(X, Y, WEIGHTS)),
        "memmap": lambda: mopn.RowBlocks(np.load(tmp_path / "X.npy", mmap_mode="r"), Y, WEIGHTS, size=11),
        "one file": lambda: mopn.RowBlocks(tmp_path / "X.npy", Y, WEIGHTS, size=11),
    }
    np.save(tmp_path / "X.npy", X)
    make = forms.get(form, lambda: mopn.RowBlocks([str(p) for p in from_files(tmp_path, form, cut(X))], Y, WEIGHTS))
    whole = mopn.NetworkProblem(X, Y, sample_weight=WEIGHTS, strength=1.0, **options)
    blocks = mopn.NetworkProblem(make(), strength=1.0, **options)
    assert blocks.rows.shape == whole.rows.shape
    np.testing.assert_array_equal(blocks.classes, whole.classes)
    network = random_network(whole)
    point = network.basis, network.weights, network.linear
    expected, found = whole.measure(whole.start(point), "exact"), blocks.measure(blocks.start(point), "exact")
    for bound in ("fun", "lower", "restricted_lower"):
        assert getattr(found, bound) == pytest.approx(getattr(expected, bound), rel=1e-9)
    form = whole.joint(whole.start(point)), blocks.joint(blocks.start(point))
    values, gradients = zip(*(joint.value_gradient(joint.start())[:2] for joint in form), strict=True)
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    np.testing.assert_allclose(*gradients, rtol=1e-9, atol=1e-9 * np.abs(gradients[0]).max())


@every_norm
@every_kernel
@pytest.mark.parametrize("refit", ["none", "output", "full"])
def test_every_refit_reads_blocks(norm, kernel, refit):
    tol = {"none": 0.5, "output": 0.1, "full": 3e-2}[refit]
    options = {"norm": norm, "kernel": kernel, "strength": 1.0}
    solver = ConditionalGradient(refit=refit, oracle="exact")
    whole = mopn.minimize(mopn.NetworkProblem(X, Y, **options), solver, tol=tol, max_iter=100)
    problem = mopn.NetworkProblem(mopn.RowBlocks(cut(X), Y), **options)
    found = mopn.minimize(problem, solver, tol=tol, max_iter=100)
    assert found.status == whole.status == Status.CONVERGED
    # Both minima lie within both gaps.
    assert found.fun - found.gap <= whole.fun
    assert whole.fun - whole.gap <= found.fun
    assert found.trace["passes"][-1] <= problem.passes


def test_at_most_two_blocks_are_held():
    held, most = set(), []

    def block(part):
        read = Tracked(part.shape)
        read[:] = part
        weakref.finalize(read, held.discard, id(read))
        held.add(id(read))
        most.append(len(held))
        return read

    parts = [lambda part=part: block(part) for part in np.array_split(X, 8)]
    problem = mopn.NetworkProblem(mopn.RowBlocks(parts, Y), strength=1.0)
    problem.output_gradient(problem.start())
    assert len(most) >= 16
    assert max(most) == 2


class Tracked(np.ndarray):
    """An array to which weak references are possible."""


def test_a_sample_is_in_memory():
    problem = mopn.NetworkProblem(mopn.RowBlocks(cut(X), Y, WEIGHTS), strength=1.0)
    part = problem.rows.sample(0.5, 0)
    assert 5 < part.shape[0] < 35
    assert part.losses.weights.sum() == pytest.approx(WEIGHTS.sum())
    drawn = part.design.matrix()
    assert all((row == X).all(axis=1).any() for row in drawn)


def test_row_arrays_are_computed_once_a_block_and_never_as_a_whole():
    calls = []

    class Block:
        def __init__(self):
            self.computed = {}

    def rows(block):
        calls.append(block)
        return np.ones((3, 2))

    base, block = RowArray(rows, shape=(3, 2)), Block()
    z = 2.0 * base + base @ np.eye(2)
    z += np.abs(base)
    np.testing.assert_array_equal(z.of(block), np.full((3, 2), 4.0))
    assert len(calls) == 1
    assert (z / 2.0).shape is None or (z / 2.0).shape == (3, 2)
    with pytest.raises(TypeError, match="block by block"):
        np.asarray(z)
    with pytest.raises(TypeError):
        np.add.reduce(z)


def parquet(path, table):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(table), path)
    return path


def frame(path, table):
    pandas = pytest.importorskip("pandas")
    return lambda: pandas.DataFrame(table)


@pytest.mark.parametrize("write", [parquet, frame])
def test_named_columns_are_read_by_name(tmp_path, write):
    halves = [{name: part[:, j] for j, name in enumerate("abcd")} for part in (X[:20], X[20:])]
    shuffled = write(tmp_path / "b.parquet", {name: halves[1][name] for name in "cadb"})
    blocks = mopn.RowBlocks([write(tmp_path / "a.parquet", halves[0]), shuffled], Y)
    np.testing.assert_array_equal(np.concatenate([np.asarray(block.X) for block in blocks]), X)
    renamed = write(tmp_path / "c.parquet", {name: halves[1][key] for name, key in zip("abef", "abcd", strict=True)})
    message = r"block 1.* other columns than the blocks before: it lacks \['c', 'd'\] and has \['e', 'f'\]"
    with pytest.raises(ValueError, match=message) as raised:
        mopn.NetworkProblem(mopn.RowBlocks([blocks.blocks[0], renamed], Y), strength=1.0)
    assert write is frame or "c.parquet" in str(raised.value)


BAD = np.array(X)
BAD[9, 2] = np.nan


@pytest.mark.parametrize(
    ("parts", "y", "message"),
    [
        (cut(BAD), Y, "block 1: row 2 of X contains NaN"),
        ([X[:7], X[7:, :3]], Y, "block 1 has 3 features, and block 0 has 4"),
        ([X[:7], sparse.csr_array(X[7:])], Y, "dense and sparse"),
        ([X[:0], X[:0]], Y[:0], "X is empty: its blocks have no rows"),
        (X[:0], Y[:0], r"X is empty: shape \(0, 4\)"),
        (cut(X), Y[:-1], "y must have one row per sample|y has 39 rows"),
        (cut(X), np.append(Y, 0), "the blocks have 40 rows, y has 41"),
        (cut(X), None, "block 0: there is no y"),
        (cut(X), np.zeros(40, int), r"y has one class only \(0\)"),
        ([lambda: 1 / 0], Y, "block 0 cannot be read: ZeroDivisionError"),
        ([lambda: (X, Y, WEIGHTS, 1)], None, "block 0 must be X"),
        ([lambda: (X, np.c_[Y, Y])], None, r"block 0: loss='logistic' takes labels of shape \(n,\)"),
        ([lambda: (X, Y)], Y, "block 0 returned y, but y was also passed"),
        ([lambda: np.array([["a"]])], [0], "block 0: X must be numeric, .* float: 'a'"),
    ],
)
def test_bad_blocks_are_named(parts, y, message):
    with pytest.raises((ValueError, TypeError, OSError), match=message):
        mopn.NetworkProblem(mopn.RowBlocks(parts, y), strength=1.0)


def test_blocks_without_rows_are_left_out():
    parts = [X[:0], X[:1], X[1:2], X[:0], X[2:], X[:0]]
    labels = [Y[:0], Y[:1], Y[1:2], np.array([], "U1"), Y[2:], Y[:0]]
    brought = mopn.RowBlocks([lambda pair=pair: pair for pair in zip(parts, labels, strict=True)])
    whole = mopn.NetworkProblem(mopn.RowBlocks([X[:1], X[1:2], X[2:]], Y), strength=1.0)
    for blocks in (mopn.RowBlocks(parts, Y), brought):
        problem = mopn.NetworkProblem(blocks, strength=1.0)
        assert problem.rows.shape == (40, 4)
        np.testing.assert_array_equal(problem.classes, whole.classes)
        expected = whole.measure(whole.start(NETWORK), "exact")
        assert problem.measure(problem.start(NETWORK), "exact").fun == pytest.approx(expected.fun, rel=1e-12)
        found = MultiOutputPNClassifier(max_units=1, norm="l1/l2", strength=mopn.Ratio(0.5)).fit(blocks)
        np.testing.assert_array_equal(found.classes_, np.unique(Y))
    with pytest.raises(ValueError, match="X is empty: its blocks have no rows"):
        MultiOutputPNClassifier().fit(mopn.RowBlocks([X[:0]], Y[:0]))


@pytest.mark.parametrize("kind", [MultiOutputPNClassifier, OrdinalFMRegressor, TableClassifier, MultiOutputPNRegressor])
def test_targets_of_rows_without_weight_have_no_part(kind):
    """Neither in the classes or levels, nor in the scale of a loss: in blocks as in memory."""
    weights = np.where(Y == 2, 0.0, WEIGHTS)
    y = np.where(Y == 2, 1e6, X[:, 0]) if kind is MultiOutputPNRegressor else np.array([3.0, 1.0, 2.0])[Y]
    options = {"loss": "huber"} if kind is MultiOutputPNRegressor else {}
    options |= {"max_units": 2, "norm": "l1/l2", "strength": mopn.Ratio(0.3)}
    whole = kind(**options).fit(X, y, weights)
    found = kind(**options).fit(mopn.RowBlocks(cut(X), y), None, weights)
    for attribute in ("classes_", "levels_"):
        np.testing.assert_array_equal(getattr(found, attribute, None), getattr(whole, attribute, None))
    assert 2.0 not in getattr(found, "classes_", [])
    np.testing.assert_allclose(found.predict(X), whole.predict(X), rtol=1e-3, atol=1e-3)


def changed(what):
    return {
        "numbers": lambda X, y: (X + 1e-9 * (X[3, 2] == X), y),
        "NaN": lambda X, y: (np.where(X[3, 2] == X, np.nan, X), y),
        "order": lambda X, y: (X[::-1], y),
        "columns": lambda X, y: (X[:, :3], y),
        "rows": lambda X, y: (X[:-1], y[:-1]),
        "labels": lambda X, y: (X, 1 - y),
        "new labels": lambda X, y: (X, y + 7),
    }[what]


@pytest.mark.parametrize("what", ["numbers", "NaN", "order", "columns", "rows", "labels", "new labels"])
@pytest.mark.parametrize("in_memory", [False, True], ids=["brought", "y in memory"])
def test_blocks_that_change_between_passes_are_noticed(what, in_memory):
    """The run ends with the best network of the passes before, and with its proven gap."""
    if in_memory and "labels" in what:
        return
    parts, labels = cut(X), cut(Y.astype(int))
    is_old = [True]

    def block(number):
        part = parts[number], labels[number]
        part = part if is_old[0] or number != 1 else changed(what)(*part)
        return part[0] if in_memory else part

    blocks = [lambda number=number: block(number) for number in range(3)]
    problem = mopn.NetworkProblem(mopn.RowBlocks(blocks, Y.astype(int) if in_memory else None), strength=1.0)

    def change(intermediate_result):
        is_old[0] = intermediate_result.nit < 2

    result = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-9, callback=change)
    assert result.status == Status.FAILED
    assert isinstance(result.error, OSError)
    assert re.search("block 1 has changed since the first pass|the blocks have 39 rows now", str(result.error))
    fixed = mopn.NetworkProblem(mopn.RowBlocks(parts, Y.astype(int)), strength=1.0)
    assert len(result.basis) > 0
    assert fixed.measure(fixed.start(result), "exact").fun == pytest.approx(result.fun, rel=1e-6)


FORMS = {
    "doubles": lambda X: X,
    "single": np.float32,
    "integers": lambda X: X.astype(np.int8),
    "Fortran": np.asfortranarray,
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "texts": lambda X: X.astype(str).astype(object),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(128, 8), (700, 5), (3, 5000)])
def test_checksums_see_the_order_of_rows_and_numbers(form, shape):
    """Also for numbers such as 1.0 and 2.0, whose bits are mostly zeros."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(1, 3, shape).astype(float), rng.integers(0, 2, shape[0])
    X[0], X[-1] = 1.0, 2.0
    X[0, -1] = y[0] = 2.0
    of = FORMS[form]
    orders = [rng.permutation(len(X)) for _ in range(3)]
    orders += [np.roll(np.arange(len(X)), 1), np.arange(len(X))[::-1]]
    exchanged = X.copy()
    exchanged[0, 0], exchanged[0, -1] = X[0, -1], X[0, 0]
    seen = [checksum(of(each), y) for each in (X, exchanged, *(X[order] for order in orders))]
    seen += [checksum(of(X), y[order]) for order in orders]
    seen += [checksum(of(X[order]), y[order]) for order in orders]
    assert seen[0] == checksum(of(X.copy()), y.copy())
    assert seen[0] not in seen[1:]


@pytest.mark.parametrize("form", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]], ids=["F", "strided"])
def test_bits_do_not_depend_on_the_order_of_memory(form):
    blocks = (mopn.RowBlocks([of(part) for part in cut(X)], Y) for of in (form, np.array))
    found = [mopn.NetworkProblem(each, strength=1.0) for each in blocks]
    np.testing.assert_array_equal(*(problem.output_gradient(problem.start(NETWORK)).value for problem in found))


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.zeros(40), "zero for all samples"), (-WEIGHTS, "block 0: sample_weight must be finite and >= 0")],
)
def test_bad_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=message):
        mopn.NetworkProblem(mopn.RowBlocks(cut(X), Y, weights), strength=1.0)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([], TypeError, "not empty"),
        (5, TypeError, "X must be an array"),
        ((X for _ in range(2)), TypeError, r"in place of a generator give a list of functions"),
        ([5], TypeError, "block 0 must be an array"),
        (["rows.csv"], ValueError, "rows.csv"),
        ("rows.npz", ValueError, "a single file must be .npy"),
        (np.zeros(3), ValueError, "two-dimensional"),
    ],
)
def test_bad_sequences(given, error, message):
    with pytest.raises(error, match=message):
        mopn.RowBlocks(given, Y)


def test_a_file_of_other_rows_is_refused(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.asfortranarray(X))
    with pytest.raises(ValueError, match=r"rows\.npy must hold a two-dimensional array of numbers, row by row"):
        mopn.RowBlocks(path, Y)
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(OSError, match=r"block 0 cannot be read: .*rows\.npy ends before row 40"):
        mopn.NetworkProblem(mopn.RowBlocks(path, Y), strength=1.0)


def test_what_a_refit_reached_is_kept_whenever_the_data_vanish():
    """The first iteration that is recorded is the empty network, and the next one comes after the whole refit."""
    reads = [math.inf]

    def block():
        reads[0] -= 1
        if reads[0] < 0:
            raise FileNotFoundError("gone")
        return X, Y

    problem = mopn.NetworkProblem(mopn.RowBlocks([block]), strength=0.1)
    fixed = mopn.NetworkProblem(X, Y, strength=0.1)
    solver = ConditionalGradient(refit="full", max_units=4, schedule="fill")

    def vanish(after, intermediate_result):
        reads[0] = after if intermediate_result.nit == 0 else reads[0]

    reached = []
    for after in range(0, 120, 20):
        reads[0] = math.inf
        result = mopn.minimize(problem, solver, callback=partial(vanish, after))
        found = fixed.measure(fixed.start(result), "exact").fun
        assert result.status in (Status.FAILED, Status.MAX_UNITS)
        assert found <= result.fun * (1 + 1e-9)
        reached.append(found)
    assert sorted(reached, reverse=True) == reached
    assert reached[0] > reached[1] > reached[-1]


def test_data_that_are_lost_before_there_is_a_network_fit_no_estimator():
    reads = iter(range(100))

    def block():
        if next(reads) > 10:
            raise FileNotFoundError("gone")
        return X, Y

    with pytest.raises(FileNotFoundError, match="block 0 cannot be read: gone"):
        MultiOutputPNClassifier(max_units=4).fit(mopn.RowBlocks([block]))


@pytest.mark.parametrize("fit_lower", ["explicit", "augment", None])
@pytest.mark.parametrize("storage", [np.array, sparse.csr_array])
def test_a_factorization_machine_by_lbfgs_reads_blocks(storage, fit_lower):
    y = X[:, 0] * X[:, 1] + X[:, 2]
    options = {"n_components": 3, "degree": 3, "fit_lower": fit_lower, "rng": 0, "fit_intercept": True}
    whole = mopn.FactorizationProblem(storage(X), y, sample_weight=WEIGHTS, **options)
    blocks = mopn.FactorizationProblem(mopn.RowBlocks([storage(part) for part in cut(X)], y, WEIGHTS), None, **options)
    x = whole.start(1)
    np.testing.assert_array_equal(blocks.start(1), x)
    np.testing.assert_allclose(blocks.scales, whole.scales, rtol=1e-12)
    expected, found = whole.value_gradient(x), blocks.value_gradient(x)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-9)
    assert blocks.oracles == {"gradient"}
    with pytest.raises(TypeError, match="for data in blocks there is LBFGS"):
        mopn.minimize(blocks, mopn.solvers.CoordinateDescent())


def test_estimators_of_one_output_read_blocks():
    y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
    options = {"degree": 2, "n_components": 3, "random_state": 0, "alpha": 1.0, "beta": 1.0}
    whole = FactorizationMachineClassifier(solver="lbfgs", **options).fit(X, y)
    found = FactorizationMachineClassifier(solver="lbfgs", **options).fit(mopn.RowBlocks(cut(X), y))
    assert found.objective_ == pytest.approx(whole.objective_, rel=1e-3)
    np.testing.assert_array_equal(found.predict(X), whole.predict(X))
    epochs = [FactorizationMachineClassifier(solver="adagrad", **options) for _ in range(2)]
    for _ in range(3):
        epochs[0].partial_fit(mopn.RowBlocks(callables(X, y)))
        for number, (part, labels) in enumerate(zip(cut(X), cut(y), strict=True)):
            epochs[1].partial_fit(part, labels, classes=["a", "b"] if number == 0 else None)
    np.testing.assert_array_equal(epochs[0].model_.factors, epochs[1].model_.factors)

"""Sums over blocks on a cluster: the tree, faults of data, and clusters that fail."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.data.row_blocks import RawBlock, row_by_row
from mopn.data.rows import tree_sum
from mopn.solvers import ConditionalGradient, Status
from mopn.solvers.tools.blas_threads import n_workers

distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
of_dask = pytest.importorskip("mopn.dask.blocks")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 4))
Y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] * X[:, 1], [-0.1, 0.1])]
WEIGHTS = RNG.uniform(0.5, 2.0, 200)
CHUNKS = (60, 7, 90, 43)
SOLVER = ConditionalGradient(refit="none")
# Seconds after which a test gives up.
LIMIT = 300


def chunked(array, chunks=CHUNKS):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


def parts(array):
    return np.split(array, np.cumsum(CHUNKS)[:-1])


def problem(X, y=None, sample_weight=None, classes=None, client=None, **options):
    """The problem of blocks on the workers, as fits make it."""
    held = of_dask.dask_blocks(X, chunked(Y) if y is None else y, sample_weight, classes, client, LIMIT)
    chunks = of_dask.arranged(held, held.count(), row_by_row)
    return mopn.NetworkProblem(chunks, None, strength=1.0, **options)


def run(problem, **options):
    """Take a step: some ninety passes."""
    return mopn.minimize(problem, SOLVER, tol=1e-9, max_iter=1, **options)


def values(problem):
    """Facts about a network from a few passes: its objective, the gradient of refits and its features' slopes."""
    rng = np.random.default_rng(1)
    shapes = (3, problem.rows.shape[1]), (3, problem.losses.n_outputs)
    point = problem.start(tuple(rng.standard_normal(shape) for shape in shapes))
    joint, at = problem.joint(point), problem.output_gradient(point)
    return [at.value, problem.rows.crossed(point.features, at.G), *joint.value_gradient(joint.start())[:2]]


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def assert_same(found, expected):
    for name in ("basis", "weights", "fun", "gap"):
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.fixture(scope="module")
def undisturbed():
    return run(mopn.NetworkProblem(mopn.RowBlocks(parts(X), Y), strength=1.0))


class AtOnce:
    """A client that computes at once, in this process."""

    status = "running"

    def get(self, graph, keys, sync):
        return [
            SimpleNamespace(exception=lambda timeout: None, result=lambda timeout, value=value: value)
            for value in dask.get(graph, keys)
        ]


@pytest.mark.parametrize("large", [0, 1 << 20], ids=["parameters of their own", "in each task"])
def test_terms_are_added_in_the_tree_of_one_process(monkeypatch, large):
    monkeypatch.setattr(of_dask, "_LARGE_TASK_BYTES", large)
    for n in [*range(1, 34), 63, 64, 65, 200]:
        expected = tree_sum(map(str, range(n)), lambda a, b: f"({a} {b})")
        for size in (1, 2, 4, 16):
            groups = [[RawBlock(-1, X[:1], None, None)] * min(size, n - first) for first in range(0, n, size)]
            blocks = of_dask.DaskBlocks(AtOnce(), groups, LIMIT, size=size)
            assert blocks.reduce(lambda block: str(block.number), lambda a, b: f"({a} {b})") == expected


@pytest.mark.parametrize(
    ("n", "numbers", "threads", "size"),
    [(64, 10, 2, 32), (64, 10, 32, 2), (64, 10, 33, 1), (64, 10, 0, 64), (64, 1 << 18, 2, 4), (64, 1 << 20, 2, 1)],
)
def test_small_blocks_are_taken_together_if_all_threads_have_work(n, numbers, threads, size):
    client = AtOnce()
    client.scheduler = SimpleNamespace(ncores="ncores")
    client.sync = lambda what, **_: {"tcp://a": threads} if threads else {}
    client.get = lambda graph, keys, sync: dask.get(graph, keys)
    blocks = of_dask.DaskBlocks(client, [[RawBlock(i, X[:1], None, None)] for i in range(n)], LIMIT)
    grouped = blocks.grouped(n * numbers)
    assert (grouped.size, [len(group) for group in grouped.groups]) == (size, [size] * (n // size))
    assert [block.number for group in grouped.groups for block in group] == list(range(n))


def test_tasks_keep_one_thread_and_shared_parameters():
    big = np.ones(1000)
    shared = [big, {"again": big}]
    sent = cloudpickle.dumps((lambda block: (n_workers(), shared[0] is shared[1]["again"]), None))
    assert of_dask._call(sent, 0, [RawBlock(-1, X, None, None)]) == (1, True)
    assert len(sent) < 2 * big.nbytes


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.slow
def test_sums_are_those_of_blocks_in_one_process(client, form):
    options = {"augment": True, "center": True, "scale": "features", "alpha": 1.0, "norm": "l1"}
    local = mopn.NetworkProblem(mopn.RowBlocks([form(part) for part in parts(X)], Y, WEIGHTS), strength=1.0, **options)
    spread = problem(chunked(X).map_blocks(form), sample_weight=chunked(WEIGHTS), **options)
    assert_equal(values(spread), values(local))


def test_chunks_of_any_sizes(client):
    """Fewer than workers, others of y than of X, and unknown ones."""
    local = mopn.NetworkProblem(mopn.RowBlocks([X], Y), strength=1.0)
    assert_equal(values(problem(chunked(X, (200,)))), values(local))
    assert_equal(values(problem(chunked(X), chunked(Y, (100, 100)))), values(problem(chunked(X))))
    unknown, y = chunked(X), chunked(Y)
    for array in (unknown, y):
        array._chunks = ((np.nan,) * len(CHUNKS), *array.chunks[1:])
    assert_equal(values(problem(unknown, y)), values(problem(chunked(X))))
    with pytest.raises(ValueError, match=r"X has 4 blocks of rows and y 2, and their sizes are not known"):
        problem(unknown, chunked(Y, (100, 100)))


def test_what_is_wrong_with_blocks(client):
    holes = np.tile(X, (2, 1))
    holes[7 * 40 + 12, 1] = np.nan
    with pytest.raises(ValueError, match=r"block 7: row 12 of X contains NaN"):
        problem(da.from_array(holes, chunks=(40, 4)), da.from_array(np.tile(Y, 2), chunks=40))
    with pytest.raises(ValueError, match=r"block 1 has 3 features, and block 0 has 4"):
        problem(chunked(X).map_blocks(lambda x: x[:, : 3 if len(x) == 7 else 4], dtype=float, meta=X[:0]))
    with pytest.raises(ValueError, match="classes are for multi-class losses"):
        problem(chunked(X), chunked(X), loss="squared", classes=["a", "b"])


def test_what_is_no_data_in_chunks():
    for data, options, message in (
        (X, {}, "X must be a dask array or DataFrame"),
        (chunked(X), {"sample_weight": WEIGHTS}, "sample_weight must be a dask array"),
        (da.from_array(X, chunks=(100, 2)), {}, "X has 2 chunks of columns.*rechunk"),
        (chunked(X), {"y": da.from_array(Y[:100], chunks=50)}, "X has 200 rows, y has 100"),
        (chunked(Y), {}, "two-dimensional"),
        (chunked(X), {}, "no Dask client"),
        (chunked(X), {"client": "tcp://127.0.0.1:1"}, "client must be"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            problem(data, **options)


def test_a_block_that_raises(client):
    def read(part):
        if len(part) == CHUNKS[2]:
            raise RuntimeError("no such table")
        return part

    with pytest.raises(OSError, match=r"block 2 cannot be computed: RuntimeError\('no such table'\)"):
        problem(chunked(X).map_blocks(read, dtype=float, meta=X[:0]))


class NotThere:
    """A task that the scheduler cannot read, as with a module that only this process has."""

    def __reduce__(self):
        return missing, ()


def missing():
    raise ModuleNotFoundError("No module named 'queries'")


def test_what_the_scheduler_cannot_read(client):
    array = chunked(X).map_blocks(lambda x, reader: x, NotThere(), dtype=float, meta=X[:0])
    with pytest.raises(OSError, match=r"block 0 cannot be computed: .*task graph.*different\s+environments"):
        problem(array)


@pytest.mark.parametrize("restarts", [(), ((0.0, {}),)], ids=["unknown", "memory"])
def test_what_ends_workers_is_said(restarts, monkeypatch):
    monkeypatch.setattr(of_dask, "_ANSWER_SECONDS", 0.0)
    answers = {"ncores": {}, "events": restarts}
    scheduler = SimpleNamespace(ncores="ncores", events="events")
    client = SimpleNamespace(status="running", scheduler=scheduler, sync=lambda what, **_: answers[what])
    killed = distributed.scheduler.KilledWorker("mopn-rows", SimpleNamespace(address="tcp://a"), 3)
    blocks = of_dask.DaskBlocks(client, [SimpleNamespace(status="finished")], 0.0)
    memory = "workers exceeded their limit of memory" if restarts else "often they lack memory"
    with pytest.raises(ConnectionError, match=f"a task ended a Dask worker several times: .*{memory}"):
        blocks._raise(killed)
    with pytest.raises(TimeoutError, match="no worker for 0 seconds" + (f": {memory}" if restarts else "$")):
        blocks._check_cluster(0.0)

    def closed(*_, **__):
        raise distributed.comm.CommClosedError("closed")

    client.sync = closed
    with pytest.raises(ConnectionError, match=r"the Dask scheduler does not answer: closed; the blocks .* are lost"):
        blocks._check_cluster(0.0)


def test_blocks_without_rows(client):
    mask = np.arange(200) >= 67
    masked = [chunked(array)[da.from_array(mask, chunks=(CHUNKS,))] for array in (X, Y, WEIGHTS)]
    left = [part[keep] for part, keep in zip(parts(X), parts(mask), strict=True)]
    assert [len(part) for part in left] == [0, 0, 90, 43]
    local = mopn.NetworkProblem(mopn.RowBlocks(left, Y[mask], WEIGHTS[mask]), strength=1.0)
    assert_equal(values(problem(masked[0], masked[1], sample_weight=masked[2])), values(local))
    with pytest.raises(ValueError, match="X is empty: its blocks have no rows"):
        problem(*(array.map_blocks(lambda part: part[:0], meta=array._meta) for array in (chunked(X), chunked(Y))))


def test_a_block_of_a_group_is_named(client, monkeypatch):
    monkeypatch.setattr(of_dask.DaskBlocks, "_ask_scheduler", lambda *_, **__: {"tcp://a": 1})
    blocks = problem(chunked(X, (10,) * 20), chunked(Y, (10,) * 20)).rows.chunks
    assert blocks.size == 16

    def fails(block):
        raise RuntimeError("no memory")

    lost = blocks.replaced(fails, None)
    with pytest.raises(OSError, match=r"a block of (0 to 15|16 to 31) cannot be computed: RuntimeError\('no memory'\)"):
        lost.reduce(lambda block: 0, lambda a, b: a)

    def refuses(block):
        if block.number == 11:
            raise ValueError("block 11: row 2 is odd")
        return block

    with pytest.raises(ValueError, match=r"^block 11: row 2 is odd$"):
        blocks.replaced(refuses, None).reduce(lambda block: 0, lambda a, b: a)


def test_a_pass_that_takes_too_long(client, monkeypatch):
    monkeypatch.setattr(of_dask, "_PART_SECONDS", 0.1)
    spread = problem(chunked(X))
    spread.rows.chunks.timeout = 0.2

    def sleeps(block):
        time.sleep(1.0)

    with pytest.raises(TimeoutError, match="took more than"):
        spread.rows.sum(sleeps)


@pytest.mark.slow
def test_a_worker_dies_in_a_run(client, undisturbed):
    """The blocks that it held are computed anew, and the cluster starts another one."""
    spread = problem(chunked(X))

    def disturb(intermediate_result):
        if intermediate_result.nit == 0:
            held = client.has_what()
            address = max(held, key=lambda worker: len(held[worker]))
            os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)

    assert_same(run(spread, callback=disturb), undisturbed)
    client.wait_for_workers(2, timeout=LIMIT)


@pytest.mark.slow
def test_workers_join_late(undisturbed, threads, monkeypatch):
    with threads(0) as (cluster, _):
        monkeypatch.setattr(of_dask, "_PART_SECONDS", 0.1)
        with monkeypatch.context() as impatient:
            impatient.setattr(of_dask, "_ANSWER_SECONDS", 0.5)
            with pytest.raises(TimeoutError, match="has had no worker"):
                problem(chunked(X))
        late = threading.Timer(0.5, cluster.scale, (1,))
        late.start()

        def more(intermediate_result):
            cluster.scale(2)

        assert_same(run(problem(chunked(X)), callback=more), undisturbed)
        late.join()


@pytest.mark.slow
def test_workers_leave(undisturbed, threads):
    """One after the other; the last ones take over their blocks."""
    with threads(3) as (_, client):
        spread, left = problem(chunked(X)), []

        def leave(intermediate_result):
            workers = list(client.scheduler_info()["workers"])
            client.retire_workers(workers[:1])
            left.append(len(workers) - 1)

        assert_same(run(spread, callback=leave), undisturbed)
        assert left == [2, 1]


@pytest.mark.slow
def test_workers_that_spill_to_disk(tmp_path, threads):
    """More rows than the memory that their worker takes for data: it reads them from disk in every pass."""
    rows, y = np.repeat(X, 250, axis=0), np.repeat(Y, 250)
    local = mopn.NetworkProblem(mopn.RowBlocks(np.split(rows, 10), y), strength=1.0)
    limits = {"target": 0.5, "spill": False, "pause": False, "terminate": False}
    with (
        dask.config.set({f"distributed.worker.memory.{name}": value for name, value in limits.items()}),
        threads(1, memory_limit=rows.nbytes // 2, local_directory=tmp_path) as (cluster, _),
    ):
        spread = problem(chunked(rows, (5000,) * 10), chunked(y, (5000,) * 10))
        assert_equal(values(spread), values(local))
        (worker,) = cluster.workers.values()
        assert worker.data.disk


def start(program, file, *options):
    """Start a program of Dask in a process of its own."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--scheduler-file", str(file), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_a_scheduler_dies(tmp_path):
    file = tmp_path / "scheduler.json"
    scheduler = start("scheduler", file, "--port", "0", "--dashboard-address", ":0")
    worker = start("worker", file, "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
    try:
        with distributed.Client(scheduler_file=str(file), timeout=60) as client:
            client.wait_for_workers(1, timeout=LIMIT)

            def kill(intermediate_result):
                if intermediate_result.nit == 1:
                    scheduler.kill()
                    scheduler.wait()

            solver = ConditionalGradient(refit="full", max_units=3, schedule="fill")
            result = mopn.minimize(problem(chunked(X)), solver, tol=1e-9, callback=kill)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert result.status == Status.FAILED
    assert re.search("the Dask scheduler does not answer: .*; the blocks of rows .* are lost", str(result.error))
    assert len(result.basis) >= 1


@pytest.mark.parametrize("what", ["client", "cluster", "data", "workers"])
@pytest.mark.slow
def test_the_best_point_survives_the_cluster(what, threads, monkeypatch):
    """It is lost in the middle of the first refit; no pass waits for the cluster after the one that lost it."""
    monkeypatch.setattr(of_dask, "_PART_SECONDS", 0.1)
    with threads(1) as (cluster, client):
        spread = problem(chunked(X))
        monkeypatch.setattr(of_dask, "_ANSWER_SECONDS", 0.5)
        chunks, passes, late = spread.rows.chunks, [], []
        ends = {
            "client": client.close,
            "cluster": cluster.close,
            "data": lambda: client.cancel(chunks.groups, force=True),
            "workers": lambda: cluster.scale(0),
        }
        tasks = chunks._tasks

        def passing(name, *task):
            if chunks._lost is not None:
                late.append(name)
            passes.append(name)
            if len(passes) == 25:
                ends[what]()
            return tasks(name, *task)

        monkeypatch.setattr(chunks, "_tasks", passing)
        solver = ConditionalGradient(refit="full", max_units=3, schedule="fill")
        result = mopn.minimize(spread, solver, tol=1e-9, callback=lambda intermediate_result: passes.clear())
    assert result.status == Status.FAILED
    assert isinstance(result.error, OSError)
    assert re.search("Dask (client|cluster|scheduler)", str(result.error))
    assert len(result.basis) == 3
    assert not result.gap_is_proven
    assert not late


SCRIPT = """
import dask, dask.array as da, numpy as np, mopn, mopn.dask, mopn.estimators
from distributed import Client
X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
if __name__ == "__main__":
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
        data = da.from_array(X, chunks=(20, 3)) + 0.0, da.from_array(y, chunks=30)
        options = {"strength": 2.0, "refit": "none", "max_units": 1, "tol": 0.9}
        fitted = mopn.dask.fit(mopn.estimators.MultiOutputPNClassifier(**options), *data, classes=["yes", "no"])
        assert mopn.dask.predict(fitted, data[0], method="predict_proba").compute().shape == (60, 2)
        assert mopn.dask.predict(fitted, data[0]).compute().tolist() == fitted.predict(X).tolist()
"""


@pytest.mark.slow
def test_arrays_with_query_planning():
    """It is on or off in all of a process; the other tests have the default."""
    environment = os.environ | {"DASK_ARRAY__QUERY_PLANNING": "True"}
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, timeout=LIMIT, check=True)

"""A campaign: the categories, the call of a number, and the report.

Each call is made in a fork, within limits of time and memory.
"""

import contextlib
import multiprocessing
import os
import signal
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import count

import numba
import numpy as np

from tests.fuzz.changes import CHANGES, changed, two_changes
from tests.fuzz.checks import KINDS, HangError, Record, observe
from tests.fuzz.relations import RELATIONS, relation

# How to draw a call of each kind, and the share of such calls.
CATEGORIES = {
    **{name: (partial(changed, categories=(name,)), weight) for name, (_, _, weight) in CHANGES.items()},
    "two changes": (two_changes, 6),
    **{f"relation: {name}": (partial(relation, name=name), 2) for name in RELATIONS},
}
_WEIGHTS = np.array([weight for _, weight in CATEGORIES.values()])


def category_of(seed, number):
    """Return the category of a call."""
    return str(np.random.default_rng((seed, number)).choice(list(CATEGORIES), p=_WEIGHTS / _WEIGHTS.sum()))


def drawn(seed, number):
    """Return a call of a campaign, a function of the seed and the number alone, and its record before it is made."""
    category = category_of(seed, number)
    trial = CATEGORIES[category][0](np.random.default_rng((seed, number, 1)))
    return Record(number, category, trial.interface, trial.change), trial


def numbers(seed, category):
    """Yield the numbers of all calls, or of all calls of a category."""
    return (number for number in count() if category is None or category_of(seed, number) == category)


# -- processes ---------------------------------------------------------------------------------------------------------

_MEMORY = 6 << 30
# Seconds that a fork has to notice by itself that its call hangs.
_GRACE = 20


def run_all(seed, numbers, jobs, draw=drawn, limit=60):
    """Make calls of a campaign; yield their records as they come. A call has ``limit`` seconds."""
    executor = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _prepare, (draw, seed))
    try:
        calls = [executor.submit(_call, draw, seed, limit, number) for number in numbers]
        for call in as_completed(calls):
            yield call.result()
    finally:
        executor.shutdown(cancel_futures=True)


def _prepare(draw, seed):
    """Silence a process, and make the tables that its forks need."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["MPLBACKEND"] = "Agg"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Numba's own tables take a tenth of a second in each fork otherwise.
    numba.njit(_nothing)()
    for number in range(5):
        draw(seed, number)


def _nothing():
    pass


def _call(draw, seed, limit, number):
    """Return the record of a call that a fork makes, which may die."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        _make_call(writer, draw, seed, limit, number)
    writer.close()
    record = Record(number, "", "", "")
    try:
        while not record.kind:
            if not reader.poll(limit + _GRACE):
                return record._replace(kind="hang", detail="the process was ended")
            record = reader.recv()
        return record
    except EOFError:
        return record._replace(kind="crash")
    finally:
        reader.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _make_call(writer, draw, seed, limit, number):
    """Send the record of a call before it is made and after it, and end this process without any clean-up."""
    import resource  # not on every system

    os.setsid()
    with contextlib.suppress(ValueError):
        # macOS has no such limit.
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, _over)
    record, trial = draw(seed, number)
    writer.send(record)
    signal.alarm(limit)
    began = time.perf_counter()
    kind, detail, _ = observe(trial)
    signal.alarm(0)
    writer.send(record._replace(kind=kind, detail=detail, seconds=time.perf_counter() - began))
    os._exit(0)


def _over(number, frame):
    raise HangError("the limit of time is over")


# -- the report --------------------------------------------------------------------------------------------------------


def report(records, seed):
    """Return the counts by category and by interface, and the first call of every distinct fault, in Markdown."""
    seconds = sum(record.seconds for record in records)
    head = f"{len(records)} calls of seed {seed}, {seconds:.0f} s in calls."
    tables = _counts(records, "category"), _counts(records, "interface")
    return "\n\n".join([head, *tables, "\n".join(_faults(records, seed))])


def _counts(records, by):
    counts = Counter((getattr(record, by), record.kind) for record in records)
    every = Counter(record.kind for record in records)
    rows = [[by, "calls", *KINDS], ["---"] * (2 + len(KINDS))]
    for name in sorted({name for name, _ in counts}):
        row = [counts[name, kind] for kind in KINDS]
        rows.append([name, str(sum(row)), *(str(count or "") for count in row)])
    rows.append(["**all**", str(len(records)), *(str(every[kind] or "") for kind in KINDS)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _faults(records, seed):
    """Yield the faults, as a list: faults of one kind and place are one."""
    groups = {}
    for record in sorted(records):
        if record.kind not in ("clear", "ok"):
            groups.setdefault((record.kind, _place(record)), []).append(record)
    for (kind, _), found in sorted(groups.items(), key=lambda group: (KINDS.index(group[0][0]), -len(group[1]))):
        first = found[0]
        again = f"`python -m tests.fuzz --seed {seed} --case {first.number}`"
        yield f"* **{kind}**, {len(found)}: {first.interface}, {first.change}: `{first.detail}`; {again}"


def _place(record):
    """Return the place of a fault: the last line of mopn's in the traceback, or the relation that does not hold."""
    line = record.detail.rsplit("[", 1)[-1]
    return f"{record.category}, {record.interface}" if record.kind in ("crash", "hang") or "checks.py" in line else line

"""Signals wait for the end of imports and compilations."""

import ast
import contextlib
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import mopn
from mopn.solvers.tools.signals import signals_later

ROOT = Path(__file__).parents[3]
FILES = sorted(path.relative_to(ROOT) for folder in ("mopn", "solvers") for path in (ROOT / folder).rglob("*.py"))
# Packages that ``import mopn`` imports.
FIRST = {"mopn", "numpy", "scipy", "__future__"} | sys.stdlib_module_names
# Packages whose modules are imported while signals wait.
GUARDED = (Path("mopn/estimators"), Path("mopn/dask"))
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGUSR1") if hasattr(signal, name)]
every_signal = pytest.mark.parametrize("number", SIGNALS, ids=[number.name for number in SIGNALS])


class HandledError(Exception):
    """Raised by the handler of a signal."""


def fail(number, frame):
    raise HandledError(number)


@contextlib.contextmanager
def handled(*numbers, by=fail):
    before = [signal.signal(number, by) for number in numbers]
    try:
        yield
        assert all(signal.getsignal(number) is by for number in numbers)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def raised_later(*numbers):
    """Raise signals in a block that is to end."""
    ended = []
    try:
        with signals_later():
            for number in numbers:
                signal.raise_signal(number)
            ended.append(True)
    finally:
        assert ended


@every_signal
def test_signals_wait_for_the_end_of_a_block(number):
    with handled(number), pytest.raises(HandledError):
        raised_later(number, number)


def test_every_handler_is_called_once_although_the_first_raises():
    called = []

    def note(number, frame):
        called.append(number)
        raise HandledError

    with handled(*SIGNALS, by=note), pytest.raises(HandledError):
        raised_later(*SIGNALS, *SIGNALS)
    assert called == SIGNALS


def test_ignored_signals_and_new_handlers_stay():
    with handled(SIGNALS[0], by=signal.SIG_IGN), signals_later():
        signal.raise_signal(SIGNALS[0])
    before = signal.getsignal(SIGNALS[0])
    try:
        with signals_later():
            signal.signal(SIGNALS[0], fail)
        assert signal.getsignal(SIGNALS[0]) is fail
    finally:
        signal.signal(SIGNALS[0], before)
    with ThreadPoolExecutor(1) as threads:  # none of them may set handlers
        assert threads.submit(lambda: signals_later().__enter__()).result() is None


@every_signal
def test_a_package_is_imported_to_its_end(number, tmp_path, monkeypatch):
    (tmp_path / "pandas.py").write_text(f"import signal\n\nsignal.raise_signal({int(number)})\nDataFrame = dict\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    trace = mopn.solvers.Trace()
    trace.append(fun=1.0)
    with handled(number), pytest.raises(HandledError):
        trace.to_frame()
    assert trace.to_frame() == {"fun": [1.0]}


def late_imports(node, *, guarded=False):
    """The imports under a node that are outside of signals_later, and not for type checkers alone."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.With):
        guarded = guarded or any(ast.unparse(item.context_expr) == "signals_later()" for item in node.items)
    if isinstance(node, ast.Import | ast.ImportFrom) and not guarded:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
        yield from (name for name in names if name.partition(".")[0] not in FIRST)
    for child in ast.iter_child_nodes(node):
        yield from late_imports(child, guarded=guarded)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_packages_that_are_imported_on_use_are_so_while_signals_wait(path):
    if path.parent in GUARDED and path.name != "__init__.py":
        return
    assert not list(late_imports(ast.parse((ROOT / path).read_text())))

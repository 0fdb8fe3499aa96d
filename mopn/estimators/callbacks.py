"""How fits are watched: printed lines, and scikit-learn's callbacks, for which fits, folds and iterations are tasks.

scikit-learn has such callbacks since 1.9. With an earlier one, estimators cannot be given any.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self, TypeVar, cast

from mopn.data.chunked_rows import Chunks
from mopn.data.row_blocks import RowBlocks
from mopn.solvers import Result
from mopn.solvers.tools.decorators import quiet

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _managed
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's."""

    def _managed(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "Task", "begin_fit", "print_progress", "samples_of", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])
# Fitted attributes with which a copy of the estimator predicts, computed only where a callback asks for that copy.
Attributes = dict[str, Any] | Callable[[], dict[str, Any]]


def print_progress(verbose: int, text: str) -> None:
    """Print a line at once, if ``verbose`` is not 0."""
    if verbose:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def with_callbacks(method: Method) -> Method:
    """Let the callbacks of an estimator be torn down at the end of a method, whatever ends it."""
    return cast("Method", _managed(method))


def samples_of(X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the samples of a task for callbacks, which get those that are in memory."""
    if isinstance(X, RowBlocks | Chunks):
        return {}
    return {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}


def begin_fit(estimator: Any, data: dict[str, Any], n_subtasks: int | None) -> Task:
    """Begin the task of a fit; ``n_subtasks`` is the largest possible number, or None if it is unknown."""
    if not hasattr(estimator, "_skl_callbacks"):
        return Task(None, None, {})  # it keeps no data alive
    return Task(estimator, estimator._init_callback_context(max_subtasks=n_subtasks), data).begin()


class Task:
    """A node of scikit-learn's tree of callbacks with ``samples_of``; nothing without callbacks."""

    def __init__(self, estimator: Any, context: Any, data: dict[str, Any]) -> None:
        self.estimator, self.context, self.data = estimator, context, data

    def subtask(self, name: str, n_subtasks: int | None = 0, data: dict[str, Any] | None = None) -> Task:
        """Return a subtask that is still to begin; of the same samples by default."""
        if self.context is None:
            return self
        context = self.context.subcontext(name, max_subtasks=n_subtasks)
        return Task(self.estimator, context, self.data if data is None else data)

    def begin(self, fitted: Attributes | None = None) -> Self:
        """Begin, at a point that has these attributes."""
        if self.context is not None:
            self.context.call_on_fit_task_begin(estimator=self.estimator, reconstruction_attributes=fitted, **self.data)
        return self

    def end(self, fitted: Attributes | None = None) -> bool:
        """End, at a point that has these attributes; return whether a callback stops the tasks of this level."""
        if self.context is None:
            return False
        return self.context.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=fitted, **self.data
        )

    def handed_on(self, estimator: Any) -> AbstractContextManager[None]:
        return nullcontext() if self.context is None else self.context.propagate_callback_context(estimator)

    @contextmanager
    def iterations(
        self, fitted: Callable[[Result], dict[str, Any]], callback: Callable[..., Any] | None = None
    ) -> Iterator[Callable[..., Any] | None]:
        """Yield the callback that makes every iteration a subtask, after the estimator's own; or None."""
        if self.context is None:
            yield callback
            return
        each = _Iterations(self, fitted, callback)
        yield each
        each.end()


class _Iterations:
    """A callback of ``minimize``: a task ends with every iteration, and the next one begins."""

    def __init__(
        self, fit: Task, fitted: Callable[[Result], dict[str, Any]], callback: Callable[..., Any] | None
    ) -> None:
        self.fit, self.fitted, self.callback = fit, fitted, callback
        self.best: Result | None = None
        self.iteration: Task | None = None

    def __call__(self, intermediate_result: Result) -> None:
        # A fit that stops here returns the best point, as the driver knows it.
        if self.best is None or intermediate_result.fun < self.best.fun:
            self.best = intermediate_result
        try:
            if self.callback is not None:
                self.callback(intermediate_result=intermediate_result)
        finally:
            stop = self.end(self._attributes)
        if stop:
            raise StopIteration
        if intermediate_result.nit != self.fit.context.max_subtasks:
            self.iteration = self.fit.subtask("iteration").begin(self._attributes)

    def end(self, fitted: Attributes | None = None) -> bool:
        """End the iteration under way, if there is one; without attributes it led to no point."""
        iteration, self.iteration = self.iteration, None
        return iteration is not None and iteration.end(fitted)

    @quiet()
    def _attributes(self) -> dict[str, Any]:
        assert self.best is not None
        return self.fitted(self.best)

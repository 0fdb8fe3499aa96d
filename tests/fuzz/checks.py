"""The calls of a campaign, the conditions on every call that returns, and the outcomes of a call.

crash
    The process died.
hang
    It took longer than the limit.
wrong
    Something that must be true is not: here, or in :mod:`tests.fuzz.relations`.
nonfinite
    A model or a prediction with NaN or infinity.
unclear
    An exception that is not documented, was not raised on purpose, or does not name an argument.
numpy_warning
    A RuntimeWarning or ComplexWarning of NumPy's.
other_warning
    Any other warning that is not documented.
clear
    A documented exception, raised on purpose, that names an argument.
ok
    The call returned, and all that must be true is.
"""

import linecache
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import mopn

KINDS = ("crash", "hang", "wrong", "nonfinite", "unclear", "numpy_warning", "other_warning", "clear", "ok")
FAULTS = KINDS[:6]
# Warnings that the interfaces document, or scikit-learn's of a column vector y.
_DOCUMENTED = (ConvergenceWarning, DataConversionWarning)
_OWN = tuple(str(Path(package.__file__).parent) for package in (mopn, mopn.solvers))
_THEIRS = tuple(str(Path(package.__file__).parent) for package in (sklearn, joblib))
# What scikit-learn's checks call X, y and random_state.
_THEIR_WORDS = frozenset({"array", "sample", "feature", "label", "clas", "data", "randomstate"})


class HangError(BaseException):
    """The time limit of a call is over; nothing on the way catches it."""


class WrongError(AssertionError):
    """Something that must be true is not."""


class NotFiniteError(AssertionError):
    """A model or a prediction holds NaN or infinity."""


class Trial(NamedTuple):
    """A call: the name of its interface, its oddity, and how to make it and check its value.

    ``names`` are the words that a refusal may say, ``refusals`` the documented errors of the interface.
    """

    interface: str
    change: str
    run: Callable[[], Any]
    names: frozenset[str]
    refusals: tuple[type[BaseException], ...] = (ValueError, TypeError)


class Found(NamedTuple):
    """The findings of a call: numbers, which must be finite, the objective, its gap, and the object (a result, say)."""

    numbers: dict[str, np.ndarray]
    fun: float | None = None
    gap: float | None = None
    made: Any = None


class Outcome(NamedTuple):
    """A kind, the last line of the traceback, and the traceback."""

    kind: str
    detail: str = ""
    trace: str = ""


class Record(NamedTuple):
    """A call of a campaign, and what became of it."""

    number: int
    category: str
    interface: str
    change: str
    kind: str = ""
    detail: str = ""
    seconds: float = 0.0


# -- what must be true -------------------------------------------------------------------------------------------------


def require(condition, text):
    """Raise ``WrongError`` unless a condition holds."""
    if not condition:
        raise WrongError(text)


def check_found(found):
    """Check that all numbers are finite, and that the gap is one."""
    numbers = found.numbers if found.fun is None else found.numbers | {"the objective": np.asarray(found.fun)}
    for name, value in numbers.items():
        if value.dtype.kind in "fc" and not np.isfinite(value).all():
            raise NotFiniteError(f"{name} holds NaN or infinity")
    require(found.gap is None or found.gap >= 0, f"the gap is {found.gap}")


def surroundings():
    """Return what belongs to the process and not to a call."""
    return {
        "np.random": fingerprint(list(np.random.get_state())),  # noqa: NPY002
        "np.errstate": np.geterr(),
        "the folder": os.getcwd(),
        "sys.path": list(sys.path),
        "the handler of SIGINT": signal.getsignal(signal.SIGINT),
    }


def fingerprint(value):
    """Return what changes if the caller's arrays are written to."""
    if isinstance(value, np.ndarray):
        content = value.tobytes() if value.dtype != object else repr(value.tolist())
        return value.shape, value.strides, str(value.dtype), content
    if sparse.issparse(value):
        return fingerprint({name: part for name, part in vars(value).items() if isinstance(part, np.ndarray)})
    if isinstance(value, dict):
        return {name: fingerprint(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [fingerprint(part) for part in value]
    if hasattr(value, "to_numpy"):
        return repr(value), fingerprint(np.asarray(value))
    return None


# -- what becomes of a call --------------------------------------------------------------------------------------------


def observe(trial):
    """Run a trial, and return its outcome."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in (RuntimeWarning, np.exceptions.ComplexWarning):
            warnings.simplefilter("error", category)
        try:
            trial.run()
        except (Exception, HangError) as error:
            return Outcome(_kind(error, trial), _last_line(error), "".join(traceback.format_exception(error)))
    others = [warning for warning in caught if not issubclass(warning.category, _DOCUMENTED)]
    if others:
        return Outcome("other_warning", f"{others[0].category.__name__}: {others[0].message}"[:300], str(others[0]))
    return Outcome("ok")


def _kind(error, trial):
    for kind, name in {HangError: "hang", WrongError: "wrong", NotFiniteError: "nonfinite"}.items():
        if isinstance(error, kind):
            return name
    if isinstance(error, Warning):
        # Those in scikit-learn's checks are scikit-learn's.
        files = [file for file, _ in _places(error) if file.startswith((*_OWN, *_THEIRS))]
        return "other_warning" if files and files[-1].startswith(_THEIRS) else "numpy_warning"
    return "clear" if _is_clear(error, trial) else "unclear"


def _is_clear(error, trial):
    """Whether an exception is documented, raised on purpose, and names an argument."""
    if isinstance(error, MemoryError):
        return MemoryError in trial.refusals
    file, line = _places(error)[-1]
    if not isinstance(error, trial.refusals) or not line.startswith("raise"):
        return False
    words, names = _words(str(error)), _words(" ".join(trial.names))
    if file.startswith(_THEIRS):
        return bool(words & (names | _THEIR_WORDS))
    return file.startswith(_OWN) and bool(words & names)


def _words(text):
    """Return the words of a text, in the singular."""
    return {word.lower().removesuffix("s") for word in re.findall(r"\w+", text)}


def _places(error):
    """Return the files and the lines of a traceback."""
    frames = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    return [(file, linecache.getline(file, number).strip()) for file, number in frames]


def _last_line(error):
    """Return the exception in one line, and the last place in mopn, or here."""
    places = _places(error)
    file, line = next((place for place in reversed(places) if place[0].startswith(_OWN)), places[-1])
    text = traceback.format_exception_only(error)[-1].strip().replace("\n", " ")
    return f"{text[:200]} [{Path(file).name}: {line[:60]}]"

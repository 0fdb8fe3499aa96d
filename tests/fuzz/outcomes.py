"""What becomes of a call.

crash
    The process died.
hang
    It took longer than the limit.
wrong
    Something that must be true is not: see :mod:`tests.fuzz.checks` and :mod:`tests.fuzz.relations`.
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
import re
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import mopn
from tests.fuzz.inputs import callbacks
from tests.fuzz.trial import NotFiniteError, Trial, WrongError

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


def observe(trial: Trial) -> Outcome:
    """Run a trial."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in (RuntimeWarning, np.exceptions.ComplexWarning):
            warnings.simplefilter("error", category)
        try:
            trial.run()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and KeyboardInterrupt not in trial.refusals:
                raise
            return Outcome(_kind(error, trial), _last_line(error), "".join(traceback.format_exception(error)))
    others = [warning for warning in caught if not issubclass(warning.category, _DOCUMENTED)]
    if others:
        return Outcome("other_warning", f"{others[0].category.__name__}: {others[0].message}"[:300], str(others[0]))
    return Outcome("ok")


def _kind(error: BaseException, trial: Trial) -> str:
    for kind, name in {HangError: "hang", WrongError: "wrong", NotFiniteError: "nonfinite"}.items():
        if isinstance(error, kind):
            return name
    if callbacks.raised(error) or isinstance(error, KeyboardInterrupt):
        return "ok"
    if isinstance(error, Warning):
        # Those in scikit-learn's checks are scikit-learn's.
        files = [file for file, _ in _places(error) if file.startswith((*_OWN, *_THEIRS))]
        return "other_warning" if files and files[-1].startswith(_THEIRS) else "numpy_warning"
    return "clear" if is_clear(error, trial) else "unclear"


def is_clear(error: BaseException, trial: Trial) -> bool:
    """Whether an exception is documented, raised on purpose, and names an argument."""
    if isinstance(error, MemoryError):
        return MemoryError in trial.refusals
    if isinstance(error, OSError) and OSError in trial.refusals and error.filename is not None:
        return True
    file, line = list(_places(error))[-1]
    if not isinstance(error, trial.refusals) or not line.startswith("raise"):
        return False
    words, names = _words(str(error)), _words(" ".join(trial.names))
    if file.startswith(_THEIRS):
        return bool(words & (names | _THEIR_WORDS))
    return file.startswith(_OWN) and bool(words & names)


def _words(text: str) -> set[str]:
    """Return the words of a text, in the singular."""
    return {word.lower().removesuffix("s") for word in re.findall(r"\w+", text)}


def _places(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield the files and the lines of a traceback."""
    for frame, number in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        yield file, linecache.getline(file, number).strip()


def _last_line(error: BaseException) -> str:
    """Return the exception in one line, and the last place in mopn, or here."""
    places = list(_places(error))
    file, line = next((place for place in reversed(places) if place[0].startswith(_OWN)), places[-1])
    text = traceback.format_exception_only(error)[-1].strip().replace("\n", " ")
    return f"{text[:200]} [{Path(file).name}: {line[:60]}]"

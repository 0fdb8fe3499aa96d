"""Model files: cut, damaged, with other fields, or of another kind."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mopn
from tests.fuzz.checks import Found, check_found, require
from tests.fuzz.functions import random_model
from tests.fuzz.inputs.arrays import ARRAYS
from tests.fuzz.trial import Trial, pick

__all__ = ["damaged_file", "failing_save", "odd_path"]

Generator = np.random.Generator
_NAME = "model_of_the_campaign"
_FIELDS = frozenset({
    "format", "basis", "weights", "kernel", "link", "augment", "offset", "classes", "target", "linear", "factors",
    "degree", "form", "lams", "theta", "w", "intercept", "dummies", "X", "features",
})  # fmt: skip


def damaged_file(rng: Generator) -> Trial:
    """Return the loading of a file that was damaged, and predictions of what was loaded."""
    model = random_model(rng)
    good = _saved(model)
    kind = pick(rng, sorted(_DAMAGES))
    content, may_differ = _DAMAGES[kind](rng, good)
    X = rng.uniform(-1, 1, (5, model.n_features))
    expected = model.outputs(X)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _NAME
            path.write_bytes(content)
            loaded = mopn.load(path)
        outputs = loaded.outputs(X)
        check_found(Found({"outputs": np.asarray(outputs), "predict": np.asarray(loaded.predict(X))}))
        same = np.array_equal(outputs, expected) and _fields(loaded) == _fields(model)
        require(may_differ or same, "a damaged file was loaded as another model")

    return Trial(f"load {type(model).__name__}", kind, run, _FIELDS | {_NAME}, (ValueError, OSError, TypeError))


def _saved(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _NAME
        model.save(path)
        return path.read_bytes()


def _fields(model: Any) -> list[str]:
    return [f"{name} {np.asarray(value).tolist()}" for name, value in vars(model).items()]


# -- damages: the bytes, and whether they may be another model ---------------------------------------------------------


def _cut(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    return good[: int(rng.integers(len(good)))], False


def _flipped(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    content = bytearray(good)
    content[int(rng.integers(len(good)))] ^= 1 << int(rng.integers(8))
    return bytes(content), False


def _flipped_in_directory(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    """Flip a bit of the zip's directory, which has no checksum."""
    content = bytearray(good)
    content[int(rng.integers(good.index(b"PK\x01\x02"), len(good)))] ^= 1 << int(rng.integers(8))
    return bytes(content), False


def _overwritten(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    first, length = int(rng.integers(len(good))), int(rng.integers(1, 64))
    return good[:first] + rng.bytes(length) + good[first + length :], False


def _without_part(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    first, length = int(rng.integers(len(good))), int(rng.integers(1, 64))
    return good[:first] + good[first + length :], False


def _arrays(good: bytes) -> dict[str, Any]:
    return dict(np.load(io.BytesIO(good)))


def _packed(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=True, **arrays)
    return file.getvalue()


def _missing_field(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    arrays = _arrays(good)
    del arrays[pick(rng, sorted(arrays))]
    return _packed(arrays), False


def _unknown_field(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    return _packed({**_arrays(good), "nonsense": np.ones(3)}), True


_VALUES: tuple[Callable[[Generator], Any], ...] = (
    lambda rng: np.array("nonsense"),
    lambda rng: np.array(""),
    lambda rng: np.array(b"bytes"),
    lambda rng: np.array(-1),
    lambda rng: np.array(10**18),
    lambda rng: np.array(np.nan),
    lambda rng: np.array(np.inf),
    lambda rng: np.array(1e300),
    lambda rng: np.array(1j),
    lambda rng: np.array(True),
    lambda rng: np.array(2.5),
    lambda rng: np.ones(2),
    lambda rng: np.ones((2, 2)),
    lambda rng: np.ones((2, 2, 2)),
    lambda rng: np.zeros((0, 3)),
    lambda rng: np.array(["a", "b"]),
    lambda rng: np.array(["2020-01-01"], dtype="M8[D]"),
    lambda rng: np.array([None, 1], dtype=object),
    lambda rng: np.zeros(2, dtype=[("a", "f8")]),
)


def _odd_field(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    arrays = _arrays(good)
    name = pick(rng, sorted(arrays))
    # The list of the fields' names holds no numbers.
    if arrays[name].ndim and arrays[name].dtype.kind == "f" and rng.uniform() < 0.5:
        odd = pick(rng, sorted(ARRAYS))
        arrays[name] = np.asarray(ARRAYS[odd](arrays[name]))
    else:
        arrays[name] = pick(rng, _VALUES)(rng)
    return _packed(arrays), True


def _of_another_kind(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    npy = io.BytesIO()
    np.save(npy, np.ones(3))
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    return pick(rng, (b"", b"PK", b"a text", rng.bytes(500), npy.getvalue(), empty.getvalue(), pickle.dumps(3))), True


class _Bomb:
    """A pickle that would run code."""

    def __reduce__(self) -> Any:
        return os._exit, (66,)


def _hostile(rng: Generator, good: bytes) -> tuple[bytes, bool]:
    arrays = _arrays(good)
    form = int(rng.integers(5))
    if form == 0:
        bomb = np.empty(1, dtype=object)
        bomb[0] = _Bomb()
        return _packed({**arrays, pick(rng, sorted(arrays)): bomb}), True
    name = pick(rng, sorted(arrays))
    members = {f"{key}.npy": _npy(value) for key, value in arrays.items()}
    if form == 1:
        members[f"{name}.npy"] = _header("(1000000000000000000,)")
    elif form == 2:
        members[f"{name}.npy"] = _header("(3,")
    elif form == 3:
        members["../outside.npy"] = _npy(np.ones(3))
    else:
        members[f"{name}.npy"] = pickle.dumps(_Bomb())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for key, content in members.items():
            archive.writestr(key, content)
    return file.getvalue(), True


def _npy(value: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def _header(shape: str) -> bytes:
    """Return an array file whose header has some shape, without any number."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


_DAMAGES: dict[str, Callable[[Generator, bytes], tuple[bytes, bool]]] = {
    "cut": _cut,
    "a bit flipped": _flipped,
    "a bit of the directory flipped": _flipped_in_directory,
    "bytes overwritten": _overwritten,
    "bytes left out": _without_part,
    "a field missing": _missing_field,
    "a field unknown": _unknown_field,
    "a field odd": _odd_field,
    "another kind of file": _of_another_kind,
    "hostile": _hostile,
}

# -- saving that fails -------------------------------------------------------------------------------------------------


def failing_save(rng: Generator) -> Trial:
    """Return saving beyond a limit of size, as on a full disk, where a good file was; belongs into a fork."""
    model, other = random_model(rng), random_model(rng)
    content = _saved(model)
    limit = int(rng.integers(len(content)))

    def run() -> None:
        import resource  # not on every system

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _NAME
            path.write_bytes(content)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            with contextlib.suppress(OSError):
                other.save(path)
                return
            require(path.read_bytes() == content, "a save that failed has changed the file")
            require(os.listdir(folder) == [_NAME], "a save that failed has left files")

    return Trial("save", "a full disk", run, frozenset({"path"}), (OSError,))


# -- names -------------------------------------------------------------------------------------------------------------


def odd_path(rng: Generator) -> Trial:
    """Return saving to and loading from an odd name."""
    model = random_model(rng)
    name, make = pick(rng, _PATHS)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = make(Path(folder))
            model.save(path)
            require(_fields(mopn.load(path)) == _fields(model), "another model was loaded")

    return Trial(
        "save and load", name, run, frozenset({"path", _NAME, "file", "directory"}), (ValueError, OSError, TypeError)
    )


_PATHS: tuple[tuple[str, Callable[[Path], Any]], ...] = (
    ("a string", lambda folder: str(folder / _NAME)),
    ("bytes", lambda folder: os.fsencode(folder / _NAME)),
    ("a suffix", lambda folder: folder / f"{_NAME}.npz"),
    ("unicode", lambda folder: folder / f"{_NAME} é 日本"),
    ("a folder", lambda folder: folder),
    ("a missing folder", lambda folder: folder / "missing" / _NAME),
    ("a long name", lambda folder: folder / (_NAME * 30)),
)

"""Model files: plain .npz, read without pickle, so that nothing in them is executed.

A file holds the number of its ``format``, the names of its fields as ``fields``, and every field that is not None, so a
file that has lost a part is refused. Members are stored as they are, without compression, so that to read a file takes
memory in proportion to its size, whatever it declares.
"""

import errno
import io
import math
import os
import secrets
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Real
from typing import Any, BinaryIO

import numpy as np

from mopn.solvers.tools.checks import shown

# The version of the format, which rises with every change of the contents of files.
_FORMAT_VERSION = 5
# The oldest version that is read: models of tables have no distributions of the training data before version 4, and
# none of their answers on it before version 5.
_OLDEST_VERSION = 3
# Kinds of NumPy's dtypes that files may hold: booleans, integers, floats, strings, bytes and dates.
_KINDS = "biufUSM"
# Largest number of characters of an array's header; NumPy writes 118 for the arrays of models.
_MOST_HEADER_CHARACTERS = 1000
# The first bytes of the record that ends a zip file.
_END = b"PK\x05\x06"
# Bytes of this record, if the file has no comment.
_END_BYTES = 22
# The bytes in it that count the members.
_MEMBER_COUNT = slice(10, 12)


def write(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write the fields of a model that are not None, and their names, as .npz, completely or not at all."""
    values = {**values, "classes": plain_labels(values["classes"])}
    values = {name: value for name, value in values.items() if value is not None}
    values = {"format": _FORMAT_VERSION, "fields": list(values), **values}
    with replacement(path) as file:
        np.savez(file, **values)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of a model; ``ValueError`` if the file is of another kind, damaged, or of another format."""
    name = os.fspath(path)
    with open(path, "rb") as stream:
        try:
            values = _members(stream)
        except Exception as error:
            # Damaged bytes make zipfile and NumPy raise errors of a dozen kinds; EINVAL is a seek before the start.
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise
            why = "it is too short" if isinstance(error, OSError) else error
            raise ValueError(f"{name!r} is not a mopn model, or it is damaged: {why}") from error
    number = values.pop("format", None)
    listed = values.pop("fields", None)
    if number is None:
        raise ValueError(f"{name!r} is not a mopn model: it holds the arrays {shown(list(values))}")
    if type(number) is not int or number < 1:
        raise ValueError(f"{name!r} is not a mopn model: its format is {number!r}")
    if number > _FORMAT_VERSION:
        raise ValueError(f"{name!r} was written by a newer mopn (format {number}); update mopn")
    if number < _OLDEST_VERSION:
        raise ValueError(f"{name!r} has format {number}, from before the first release; fit and save the model again")
    if np.size(listed) != len(values) or set(np.ravel(listed).tolist()) != values.keys():
        raise ValueError(f"{name!r} is damaged: it lists other fields than it holds, {', '.join(sorted(values))}")
    return values


def _members(stream: BinaryIO) -> dict[str, Any]:
    """Return the arrays of an .npz file; arrays without axes become scalars."""
    size = stream.seek(-_END_BYTES, os.SEEK_END) + _END_BYTES
    end = stream.read(_END_BYTES)  # empty for devices, which have no end
    if not end.startswith(_END):
        raise ValueError("it does not end as a .npz file")
    with zipfile.ZipFile(stream) as file:
        members = file.infolist()
        declared = int.from_bytes(end[_MEMBER_COUNT], "little")
        if len(members) != declared or len(set(file.namelist())) != len(members):
            raise ValueError("members are missing or repeated")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("members are compressed; numpy.savez stores them as they are")
        if sum(member.file_size for member in members) > size:
            raise ValueError("members are larger than the file")
        if strangers := [member.filename for member in members if not member.filename.endswith(".npy")]:
            raise ValueError(f"{strangers[0]!r} is not an array")
        return {m.filename.removesuffix(".npy"): _array_or_scalar(file.read(m), m.filename) for m in members}


def _array_or_scalar(content: bytes, name: str) -> Any:
    """Return an array in the .npy format, or its value if it has no axes."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} is an array of an unknown version of the .npy format")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_MOST_HEADER_CHARACTERS)
    start = stream.tell()
    if dtype.kind not in _KINDS or not dtype.itemsize:
        raise ValueError(f"{name} holds an array of dtype {dtype} and shape {shape}, which no model has")
    if dtype.itemsize * math.prod(shape) != len(content) - start:
        raise ValueError(f"{name} declares shape {shape} and dtype {dtype}, but holds {len(content) - start} bytes")
    if dtype.kind == "U" and np.any(np.frombuffer(content, f"{dtype.byteorder}u4", offset=start) > sys.maxunicode):
        raise ValueError(f"{name} holds numbers that are no characters")
    array = np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if by_columns else "C").copy("A")
    if shape or dtype.kind not in "Ubif":
        return array
    return array.item()


def plain_labels(classes: np.ndarray | None) -> np.ndarray | None:
    """Return labels as an array that needs no pickle and has equal entries; ``TypeError`` if there is none."""
    if classes is None or classes.dtype.kind in _KINDS:
        return classes
    labels = classes.tolist()
    kinds = {type(label) for label in labels}
    if classes.dtype.kind in "OT" and len(kinds) == 1 and issubclass(kinds.pop(), (str, bytes, Real, np.generic)):
        plain = np.array(labels)
        if plain.dtype.kind in _KINDS and plain.tolist() == labels:
            return plain
    raise TypeError(
        "classes of mixed types, and labels that NumPy changes, cannot be saved without pickle; use strings, numbers "
        f"or dates, all of one type; got {labels[:3]!r}"
    )


@contextmanager
def replacement(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file, which replaces ``path`` in one step once complete; devices are written to."""
    name = os.fsdecode(path)
    target = os.path.realpath(name) if os.path.islink(name) else name
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:
            yield file
        return
    # A process that is killed leaves the new file behind: its name says whose it is. Names may have 255 bytes.
    folder, file_name = os.path.split(target)
    temporary = os.path.join(folder, f".{file_name[:40]}-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if os.path.exists(target):
                open(target, "r+b").close()  # raises for files that must not be written
                shutil.copymode(target, temporary)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary:
            raise OSError(error.errno, error.strerror, name) from error
        raise

"""Model files: plain .npz, read without pickle, so that no code in them is executed."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["read", "write"]

_FORMAT = 2
# Format 1 had the name of the loss instead of the link.
_LINKS = {"logistic": "softmax", "binary-logistic": "logistic"}


def write(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write the fields of a model that are not None.

    Raises
    ------
    TypeError
        If the classes are of mixed or of other types than strings and numbers.
    """
    values = {**values, "classes": _plain(values["classes"])}
    with open(path, "wb") as file:
        np.savez(file, format=_FORMAT, **{name: value for name, value in values.items() if value is not None})


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of a model.

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If the file is of another kind, or of a newer format.
    """
    name = os.fspath(path)
    with open(path, "rb") as stream:
        try:
            file = np.load(stream, allow_pickle=False)
        except (ValueError, EOFError, zipfile.BadZipFile):
            file = None
        if not isinstance(file, np.lib.npyio.NpzFile) or "format" not in file:
            raise ValueError(f"{name!r} is not a mopn model")
        number = _field(file["format"])
        if not isinstance(number, int) or number < 1:
            raise ValueError(f"{name!r} is not a mopn model: its format is {number!r}")
        if number > _FORMAT:
            raise ValueError(f"{name!r} was written by a newer mopn (format {number}); update mopn")
        values = {key: _field(file[key]) for key in file if key != "format"}
        return values if number > 1 else _with_link(values)


def _with_link(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of format 1 as those of format 2."""
    others = {name: value for name, value in values.items() if name != "loss"}
    return others | {"link": _LINKS.get(str(values.get("loss")))}


def _field(value: np.ndarray) -> Any:
    """Return a field as it was before it was saved."""
    return value.item() if value.ndim == 0 and value.dtype.kind in "Ubi" else value


def _plain(classes: np.ndarray | None) -> np.ndarray | None:
    """Return labels as an array that needs no pickle."""
    if classes is None:
        return None
    if classes.dtype == object and len({type(label) for label in classes}) == 1:
        classes = np.array(classes.tolist())
    if classes.dtype == object:
        raise TypeError("classes of mixed types cannot be saved without pickle; use strings or numbers as labels")
    return classes

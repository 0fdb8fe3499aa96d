"""The fields of models as JSON text, for people and for programs in other languages.

Arrays are objects of their ``dtype``, ``shape`` and ``data``, the entries by rows. Floats have as many digits as bring
them back bit for bit. The dtype of strings is ``str``, whatever their length; bytes are Latin-1, and dates ISO 8601.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

__all__ = ["from_json", "to_json"]

# What entries may be in JSON, by the kinds of dtypes.
_ENTRIES: dict[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (int, float),
    "U": (str,),
    "S": (str,),
    "M": (str,),
}


def to_json(values: Mapping[str, Any]) -> str:
    """Return fields as text, a field a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(_encoded(value), allow_nan=False)}" for name, value in values.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_json(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a text.

    Raises
    ------
    ValueError
        If it is no JSON, or holds an object that is no array.
    """
    values = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
    return {name: _decoded(value) if isinstance(value, dict) else value for name, value in values.items()}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("fields are repeated")
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _encoded(value: Any) -> Any:
    """Return a value as what JSON has."""
    if not isinstance(value, np.ndarray):
        return value
    kind, flat = value.dtype.kind, value.ravel()
    if kind == "S":
        flat = np.char.decode(flat, "latin-1")
    entries = (flat.astype(str) if kind == "M" else flat).tolist()
    return {"dtype": {"U": "str", "S": "bytes"}.get(kind, value.dtype.name), "shape": value.shape, "data": entries}


def _decoded(value: dict[str, Any]) -> np.ndarray:
    """Return the array that an object stands for."""
    if value.keys() != {"dtype", "shape", "data"}:
        raise ValueError(f"an array has a dtype, a shape and data, not {', '.join(value)}")
    name, shape, data = value["dtype"], value["shape"], value["data"]
    kind = np.dtype(name).kind
    if kind not in _ENTRIES or {type(entry) for entry in data} - {*_ENTRIES[kind]}:
        raise ValueError(f"an array of dtype {name!r} holds other entries")
    if math.prod(shape) != len(data):
        raise ValueError(f"an array declares shape {shape}, but holds {len(data)} entries")
    if kind == "S":
        data = [entry.encode("latin-1") for entry in data]
    # Strings are as long as they are, whatever the dtype says.
    return np.array(data, dtype={"U": str, "S": bytes}.get(kind, name)).reshape(shape)

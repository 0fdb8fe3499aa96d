"""Texts of a model that exports write: classes, and names of features, columns and categories."""

from collections.abc import Iterator
from typing import Any


def check_texts(model: Any) -> None:
    """Raise ``ValueError`` for a text that UTF-8 cannot hold, such as one with bytes that could not be decoded."""
    for what, text in _texts(model):
        if not isinstance(text, str):
            continue
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"model: the {what} {text!r} has a character that UTF-8 cannot hold, as of bytes that could not be "
                "decoded (errors='surrogateescape'); read the data with the right encoding, or rename it, and fit again"
            ) from None


def _texts(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the kind of each text, as messages call it, and the text."""
    if model.classes is not None and model.classes.dtype.kind in "OUT":
        for label in model.classes.tolist():
            yield "class", label
    kind_of_name = "feature name" if model.encoding is None else "column"
    if model.feature_names is not None:
        for name in model.feature_names.tolist():
            yield kind_of_name, name
    if model.encoding is not None:
        for j, column in zip(model.encoding.category_columns, model.encoding.categories, strict=True):
            for text in (*column.categories, *column.rare):
                yield f"category of column {model.encoding.columns[j]!r}", text

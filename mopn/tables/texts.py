"""Texts of a column that are no categories: numbers, dates, and signs that stand for a missing number."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

# Signs of a missing number in files: of UCI, SAS, R, pandas and Python, and in spreadsheets. Only among numbers:
# elsewhere each is a category like any other. Compared without the case of letters.
MISSING = frozenset({"", "?", "-", ".", "na", "n/a", "nan", "<na>", "null", "none"})

# Numbers as NumPy, C and JSON write them. Leading zeros mark codes, such as postcodes.
_PLAIN = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGNS = re.compile(r"[\s%$€£¥]")
# Groups of thousands, with the other sign before decimals.
_GROUPED = re.compile(
    r"[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})+(?:\.[0-9]*)?|(?:\.[0-9]{3})+,[0-9]*|,[0-9]+)|[+-]?[0-9]+,[0-9]+"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR = "[12][0-9]{3}"
_DATE = re.compile(
    rf"(?:{_YEAR}([-/.])(?:0?[1-9]|1[0-2])(?:\1[0-3]?[0-9])?"  # 2020-05-03, 2020-05
    rf"|{_YEAR}[- ]?(?:{_MONTH}|Q[1-4])"  # 2020 May, 2020Q2
    rf"|[0-3]?[0-9]([-/.])[0-3]?[0-9]\2(?:{_YEAR}|[0-9]{{2}})"  # 3/5/2020, 03.05.20
    rf"|(?:[0-3]?[0-9][- ])?{_MONTH}[- ](?:[0-3]?[0-9],? )?(?:{_YEAR}|[0-9]{{2}})"  # 3 May 2020, May 3, 2020
    r")(?:[T ]+[0-2]?[0-9]:[0-5][0-9].*)?",
    re.IGNORECASE,
)
# If this share of the texts is alike, the column is of that kind; the other texts are remarks.
_MOST = 0.95


def numbers_of(texts: Iterable[str | None]) -> np.ndarray | None:
    """Return plain numbers, NaN for signs of missing ones; None if a text is neither."""
    numbers = []
    for text in texts:
        number = _number(text)
        if number is None:
            return None
        numbers.append(number)
    return np.array(numbers, np.float64)


def are_written_numbers(texts: Iterable[str]) -> bool:
    """Whether nearly all texts are numbers, also in the forms "1,5", "1,234.5", "12 %" and "$3"."""
    return _most(_number(_bare(text)) is not None for text in _present(texts))


def are_dates(texts: Iterable[str]) -> bool:
    """Whether nearly all texts are dates, with or without a time."""
    return _most(_DATE.fullmatch(text.strip()) is not None for text in _present(texts))


def _number(text: str | None) -> float | None:
    """Return a plain number, NaN for a missing one, None for any other text."""
    text = "" if text is None else text.strip()
    if _PLAIN.fullmatch(text):
        number = float(text)
        return number if np.isfinite(number) else None
    return np.nan if text.lower() in MISSING else None


def _bare(text: str) -> str:
    """Return a number without signs of units and groups, and with a decimal point."""
    text = _SIGNS.sub("", text)
    if not _GROUPED.fullmatch(text):
        return text
    comma_is_decimal = text.rfind(",") > text.rfind(".") and not re.fullmatch(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+", text)
    return text.replace(".", "").replace(",", ".") if comma_is_decimal else text.replace(",", "")


def _present(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if text.strip().lower() not in MISSING]


def _most(alike: Iterable[bool]) -> bool:
    found = list(alike)
    return bool(found) and sum(found) >= _MOST * len(found)

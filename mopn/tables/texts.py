"""Texts of a column that are no categories: numbers, dates, quantities, and signs that stand for a missing number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from mopn.data.rounding import number_text, rounded_levels

# Signs of a missing number in files: of UCI, SAS, R, pandas and Python, and in spreadsheets. Only among numbers:
# elsewhere each is a category like any other. Compared without the case of letters.
MISSING = frozenset({"", "?", "-", ".", "na", "n/a", "nan", "<na>", "null", "none"})

# Numbers as NumPy, C and JSON write them. Leading zeros mark codes, such as postcodes.
_PLAIN = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGNS = re.compile(r"[\s%$€£¥₹()]|USD|EUR|GBP|JPY|CHF|CNY|INR")
# Groups of thousands; the other sign stands before decimals.
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
# Months, quarters and halves of years; days of the week.
_MONTH_WORD = re.compile(
    r"(?<![a-z])(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])|(?<![a-z])q[1-4](?![0-9])|(?<![a-z0-9])h[12](?![0-9])"
)
_WEEKDAY = re.compile(r"(?<![a-z])(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?(?![a-z])")
# Patterns: runs of digits, with groups of thousands and decimals, are 9, months are @ and days of the week &.
_RUN = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
# Patterns of names: letters or "#" before a number, as in "type 1" and "C-101", numbers that are joined by dashes and
# dots, as in bands of ages, telephone numbers, versions and addresses of computers, and ranges of months. "P" and "PT"
# begin durations.
_NAME = re.compile(r"(?!pt?9[a-z])(?:[^\W\d_]|#).*|9(?:(?: ?[-–_.] ?| to )9)+\+?|.*@.*@.*")
# Letters after numbers are units, unless more than this number of them occur: "12A", "12B", "12C"; "1990P8", "1990F8".
_MAX_UNITS = ((re.compile("9[a-z]"), 2), (re.compile("9[a-z]9"), 1))
# Texts per pattern from which they are values of it; fewer may be categories.
_MIN_VALUES_PER_PATTERN = 5
# Texts up to which they may be categories, whatever their patterns are.
_MAX_FEW_VALUES = 10
# Characters up to which numbers have not been rounded: longer ones may differ by rounding alone.
_MAX_EXACT_CHARACTERS = 16
# Share of the texts that must be alike for the column to be of that kind; the other texts are remarks.
_MIN_ALIKE_SHARE = 0.95


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
    """Whether nearly all texts are numbers, also in the forms "1,5", "1,234.5", "(3)", "12 %" and "$3"."""
    return _are_mostly_true(_number(_bare(text)) is not None for text in _present(texts))


def are_dates(texts: Iterable[str]) -> bool:
    """Whether nearly all texts are dates, with or without a time, or have a number and a month or a day of the week."""
    return _are_mostly_true(_is_date(text.strip()) for text in _present(texts))


def are_values(texts: Iterable[str]) -> bool:
    """Whether many texts share few patterns of digits, signs and words, like quantities with units, and times.

    Patterns of plain numbers and of names do not count.
    """
    present = _present(texts)
    patterns = Counter(pattern_of(text) for text in present)
    found = _without_remarks(patterns, len(present))
    if len(present) <= _MAX_FEW_VALUES or len(present) < _MIN_VALUES_PER_PATTERN * len(found):
        return False
    if not all("9" in pattern for pattern in found):
        return False

    have_decimals = sum("." in text for text in present) > 0.5 * len(present)
    for pattern in found:
        is_quantity = have_decimals and pattern.count("9") == 1
        if _NAME.fullmatch(pattern) and not is_quantity:
            return False
    for form, most in _MAX_UNITS:
        if sum(form.fullmatch(pattern) is not None for pattern in found) > most:
            return False
    return patterns["9"] < 0.5 * len(present)


def _without_remarks(patterns: Counter[str], n: int) -> list[str]:
    """Return the patterns of nearly all of n texts; the rarest ones are remarks."""
    found = []
    rest = (1.0 - _MIN_ALIKE_SHARE) * n
    for pattern, count in reversed(patterns.most_common()):
        rest -= count
        if rest < 0.0:
            found.append(pattern)
    return found


def pattern_of(text: str) -> str:
    """Return a text in small letters with 9 for every number, @ for months and & for days of the week."""
    text = _MONTH_WORD.sub("@", text.strip().lower())
    return _RUN.sub("9", _WEEKDAY.sub("&", text))


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text):
        return True
    pattern = pattern_of(text)
    counts = (pattern.count("@"), pattern.count("&"))
    has_day = "9" in pattern and counts in ((1, 0), (0, 1), (1, 1))
    # A sentence has longer words.
    return has_day and not re.search(r"[^\W\d_]{6}", pattern)


def without_rounding(texts: Sequence[str]) -> list[str]:
    """Return categories; numbers that differ by rounding alone become the shortest of them."""
    if not any(len(text) > _MAX_EXACT_CHARACTERS or "e-" in text for text in texts):
        return list(texts)
    numbers = own_numbers(texts)
    order = sorted(numbers, key=lambda text: numbers[text])
    levels, index = rounded_levels(np.array([numbers[text] for text in order]))
    rounded = {text: number_text(levels[i]) for text, i in zip(order, index.tolist(), strict=True)}
    return [rounded.get(text, text) for text in texts]


def own_numbers(texts: Iterable[str | None]) -> dict[str, float]:
    """Return the numbers of texts that are written in the way in which numbers become categories."""
    found = {text: float(text) for text in texts if text is not None and _PLAIN.fullmatch(text)}
    return {text: x for text, x in found.items() if np.isfinite(x) and number_text(x) == text}


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
    is_comma_last = text.rfind(",") > text.rfind(".")
    if is_comma_last and not re.fullmatch(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+", text):
        return text.replace(".", "").replace(",", ".")  # the comma is the decimal point
    return text.replace(",", "")


def _present(texts: Iterable[str]) -> list[str]:
    """Return the texts that are not signs of missing values."""
    return [text for text in texts if text.strip().lower() not in MISSING]


def _are_mostly_true(alike: Iterable[bool]) -> bool:
    found = list(alike)
    return bool(found) and sum(found) >= _MIN_ALIKE_SHARE * len(found)

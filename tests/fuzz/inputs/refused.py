"""What has no meaning, by category, and so must not be taken without a word."""

from tests.values_of_types import TYPES


def _of_kinds(*kinds: str) -> set[str]:
    return {f"{kind}: {storage}" for kind in TYPES if kind.startswith(kinds) for storage in TYPES[kind]}


_MISSING = _of_kinds("missing", "nothing but missing") | {
    "a NaN", "NaN alone", "None among numbers", "NA among numbers", "masked", "NaT",
}  # fmt: skip
_NO_NUMBERS = {
    "dtype c8", "dtype c16", "dtype M8[s]", "dtype m8[s]", "complex numbers of real value", "words",
    "an object among numbers", "a string among numbers", "a huge integer", "a list among numbers",
    "ragged", "dictionary", "set", "None", "a string", "bytes", "a class", "a function", "pandas of dates",
    "an infinity", "a negative infinity", "infinity alone",
} | _MISSING  # fmt: skip
_NO_SAMPLES = _NO_NUMBERS | {"sparse c16", "sparse NaN", "sparse infinity", "a sum that overflows"}
_NO_SHAPE = {"a column", "an axis less", "a number", "an axis more", "two axes more", "transposed", "empty"}
_NO_MATRIX = {
    *(f"an index {value}" for value in (60, 1000, 10**6, 2**31 - 1, -1, -5, -(2**31))), "indices cut", "indices empty",
    "data cut", "data of two axes", "starts cut", "starts added",
}  # fmt: skip
_NOT_PER_SAMPLE = {
    "fewer rows", "more rows", "one row", "two rows", "no rows", "empty", "a number", "an axis less", "two axes more",
    "no columns",
}  # fmt: skip
# Of X, what tables take: missing values, texts, dates, and columns by name.
TAKEN_BY_TABLES = _MISSING | {
    "sparse NaN", "words", "a string among numbers", "dtype M8[s]", "dtype m8[s]", "pandas of dates", "dictionary",
}  # fmt: skip
REFUSED: dict[str, set[str]] = {
    "X malformed": _NO_MATRIX,
    "X at prediction, malformed": _NO_MATRIX,
    "X shape": _NO_SHAPE | {"flat", "no rows", "one row", "fewer rows", "more rows"},
    "X dtype": _NO_SAMPLES,
    "X sparse": _NO_SAMPLES | {"one axis", "no rows"},
    "X values": _NO_SAMPLES,
    "X at prediction": _NO_SAMPLES | _NO_SHAPE - {"an axis less", "transposed"},
    "y": _MISSING | _NOT_PER_SAMPLE | {
        "an infinity", "None", "None among strings", "no date", "a string", "ragged", "ragged labels", "dictionary",
        "set",
    },
    "weights": _NO_NUMBERS - {"None"} | _NOT_PER_SAMPLE | {
        "zeros", "negative zeros", "an entry -1", "an entry -1e+300", "twice", "balanced", "a list of lists",
    },
    "callback": {"is a string", "is a number", "is a list", "is True"},
    "start": {
        "a string", "a number", "a negative integer", "an object", "an unknown parameter", "an empty tuple",
        "a tuple of one", "a tuple of four", "a list", "a flat point, NaN alone", "a flat point, infinity alone",
        "a flat point, fewer rows", "a flat point, dtype c16", "a flat point, empty",
    },
}  # fmt: skip

"""What has no meaning, by category, and so must not be taken without a word."""

_NO_SHAPE = {"a column", "a row", "a number", "three axes", "transposed"}
_NO_NUMBERS = {
    "dtype c8", "dtype c16", "dtype M8[s]", "dtype m8[s]", "complex numbers of real value", "NaT", "words", "masked",
    "an object among numbers", "None among numbers", "a string among numbers", "a huge integer", "a list among numbers",
    "ragged", "dictionary", "set", "None", "a string", "bytes", "a class", "a function",
    "DataFrame with pandas' missing values", "DataFrame of dates", "sparse c16", "sparse NaN", "sparse infinity",
    "a sum that overflows", "a NaN", "an infinity", "a negative infinity",
}  # fmt: skip
_NO_MATRIX = {
    *(f"an index {value}" for value in (60, 1000, 10**6, 2**31 - 1, -1, -5, -(2**31))), "indices cut", "indices empty",
    "data cut", "data of two axes", "starts cut", "starts added",
}  # fmt: skip
# Of X, what tables take: gaps, texts, dates, and columns by name.
TAKEN_BY_TABLES = {
    "a NaN", "sparse NaN", "None among numbers", "masked", "NaT", "DataFrame with pandas' missing values",
    "words", "a string among numbers", "dtype M8[s]", "dtype m8[s]", "DataFrame of dates", "dictionary",
}  # fmt: skip
REFUSED: dict[str, set[str]] = {
    "X malformed": _NO_MATRIX,
    "X at prediction, malformed": _NO_MATRIX,
    "X shape": _NO_SHAPE | {"no rows", "one row", "fewer rows", "more rows"},
    "X dtype": _NO_NUMBERS,
    "X sparse": _NO_NUMBERS | {"one axis", "no rows"},
    "X values": _NO_NUMBERS,
    "X at prediction": _NO_NUMBERS | _NO_SHAPE - {"a row", "transposed"},
    "y": {
        "a NaN", "an infinity", "NaN alone", "None", "None among strings", "pandas' missing value", "NaT", "masked",
        "shorter", "longer", "empty", "one target", "a number", "a string", "no y", "three axes", "no columns",
        "ragged", "ragged labels", "a dictionary", "a set",
    },
    "weights": {
        "zeros", "negative zeros", "a negative one", "a NaN", "an infinity", "None among them", "None alone", "words",
        "pandas' missing value", "complex", "complex of real value", "dates", "time differences", "huge integers",
        "masked", "shorter", "longer", "empty", "two columns", "a number", "a string", "a dictionary", "a set",
        "an object", "a list of lists", "a ragged list",
    },
    "callback": {"is a string", "is a number", "is a list", "is True"},
    "start": {
        "a string", "a number", "a negative integer", "an object", "an unknown parameter", "an empty tuple",
        "a tuple of one", "a tuple of four", "a list", "a flat point, NaN", "a flat point, infinity",
        "a flat point, a row less", "a flat point, complex", "a flat point, empty",
    },
}  # fmt: skip

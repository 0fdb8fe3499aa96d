"""Tables: columns of numbers, categories and dates, with missing values, become the features of a network."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__

"""Oracles: the best units for a loss gradient, and a proven bound on every unit."""

from mopn.network.oracles import basis_oracle

__all__ = ["basis_oracle"]


def __dir__() -> list[str]:
    return __all__

"""Oracles: the best units for a loss gradient, and a proven bound on every unit."""

from mopn.network.oracles import METHODS, BasisAtoms, BasisOracle, basis_oracle

__all__ = ["METHODS", "BasisAtoms", "BasisOracle", "basis_oracle"]

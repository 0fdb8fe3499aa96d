"""The convex family: networks of any number of units of degree 2, their problems, oracles and certificates."""

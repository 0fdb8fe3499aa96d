"""The names of the estimators of samples X and y."""

import mopn.estimators

# ImplicitFactorization fits interactions of users and items, and has tests of its own.
OF_SAMPLES = [name for name in mopn.estimators.__all__ if name != "ImplicitFactorization"]

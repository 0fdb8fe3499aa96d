"""How many examples a property is tried on in either tier, and what most of them are: random numbers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

seeds = st.integers(0, 2**32 - 1)
generators = st.builds(np.random.default_rng, seeds)


def examples(number):
    """The settings for a number of examples in the thorough profile, and for the profile's share of them in others."""
    return settings(max_examples=max(2, number * settings.default.max_examples // 100))


def tried(number, **arguments):
    """A decorator that tries a property on a number of examples of these arguments."""
    return lambda test: examples(number)(given(**arguments)(test))

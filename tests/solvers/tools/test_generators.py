"""The convention for ``rng=`` arguments."""

import numpy as np
import pytest

from mopn.solvers.tools.generators import make_generator


def test_generators_are_kept_and_seeds_make_new_ones():
    rng = np.random.default_rng(0)
    assert make_generator(rng) is rng
    assert make_generator(7).random() == make_generator(7).random() == np.random.default_rng(7).random()
    assert make_generator(None).random() != make_generator(None).random()


@pytest.mark.parametrize(("rng", "error"), [(-1, ValueError), (0.5, TypeError), ("seed", TypeError), (True, TypeError)])
def test_what_is_no_generator_is_refused_by_name(rng, error):
    with pytest.raises(error, match="order must be a numpy Generator, a seed"):
        make_generator(rng, "order")

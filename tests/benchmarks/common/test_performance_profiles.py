"""Performance profiles by their definition."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from benchmarks.common.profiles import plot_profile


def test_profiles_are_fractions_of_problems_by_their_definition():
    rng = np.random.default_rng(0)
    times = {name: np.where(rng.random(20) < 0.2, np.inf, rng.uniform(1, 9, 20)) for name in "abc"}
    fastest = np.min(list(times.values()), axis=0)
    ax = plt.figure().add_subplot()
    assert plot_profile(times, ax, linewidth=3) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("abc")
    for line, seconds in zip(ax.get_lines(), times.values(), strict=True):
        x, y = line.get_data()
        for factor in (1.0, 1.5, 2.0, 5.0, x[-1]):
            solved = [np.isfinite(s) and s <= factor * f * (1 + 1e-12) for s, f in zip(seconds, fastest, strict=True)]
            assert y[np.searchsorted(x, factor * (1 + 1e-12), side="right") - 1] == pytest.approx(np.mean(solved))
        assert line.get_linewidth() == 3
    plt.close("all")

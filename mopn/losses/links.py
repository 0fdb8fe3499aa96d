"""Links, the maps from outputs (n, m) to probabilities or means, by the names in models and their files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from mopn.solvers.tools.checks import choice

__all__ = ["LINKS", "check_link"]


def softmax(O: np.ndarray) -> np.ndarray:  # noqa: E741
    """Probabilities (n, m) of the classes, which add up to 1."""
    # Differences of finite outputs may overflow, to the exponent of a zero.
    with np.errstate(over="ignore"):
        P = np.exp(O - O.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def logistic(O: np.ndarray) -> np.ndarray:  # noqa: E741
    """Probabilities (n, m) that single outputs are positive."""
    return expit(O)


def means(O: np.ndarray) -> np.ndarray:  # noqa: E741
    """Means (n, m) whose logarithms are the outputs."""
    with np.errstate(over="ignore"):
        return np.exp(O)


LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"softmax": softmax, "logistic": logistic, "log": means}


def check_link(link: str | None) -> str | None:
    """Return a valid link, a name or None."""
    return choice(LINKS).or_none()(link, "link")

"""Links: how outputs (n, m) become probabilities. The closed set that models know by name, and files hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

__all__ = ["LINKS", "check_link"]


def softmax(O: np.ndarray) -> np.ndarray:  # noqa: E741
    """Probabilities (n, m) of the classes, which add up to 1."""
    P = np.exp(O - O.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def logistic(O: np.ndarray) -> np.ndarray:  # noqa: E741
    """Probability (n, m) of each output being positive, on its own."""
    return expit(O)


LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"softmax": softmax, "logistic": logistic}


def check_link(link: str | None) -> str | None:
    """Return the name of a link, or None for none; refuse what is neither."""
    if link is not None and (not isinstance(link, str) or link not in LINKS):
        raise ValueError(f"link must be one of {', '.join(map(repr, LINKS))} or None, got {link!r}")
    return link

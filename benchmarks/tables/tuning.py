"""The random search that tunes a method: as many configurations as a budget of the processor's time allows."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid, ParameterSampler, StratifiedKFold

from benchmarks.common.processes import CPUTimeError, limit_cpu_time
from benchmarks.tables.methods import Space

_PARTS, _MOST = 3, 100


def tune(model: Any, space: Space, X: pd.DataFrame, y: np.ndarray, *, seconds: float, seed: int) -> int:
    """Give a model the parameters of the best mean score over three parts of the rows, each held out once.

    The first configuration is the model as it is. One that fails, or is not done when the time is over, does not count;
    if none is done the model stays as it is.
    """
    splitter = StratifiedKFold if y.dtype.kind in "iu" else KFold
    parts = list(splitter(_PARTS, shuffle=True, random_state=seed).split(X, y))
    count = min(_MOST, len(ParameterGrid(space)))
    best, chosen, tried = -np.inf, {}, 0
    try:
        with limit_cpu_time(seconds):
            for parameters in [{}, *ParameterSampler(space, count, random_state=seed)]:
                score = float(np.mean([_score(clone(model).set_params(**parameters), X, y, *part) for part in parts]))
                tried += 1
                if score > best:
                    best, chosen = score, parameters
    except CPUTimeError:
        pass
    model.set_params(**chosen)
    return tried


def _score(model: Any, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    try:
        return model.fit(X.iloc[train], y[train]).score(X.iloc[test], y[test])
    except (ValueError, RuntimeError):
        return -np.inf

"""Fits that start from an earlier one, whose attributes or data are odd."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.checks import check_found
from tests.fuzz.inputs.arrays import PARTS, dense
from tests.fuzz.interfaces import Fit, estimators
from tests.fuzz.trial import Trial, pick

Generator = np.random.Generator


def warm_started(rng: Generator) -> Trial:
    """Return a second fit of an estimator with ``warm_start=True``."""
    interface = pick(rng, [one for one in estimators() if type(one) is Fit and "warm_start" in one.defaults["init"]])
    arguments = interface.draw(rng)
    odd, data = pick(rng, list(PARTS)), pick(rng, list(_DATA))
    of_data = rng.uniform() < 0.3

    def run() -> None:
        estimator = interface.fitted(arguments).set_params(warm_start=True)
        again, new = dict(arguments["fit"]), dense(arguments["predict"]["X"])
        if of_data:
            again |= _DATA[data](again)
            new = new[:, : again["X"].shape[1]]
        else:
            fitted = {name: part for name, part in vars(estimator).items() if name.endswith("_")}
            name = pick(rng, [name for name, part in fitted.items() if isinstance(part, np.ndarray)])
            setattr(estimator, name, PARTS[odd](rng, fitted[name]))
        check_found(interface.found(estimator.fit(**again), new))

    return Trial(interface.name, data if of_data else odd, run, interface.names | _FITTED, interface.refusals)


# What messages call the parts of an earlier fit.
_FITTED = frozenset({"warm_start", "start", "basis", "weights", "linear", "P", "U", "lams", "w", "theta", "intercept"})


_DATA: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "the same data": lambda at: {},
    "fewer features": lambda at: {"X": dense(at["X"])[:, :-1]},
    "other samples": lambda at: {"X": dense(at["X"])[::-1]},
    "other labels": lambda at: {"y": at["y"] + 7},
    "another label": lambda at: {"y": np.append(at["y"][:-2], [9, 9])},
}

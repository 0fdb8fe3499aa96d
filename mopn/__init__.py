"""Multi-output polynomial networks and factorization machines by convex optimization, with a proven optimality gap."""

import pathlib
import sys
from importlib import util
from typing import TYPE_CHECKING, Any

if (
    not pathlib.Path(__file__).with_name("solvers").is_dir()
    and (_solvers := pathlib.Path(__file__).parents[1] / "solvers" / "__init__.py").is_file()
):
    # In a checkout the folder is next to this one. It is the checkout's, even if another one is installed.
    _spec = util.spec_from_file_location("mopn.solvers", _solvers)
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules["mopn.solvers"] = util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["mopn.solvers"])

from mopn import oracles as oracles
from mopn import solvers as solvers
from mopn.core.regularizers import Ratio
from mopn.data.relation_design import RelationBlocks
from mopn.data.row_blocks import RowBlocks
from mopn.losses.losses import Huber, Loss, Poisson, Quantile
from mopn.models.load import load
from mopn.models.multi_output import Model
from mopn.models.single_output import FactorizationModel
from mopn.models.table import TableModel as TableModel
from mopn.network.norm_certificate import certify, certify_network
from mopn.network.output_layer import OutputLayerProblem
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import path
from mopn.solvers import Result, Status, minimize
from mopn.solvers import Trace as Trace

if TYPE_CHECKING:  # imported on use
    from mopn import estimators as estimators
    from mopn import explain as explain
    from mopn import export as export
    from mopn import plotting as plotting
    from mopn import ranking as ranking
    from mopn import testing as testing
    from mopn.factorization.direct import FactorizationProblem
    from mopn.factorization.lifted import LiftedProblem
    from mopn.implicit.problem import ImplicitProblem

__version__ = "0.1.0"

__all__ = [
    "FactorizationModel", "FactorizationProblem", "Huber", "ImplicitProblem", "LiftedProblem", "Loss", "Model",
    "NetworkProblem", "OutputLayerProblem", "Poisson", "Quantile", "Ratio", "RelationBlocks", "Result", "RowBlocks",
    "Status", "certify", "certify_network", "load", "minimize", "path",
]  # fmt: skip

# Imported on use, as they import numba.
_LAZY = {
    "FactorizationProblem": "mopn.factorization.direct",
    "ImplicitProblem": "mopn.implicit.problem",
    "LiftedProblem": "mopn.factorization.lifted",
}
# Imported on use, as they need extras or few programs use them.
_LAZY_MODULES = ("estimators", "explain", "export", "plotting", "ranking", "testing")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY_MODULES, "oracles", "solvers", "__version__"])


def __getattr__(name: str) -> Any:
    from importlib import import_module

    from mopn.solvers.tools.signals import signals_later

    if name not in _LAZY and name not in _LAZY_MODULES:
        raise AttributeError(f"module 'mopn' has no attribute {name!r}")
    with signals_later():
        module = import_module(_LAZY.get(name, f"mopn.{name}"))
    return getattr(module, name) if name in _LAZY else module

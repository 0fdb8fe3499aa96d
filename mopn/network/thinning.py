"""Networks with fewer units: the units leave whose removal costs least, to second order.

At a stationary network the first-order changes of losses and penalty cancel when a unit leaves. The curvature of the
losses and of the ridge along its outputs is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.core.kernels import Kernel, eigen_units
from mopn.data.rows import Block
from mopn.network.point import Network

# Parts of the cost allowed that are tried, until the objective is not too large.
_PARTS = (1.0, 0.5, 0.25)


def thinned(problem: Any, network: Network, at: Any, most: float) -> tuple[Network, Any]:
    """Return a network of fewer units whose objective is at most ``most``, and its gradient; or the network itself."""
    merged = with_orthogonal_units(problem, network)
    if merged.n_units < network.n_units:
        at_merged = problem.output_gradient(merged)
        if at_merged.value <= most:
            network, at = merged, at_merged
    if not problem.losses.loss.has_hessian:
        return network, at
    costs = _costs(problem, network)
    order = np.argsort(costs, kind="stable")
    totals = np.cumsum(costs[order])
    for part in _PARTS:
        n_left_out = int(np.searchsorted(totals, part * (most - at.value), side="right"))
        if not n_left_out:
            break
        rest = network.of_units(np.sort(order[n_left_out:]))
        at_rest = problem.output_gradient(rest)
        if at_rest.value <= most:
            return rest, at_rest
    return network, at


def _costs(problem: Any, network: Network) -> np.ndarray:
    """Return about how much the objective rises (k,) without each unit."""
    arguments = (problem.kernel, network.basis, network.weights)
    costs = problem.rows.sum(_costs_of_losses, *arguments, along=(network.outputs,))
    if problem.ridge:
        costs = costs + 0.5 * problem.ridge * np.sum(network.weights**2, axis=1) * problem.kernel.of_square
    return costs


def _costs_of_losses(block: Block, outputs: np.ndarray, kernel: Kernel, H: np.ndarray, V: np.ndarray) -> np.ndarray:
    features = kernel.features(block.design, H)
    curvatures = block.losses.hessian(outputs).along(V)
    return 0.5 * np.einsum("ik,ik->k", features**2, curvatures)


def with_orthogonal_units(problem: Any, network: Network) -> Network:
    """Return the network whose units are the eigenvectors of every output's matrix: under l1 no others cost less."""
    V = network.weights
    n_outputs = V.shape[1]
    directions = np.eye(n_outputs)
    if problem.depends_on_difference:
        # For two classes only the difference of the outputs matters.
        V = (V[:, 1] - V[:, 0])[:, None]
        directions = np.array([[-0.5, 0.5]])
    units = []
    weights = []
    for c, direction in enumerate(directions):
        used = V[:, c] != 0.0
        if used.any():
            values, vectors = eigen_units(V[used, c], network.basis[used])
            units.append(vectors)
            weights.append(values[:, None] * direction)
    if not units:
        return network
    return problem.network(np.vstack(units), np.vstack(weights), network.linear)

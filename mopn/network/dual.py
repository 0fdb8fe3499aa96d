"""The dual point behind a lower bound, for checks of a certificate by other programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mopn.data.rows import Block
from mopn.solvers.tools.decorators import doors
from mopn.solvers.tools.display import Displayed


@doors
@dataclass(frozen=True, repr=False)
class Dual(Displayed):
    """The dual point that proves a lower bound of a network problem: ``result.dual``, ``measure.dual``, ``dual_``.

    It is D = ``scale`` * G (n, m), where G = dF/dO is the gradient of the losses, with all weights, at the outputs of
    one network: of the round with the largest lower bound, mostly not the best network of the run. By
    Fenchel's inequality the objective of every network is at least

    * -F*(D) under a penalty, where ``bound`` is at most the strength, up to rounding;
    * -F*(D) - radius * ``bound`` in a ball;

    minus sum_j ||D' x_j||^2 / (2 alpha_j) with a linear term: over the columns x_j of [1, X], with alpha / 100 for the
    constants and alpha for the others. F* is the convex conjugate of the losses. For losses of your own mopn bounds it.

    With a ridge it is at least -F*(D) minus the least ||Gamma - Y||^2 / (2 ridge) over all Y whose dual norm is at most
    the strength, less the same for a linear term; ``bound`` then bounds the dual norm of Gamma plus
    ``scale * ridge`` times the W of the network, which need not be below the strength: docs/mathematics.md, 5.7.

    Attributes
    ----------
    lower : float
        The lower bound, rounding errors included.
    bound : float
        Proven upper bound of the dual norm of D, the maximum of ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p`` over unit
        vectors h, where Gamma_c = sum_i D_ic x_i x_i' for ``kernel="homogeneous"``, and half of it without its diagonal
        for ``"anova"``, and without products inside groups. With nonnegative weights it is that of -h' Gamma_c h, or 0.
        It is as certain as the ``proof`` of the result says.
    scale : float
    basis : ndarray of shape (k, d)
    weights : ndarray of shape (k, m)
    linear : ndarray of shape (m, 1 + d) or (m, 0)
        The network of the gradient. It is kept in place of D, as it is small whatever the number of samples.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> dual = mopn.minimize(problem).dual
    >>> D = dual.point(problem)
    >>> norm = max(np.abs(np.linalg.eigvalsh(X.T * D[:, c] @ X)).max() for c in range(2))
    >>> D.shape, bool(norm <= dual.bound)
    ((60, 2), True)
    """

    lower: float
    bound: float
    scale: float
    basis: np.ndarray = field(compare=False)
    weights: np.ndarray = field(compare=False)
    linear: np.ndarray = field(compare=False)

    def point(self, problem: Any) -> np.ndarray:
        """Compute D (n, m), by one pass over the data.

        Parameters
        ----------
        problem : NetworkProblem
            The problem of the run, or one of the same data and options; with other data the bounds do not hold.

        Returns
        -------
        ndarray of shape (n, m)
            In the order of the rows of X as given, of data in blocks too; columns in the order of ``problem.classes``
            or of the targets.

        Raises
        ------
        ValueError
            If the problem has another number of features or outputs.
        """
        outputs, d = problem.losses.n_outputs, problem.rows.shape[1]
        if self.basis.shape[1] != d or self.linear.shape != problem.linear_term.shape(outputs):
            raise ValueError(
                f"problem must be of {self.basis.shape[1]} features and {len(self.linear)} outputs as the dual point, "
                f"got {d} and {outputs}; give the problem of the run"
            )
        network = problem.network(self.basis, self.weights, self.linear)
        G = problem.output_gradient(network).G
        return self.scale * np.concatenate(problem.rows.reduce(_as_list, along=(G,)))

    def _entries(self) -> dict[str, str]:
        return {name: f"{getattr(self, name):.6g}" for name in ("lower", "bound", "scale")}


def _as_list(block: Block, G: np.ndarray) -> list[np.ndarray]:
    return [G]


def make_dual(lower: float, bound: float, scale: float, *network: Any) -> Dual:
    """Return the dual point of a network's parts, which cannot be written to."""
    views = [part.view() for part in network]
    for view in views:
        view.flags.writeable = False
    return Dual(lower, scale * bound, scale, *views)

"""The problem of networks on dask arrays."""

from __future__ import annotations

from typing import Any

import mopn.network.problem
from mopn.dask.blocks import TIMEOUT, arranged, dask_blocks
from mopn.data.row_blocks import row_by_row


class DaskNetworkProblem(mopn.network.problem.NetworkProblem):
    """A :class:`mopn.NetworkProblem` on dask arrays: the workers compute the sums over their blocks of rows.

    The cluster computes the blocks at once and holds them. This process holds nothing of n rows: :func:`mopn.minimize`
    sends parameters and receives sums. They are added up in a tree, so results are the same to the last bit for any
    number of workers, and for :class:`mopn.RowBlocks` of the same blocks. What a dead worker held is computed anew, so
    a block must be the same whenever it is computed.

    Parameters
    ----------
    X : dask array or DataFrame of shape (n, d)
        Rows in chunks, which may be of unknown sizes; all columns in one chunk. Blocks are dense or SciPy's CSR.
    y : dask array, DataFrame or Series of shape (n,) or (n, m)
        In as many chunks as X if their sizes are unknown.
    loss : str or Loss, default "logistic"
    sample_weight, classes, client, timeout
        As of :func:`mopn.dask.fit`; ``classes`` are for multi-class losses.
    **options
        Of :class:`mopn.NetworkProblem`; ``offset`` is (m,).

    Raises
    ------
    TypeError, ValueError
        For what a problem in memory refuses, too; messages name the block and the row in it.
    OSError
        If a block cannot be computed, or the cluster is lost. In :func:`mopn.minimize` this ends the run with the best
        point so far.

    Examples
    --------
    >>> import dask.array, numpy as np, mopn, mopn.dask
    >>> from dask.distributed import Client
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 5))
    >>> y = np.sign(X[:, 0] * X[:, 1]).astype(int)
    >>> X, y = (dask.array.from_array(a, chunks=(50, *a.shape[1:])) for a in (X, y))
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     problem = mopn.dask.DaskNetworkProblem(X, y, norm="l1", strength=1.0)
    ...     mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full"), tol=1e-2).success
    True
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: Any = "logistic",
        *,
        sample_weight: Any = None,
        classes: Any = None,
        client: Any = None,
        timeout: float = TIMEOUT,
        **options: Any,
    ) -> None:
        blocks = dask_blocks(X, y, sample_weight, classes, client, timeout)
        super().__init__(arranged(blocks, blocks.count(), row_by_row), None, loss, **options)

"""Polynomial networks of one output and any degree, and low-rank bilinear regression: the lifted problem."""

from typing import Any

import numpy as np

from mopn.core.kernels import KernelName
from mopn.core.magnitudes import check_products
from mopn.data.designs import make_design
from mopn.data.losses_of_rows import Losses
from mopn.data.relation_design import RelationBlocks
from mopn.data.rows import ArrayRows
from mopn.data.validation import check_count, check_flag, check_nonnegative, present_rows
from mopn.factorization.single_output import (
    SingleOutputProblem,
    affine_terms,
    check_single_output_loss,
    direct_to_network,
    lifted_to_direct,
)
from mopn.factorization.terms import ProductTerm
from mopn.losses.losses import Loss, LossName
from mopn.solvers.tools.checks import choice


class LiftedProblem(SingleOutputProblem):
    r"""Minimise :math:`\sum_i w_i \ell(y_i, o_i + \mathrm{offset}_i) + \frac{\alpha}{2} \|w\|^2` + penalty of U.

    The outputs are :math:`o_i = b + \langle w, x_i\rangle + \sum_s \prod_t \langle u_s^t, x_i\rangle`, which is
    :math:`\langle S(M), x_i^{\otimes m}\rangle` for a tensor M of rank r, and the penalty is :math:`\frac{\beta}{2}
    \sum_t \|U^t\|^2`: section 5 and appendix D.2 of Blondel et al., Polynomial Networks and Factorization Machines
    (ICML 2016). Convex in each factor U^t, unlike :math:`\langle p, x\rangle^m` in p.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or a tuple of m of them
        A tuple has one X per factor: for m = 2, low-rank bilinear regression a' U V' b.
    y : array-like of shape (n,)
        Numbers, or -1 and +1 for the binary losses.
    degree : int, default 2
        The order m of the interactions, at least 2.
    rank : int, default 30
        Number r of products.
    kernel : {"homogeneous", "anova"}, default "homogeneous"
        All products, or products of distinct features, for degree 2 only (appendix D.3).
    loss : str or Loss, default "squared"
        "squared", "huber", "quantile", "poisson", "binary-logistic", "binary-squared-hinge", or a :class:`mopn.Loss`
        per output. Coordinate descent takes all of these but "poisson".
    alpha, beta : float, default 1.0
        Strengths for w and for U.
    augment : bool, default False
        Put a dummy, a column of ones, in front of every X, for the lower degrees.
    fit_linear, fit_intercept : bool, default False
    sample_weight : array-like of shape (n,), optional
        A weight of 2 equals a repeated row.
    offset : array-like of shape (n,), optional
        Added to the outputs.
    init_scale : float, default 0.1
        Standard deviation of the entries of U at the default start.
    rng : Generator, int or None, default 0
        For the default start. With a seed every default start is the same; a Generator continues from call to call.

    Raises
    ------
    ValueError, TypeError
        If the data or an option are invalid.

    Notes
    -----
    Results have ``U`` (m, r, [1 +] d), or a list of m arrays (r, [1 +] d_t) for a tuple; ``w`` (d,) and ``intercept``
    (1,) where they are fitted.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 5))
    >>> y = X[:, 0] * X[:, 1] ** 2 + X[:, 3]
    >>> problem = mopn.LiftedProblem(X, y, degree=3, rank=3, beta=1e-3, augment=True)
    >>> result = mopn.minimize(problem, mopn.solvers.CoordinateDescent(), tol=1e-4, max_iter=300)
    >>> result.U.shape, bool(result.fun < 0.1)
    ((3, 3, 6), True)
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        degree: int = 2,
        rank: int = 30,
        kernel: KernelName = "homogeneous",
        loss: LossName | Loss = "squared",
        alpha: float = 1.0,
        beta: float = 1.0,
        augment: bool = False,
        fit_linear: bool = False,
        fit_intercept: bool = False,
        sample_weight: Any = None,
        offset: Any = None,
        init_scale: float = 0.1,
        rng: np.random.Generator | int | None = 0,
    ) -> None:
        loss = check_single_output_loss(loss)
        self.degree = check_count(degree, "degree", 2)
        self.rank = check_count(rank, "rank")
        self.alpha = check_nonnegative(alpha, "alpha")
        self.beta = check_nonnegative(beta, "beta")
        kernel = choice(("homogeneous", "anova"))(kernel, "kernel")
        fit_linear = check_flag(fit_linear, "fit_linear")
        fit_intercept = check_flag(fit_intercept, "fit_intercept")
        self.dummies = int(check_flag(augment, "augment"))
        self.kernel_name = kernel
        self.several = isinstance(X, tuple)
        self._check_options(X, kernel, fit_linear)

        given = X if self.several else (X,)
        plain = tuple(part.tocsr() if isinstance(part, RelationBlocks) else part for part in given)
        parts, y, sample_weight, offset = present_rows(plain, y, sample_weight, offset)
        designs = [make_design(part, self.dummies) for part in parts]
        if len({design.shape[0] for design in designs}) > 1:
            raise ValueError(f"all parts of X must have the same number of rows, got {[z.shape for z in designs]}")
        self.design = designs[0]
        rows = ArrayRows(self.design, Losses.of_data(loss, y, self.design.shape[0], sample_weight, offset))
        terms = affine_terms(self.design, self.alpha, linear=fit_linear, intercept=fit_intercept)
        factors = designs if self.several else [self.design for _ in range(self.degree)]
        scale = check_nonnegative(init_scale, "init_scale")
        largest = [factor.largest for factor in factors]
        check_products(rows, largest, alpha=self.alpha, beta=self.beta, init_scale=scale)
        products = ProductTerm(factors, self.rank, self.beta, kernel == "anova", scale)
        super().__init__(rows, [*terms, products], rng, ("U", products.names))

    def _check_options(self, X: Any, kernel: str, fit_linear: bool) -> None:
        if kernel == "anova" and (self.degree != 2 or self.several):
            raise ValueError(
                "kernel='anova' is lifted for degree=2 and a single X only; mopn.FactorizationProblem has all degrees"
            )
        if self.several and len(X) != self.degree:
            raise ValueError(f"X is a tuple of {len(X)} parts, but degree={self.degree} takes one per factor")
        if self.several and fit_linear:
            raise ValueError("fit_linear=True needs a single X; use augment=True instead")

    def network(self, at: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return a result as a network of one output: unit vectors (k, d) and weights (k, 1), of degree 2.

        Without a linear term, ``mopn.certify(network_problem, *problem.network(result))`` certifies it for
        ``network_problem = mopn.NetworkProblem(..., norm="l1", strength=beta)`` (Theorem 2 of the paper).
        """
        if self.degree != 2 or self.several:
            raise ValueError("networks are of degree 2 and have a single X; this problem does not")
        return direct_to_network(*lifted_to_direct(at["U"]))

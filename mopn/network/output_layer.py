"""The convex refit: the output layer V for fixed units, min F(Phi V) + R(V), and the linear term with it."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mopn.core.gap import DualPoint, dual_error, lower_bound, sum_rounding
from mopn.core.magnitudes import check_regularizer, scales_at_zero
from mopn.core.norms import NormName
from mopn.core.regularizers import NormRegularizer, Regularizer, make_regularizer
from mopn.data.designs import DenseDesign, crossed
from mopn.data.losses_of_rows import Losses
from mopn.data.rows import ArrayRows, Block, Rows, SumOfLosses
from mopn.data.validation import check_input, check_start_size, finite_numbers
from mopn.losses.hessians import Hessian
from mopn.losses.losses import Loss, LossName
from mopn.network.linear_term import LinearTerm
from mopn.network.point import joined, split
from mopn.network.ridge import LayerRidge
from mopn.network.two_layers import layer_outputs
from mopn.solvers import FISTA, LBFGS, InteriorPoint, Solver
from mopn.solvers.interface import Barrier, Evaluation, Measure, Smooth, WorkingSet
from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import cached_property
from mopn.solvers.tools.display import Displayed


class OutputLayerProblem(Displayed, Smooth):
    """Minimise sum_i w_i l(y_i, (Phi V)_i + offset_i) + R(V) over V (k, m).

    Parameters
    ----------
    features : ndarray of shape (n, k)
        Phi, the units' features, or any other fixed features.
    y : array-like
        Labels (n,) or targets (n, m), as the loss asks.
    loss : str or Loss, default "logistic"
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1", "squared-l2"}, default "l1/l2"
        ``"nonnegative-l1"`` is ``"l1"`` with V >= 0, and ``"squared-l2"`` means ``strength / 2 * ||V||^2``.
    strength : float, optional
        Strength of the penalty; give this or ``radius``.
    radius : float, optional
        Radius of the ball.
    sample_weight : array-like of shape (n,), optional
    offset : array-like of shape (n, m), optional

    Notes
    -----
    The point is V flat, in C order. Oracles: ``composite``; ``barrier`` if the loss has a Hessian and R is not smooth,
    unless weights must be nonnegative; ``gradient`` where R is smooth (``"squared-l2"``, or a strength of 0, for which
    no certificate exists). Gaps hold for the outputs Phi V as computed: rounding errors made in
    computing them are not added.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> features = np.random.default_rng(0).uniform(0, 1, (60, 4))
    >>> problem = mopn.OutputLayerProblem(features, features[:, 0] > 0.5, norm="l1", strength=0.1)
    >>> result = mopn.minimize(problem, mopn.solvers.InteriorPoint(), tol=1e-6)
    >>> result.gap_is_proven, result.weights.shape
    (True, (4, 2))
    """

    bounds = scales = None

    def __init__(
        self,
        features: Any,
        y: Any,
        loss: LossName | Loss = "logistic",
        norm: NormName | Literal["squared-l2"] = "l1/l2",
        strength: float | None = None,
        radius: float | None = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> None:
        features = finite_numbers(features, "features")
        if features.ndim != 2:
            raise ValueError(f"features must have shape (n, k), got {features.shape}")
        losses = Losses.of_data(loss, y, len(features), sample_weight, offset)
        regularizer = make_regularizer(norm, strength, radius)
        rows = ArrayRows(DenseDesign(features), losses)
        self._assemble(features, features.shape[1], rows, regularizer, LinearTerm())
        check_input(self._row_maxima, "features")
        check_regularizer(regularizer, scales_at_zero(rows, "features", _largest_feature))

    @classmethod
    def from_parts(cls, *parts: Any) -> OutputLayerProblem:
        """Return the problem of validated parts, the arguments of ``_assemble``.

        The point is (V, W) flat, with the coefficients W of the linear term. With an active linear term there is no
        barrier.
        """
        problem = cls.__new__(cls)
        problem._assemble(*parts)
        return problem

    def _assemble(
        self,
        features: Any,
        k: int,
        rows: Rows,
        regularizer: Regularizer,
        linear_term: LinearTerm,
        ridge: LayerRidge | None = None,
    ) -> None:
        self.features, self.rows, self.regularizer, self.linear_term = features, rows, regularizer, linear_term
        self.ridge = ridge
        self.losses = SumOfLosses(rows)
        self.shape = k, self.losses.n_outputs
        self._shapes = self.shape, linear_term.shape(self.losses.n_outputs)

    def _entries(self) -> dict[str, str]:
        entries = {"weights": str(self.shape), "loss": repr(self.losses.loss.name)}
        return entries | dict([self.regularizer.words.split("=")])

    @property
    def oracles(self) -> frozenset[str]:
        """Names of the oracles offered."""
        regularizer = self.regularizer
        has_barrier = regularizer.has_barrier and self.losses.loss.has_hessian and not self.linear_term.active
        names = {"composite"}
        if regularizer.smooth:
            names.add("gradient")
        if has_barrier:
            names.add("barrier")
        return frozenset(names)

    def default_solver(self) -> Solver[Any]:
        """Return the solver that :func:`mopn.minimize` takes by default: the fastest one for the oracles offered."""
        offered = self.oracles
        if "barrier" in offered and self.newton_size <= 1.0:
            return InteriorPoint()
        if "gradient" in offered:
            return LBFGS()
        return FISTA()

    @property
    def reasons(self) -> dict[str, str]:
        """Why oracles are not offered, where the loss or the norm is the reason."""
        loss = self.losses.loss
        if not isinstance(self.regularizer, NormRegularizer):
            return {"barrier": "there is none for a smooth penalty; use LBFGS()"}
        if self.regularizer.norm.nonnegative:
            return {"barrier": "there is none for nonnegative weights; use FISTA()"}
        if not loss.has_hessian:
            return {"barrier": f"the loss {loss.name!r} has no hessian"}
        return {}

    @property
    def newton_size(self) -> float:
        """Size of the matrices of Newton's method, m times (k, k), relative to the features."""
        k, m = self.shape
        return k * m / self.rows.shape[0]

    @cached_property
    def curvature(self) -> float:
        """Lipschitz constant of the smooth part's gradient."""
        gram = self.rows.sum(_weighted_gram, along=(self.features,))
        largest = np.linalg.eigvalsh(gram)[-1] if len(gram) else 0.0
        curvature = self.losses.smoothness * float(largest) + self.linear_term.curvature(self.losses.smoothness)
        if self.ridge is not None:
            curvature += self.ridge.curvature
        return max(curvature, TINY)

    @cached_property
    def _row_maxima(self) -> Any:
        return self.rows.map(_largest_entries, along=(self.features,))

    def start(self, start: Any = None) -> np.ndarray:
        """Return a point: zero, or given weights (k, m), which are projected onto the ball if there is one.

        An active linear term starts from the attribute ``linear`` of the given object, or from zero.
        """
        if hasattr(start, "predict"):
            raise TypeError(
                f"start must be weights (k, m) or an earlier result, got the model {shown(start)}, whose weights are "
                "for units of another length; give network_problem.start(model).weights"
            )
        V = np.zeros(self.shape) if start is None else finite_numbers(getattr(start, "weights", start), "start")
        if V.shape not in (self.shape, (self.shape[0] * self.shape[1],)):
            raise ValueError(f"start must have shape {self.shape}, got {V.shape}")
        check_start_size(V, "start")
        W = self.linear_term.start(getattr(start, "linear", None), self.losses.n_outputs)
        # A prox with step 0 moves nothing under a penalty and projects onto a ball.
        return joined(self.regularizer.prox(V.reshape(self.shape), 0.0), W)

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """Return views V (k, m) and W of a flat point."""
        return split(x, self._shapes)

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        """Named views of the point."""
        V, W = self.split(x)
        return {"x": x, "weights": V} | ({"linear": W} if self.linear_term.active else {})

    def image(self, x: np.ndarray) -> Any:
        """Return the outputs (n, m) of the units and of the linear term, without offset; with a ridge also V."""
        V, W = self.split(x)
        outputs = self.linear_term.added_to(self._unit_outputs(V), W)
        return outputs if self.ridge is None else _Image(outputs, V)

    def _unit_outputs(self, V: np.ndarray) -> np.ndarray:
        return self.rows.map(_unit_outputs, V, along=(self.features,))

    def smooth_value(self, image: Any) -> float:
        """F at the outputs, and the ridge."""
        if self.ridge is None:
            return self.losses.value(image)
        return self.losses.value(image.outputs) + self.ridge.value(image.V)

    def smooth(self, image: Any) -> Evaluation:
        """F at the outputs, the ridge, and their gradient with respect to the point."""
        value, G = self.losses.value_gradient(_outputs(image))
        of_weights = self.rows.crossed(self.features, G)
        if self.ridge is not None:
            value = value + self.ridge.value(image.V)
            of_weights = of_weights + self.ridge.slopes(image.V)
        return Evaluation(value, joined(of_weights, self.linear_term.adjoint(G)), G, image)

    def regularizer_value(self, x: np.ndarray) -> float:
        """R at a feasible V, and the penalty of the linear term."""
        V, W = self.split(x)
        return self.regularizer.value(V) + self.linear_term.value(W)

    def prox(self, x: np.ndarray, step: float) -> np.ndarray:
        """Prox of R (projection onto the ball) and of the penalty of the linear term."""
        V, W = self.split(x)
        return joined(self.regularizer.prox(V, step), self.linear_term.prox(W, step))

    def working_set(self, x: np.ndarray, least: int) -> WorkingSet | None:
        """Return the problem of the units with weights and the units with the largest slopes (Massias et al., 2018).

        It has at least ``least`` units, and twice as many as have weights; None if that is half of all or more.
        """
        V, _ = self.split(x)
        used = V.any(axis=1)
        size = max(2 * int(used.sum()), least)
        if 2 * size >= len(V) or not isinstance(self.regularizer, NormRegularizer):
            return None
        at = self.smooth(self.image(x))
        lower = self.dual_bound(at)
        if math.isinf(lower):
            return None
        gradient_V, _ = self.split(at.gradient)
        slopes = self.regularizer.norm.duals(gradient_V)
        # Used units first, then by decreasing slope.
        order = np.argsort(np.where(used, -np.inf, -slopes), kind="stable")
        units = np.sort(order[:size])
        entries_of_units = np.arange(V.size).reshape(V.shape)[units]
        kept = joined(entries_of_units, np.arange(V.size, x.size))
        return WorkingSet(self._with_units(units), kept, lower)

    def _with_units(self, units: np.ndarray) -> OutputLayerProblem:
        """Return the problem of some units."""
        features = self.rows.map(_some_features, units, along=(self.features,))
        ridge = None if self.ridge is None else self.ridge.of_units(units)
        return self.from_parts(features, len(units), self.rows, self.regularizer, self.linear_term, ridge)

    def hessian(self, image: Any) -> OutputLayerHessian:
        """Second derivative of F, and of the ridge, with respect to V, at outputs."""
        invariant = self.losses.is_shift_invariant and self.ridge is None
        return OutputLayerHessian(self.rows, self.features, _outputs(image), self.ridge, shift_invariant=invariant)

    def barrier(self, V: np.ndarray, mu: float, gradient: np.ndarray) -> Barrier:
        """Return an interior-point state of R near V whose gap is about ``mu``; F has the ``gradient`` at V."""
        return self.regularizer.barrier(V, mu, gradient)

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        """Value and gradient of the whole objective, where R is smooth."""
        value, gradient, G, image = self.smooth(self.image(x))
        V, W = self.split(x)
        value += self.regularizer_value(x)
        gradient = gradient + joined(self.regularizer.gradient(V), self.linear_term.gradient(W))
        # ``dual_bound`` needs G, the gradient of F alone.
        return Evaluation(value, gradient, G, image)

    def dual_bound(self, at: Evaluation) -> float:
        """Proven lower bound of the minimum from an evaluation at any point; -inf at a strength of 0."""
        if not self.regularizer.active:
            return -math.inf
        if at.G is None:
            raise ValueError("the evaluation carries no loss gradient")
        return self._dual_bound(at, DualPoint(self.losses, at.G, _outputs(at.image)), search=False)

    def predicted_bound(self, at: Evaluation, hessian: OutputLayerHessian, step: np.ndarray) -> float:
        """Proven lower bound of the minimum from the loss gradient predicted for a step of the image."""
        if self.losses.is_built_in:
            assert at.G is not None
            point = DualPoint(self.losses, hessian.dual_point(at.G, _outputs(step)))
        else:
            assert at.image is not None
            outputs = _outputs(at.image) + _outputs(step)
            point = DualPoint(self.losses, self.losses.value_gradient(outputs)[1], outputs)
        return self._dual_bound(at._replace(image=at.image + step), point, search=False)

    def measure(self, x: np.ndarray) -> Measure:
        """Objective at V, and a proven lower bound, from scratch."""
        at = self.smooth(self.image(x))
        fun = at.value + self.regularizer_value(x)
        point = DualPoint(self.losses, at.G, _outputs(at.image))
        V, W = self.split(x)
        rounding = sum_rounding(point.losses, abs(fun), point.slope_size)
        rounding += self.linear_term.value_error(W, self.losses.n)
        if self.ridge is not None:
            rounding += self.ridge.error(V)
        return Measure(fun, self._dual_bound(at, point, search=True), rounding)

    def _dual_bound(self, at: Evaluation, point: DualPoint, *, search: bool) -> float:
        """Return the lower bound at a dual point, for the ridge at the weights of an evaluation."""
        G = point.G
        image = cast(Any, at.image)
        of_squares = self.linear_term.conjugate(G)
        adjoint, sizes = self.rows.sum(_adjoint_and_sizes, along=(self.features, self._row_maxima, G))
        # Each entry of Phi' D is a sum of n products, for a dual point D near G.
        roundings = self.losses.n + 3 + dual_error(self.losses.n_outputs)
        row_error = roundings * EPS * sizes
        if self.ridge is not None:
            adjoint = adjoint + self.ridge.slopes(image.V)
            row_error += float(self.ridge.slope_errors(image.V).sum())
            of_squares += self.ridge.value(image.V) + self.ridge.error(image.V)
        dual = self.regularizer.dual(adjoint) + self.regularizer.dual_of_rows(row_error, self.shape[0])
        return lower_bound(point, self.regularizer, dual, of_squares, search=search)


class _Image(NDArrayOperatorsMixin):
    """Outputs (n, m) and the weights V (k, m) behind them, with the arithmetic of arrays."""

    def __init__(self, outputs: Any, V: np.ndarray) -> None:
        self.outputs, self.V = outputs, V

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # In place, z += a binds z to the new image.
        if method != "__call__" or options.keys() - {"out"}:
            return NotImplemented
        outputs = [x.outputs if isinstance(x, _Image) else x for x in inputs]
        weights = [x.V if isinstance(x, _Image) else x for x in inputs]
        return _Image(ufunc(*outputs), ufunc(*weights))


def _outputs(image: Any) -> Any:
    return image.outputs if isinstance(image, _Image) else image


class OutputLayerHessian:
    """Phi' H Phi for the Hessian H of the losses at fixed outputs, and the second derivative of the ridge."""

    def __init__(
        self, rows: Rows, features: Any, image: Any, ridge: LayerRidge | None = None, *, shift_invariant: bool
    ) -> None:
        self.rows, self.features, self.ridge, self.shift_invariant = rows, features, ridge, shift_invariant
        self.hessians = rows.keep(_hessian, along=(image,))

    def product(self, D: np.ndarray) -> np.ndarray:
        product = self.rows.sum(_product, D, along=(self.hessians, self.features))
        return product if self.ridge is None else product + self.ridge.slopes(D)

    def blocks(self) -> np.ndarray:
        """Return Phi' diag(h_c) Phi for every output c, (m, k, k), with the diagonal second derivatives h_c."""
        blocks = self.rows.sum(_diagonal_blocks, along=(self.hessians, self.features))
        return blocks if self.ridge is None else blocks + self.ridge.matrix

    def dual_point(self, G: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return a dual point near the loss gradient predicted for a step of the outputs from where it is G."""
        return self.rows.map(_predicted, along=(self.hessians, G, step))


def _largest_feature(block: Block) -> np.ndarray:
    """Return a bound of the moduli of the features (n,) of each row."""
    return np.abs(block.design.matrix()).max(axis=1, initial=0.0)


def _largest_entries(block: Block, features: np.ndarray) -> np.ndarray:
    return np.abs(features).max(axis=1, initial=0.0)


def _weighted_gram(block: Block, features: np.ndarray) -> np.ndarray:
    w = block.losses.weights
    return crossed(features, features if w is None else features * w[:, None])


def _unit_outputs(block: Block, features: np.ndarray, V: np.ndarray) -> np.ndarray:
    return layer_outputs(features, V)


def _adjoint_and_sizes(block: Block, features: Any, maxima: Any, G: Any) -> tuple[Any, Any]:
    """Return Phi' G, and a bound of the sums of moduli in a row of it, for the row maxima (n,) of Phi."""
    return crossed(features, G), maxima @ abs(G).sum(axis=1)


def _some_features(block: Block, features: np.ndarray, units: np.ndarray) -> np.ndarray:
    return features[:, units]


def _hessian(block: Block, image: np.ndarray) -> Hessian:
    return block.losses.hessian(image)


def _product(block: Block, hessian: Hessian, features: np.ndarray, D: np.ndarray) -> np.ndarray:
    return crossed(features, hessian.product(layer_outputs(features, D)))


def _diagonal_blocks(block: Block, hessian: Hessian, features: np.ndarray) -> np.ndarray:
    weighted = np.empty_like(features)
    blocks = []
    for h in hessian.diagonal.T:
        np.multiply(features, h[:, None], out=weighted)
        blocks.append(crossed(weighted, features))
    return np.stack(blocks)


def _predicted(block: Block, hessian: Hessian, G: np.ndarray, step: np.ndarray) -> np.ndarray:
    return block.losses.dual_point(hessian.product(step) + G)

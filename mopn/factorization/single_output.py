"""Problems of a single output: F(sum of terms) plus the penalties of the terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from mopn.core.datafit import DataFit
from mopn.core.designs import Design
from mopn.core.losses import Loss, get_loss
from mopn.factorization.sweep_state import Descent
from mopn.factorization.terms import Intercept, Linear, Term
from mopn.factorization.terms.base import Parameters
from mopn.solvers.interface import Evaluation, Measure, Problem

__all__ = [
    "CoordinateBlocks",
    "SingleOutputProblem",
    "affine_terms",
    "check_single_output_loss",
]


class SingleOutputProblem(Problem):
    """Minimise sum_i w_i l(y_i, o_i + offset_i) + penalties, where the outputs o are a sum of terms.

    The point is the terms' parameters one after the other, flat. Oracles: ``gradient`` unless a term has parameters on
    a simplex; ``blocks`` (coordinate descent) if the objective is convex along each coordinate and the loss is one of
    mopn's. It is not convex, so there is no certificate here.
    """

    def __init__(self, fit: DataFit, terms: Sequence[Term], random_state: int) -> None:
        self.fit, self.terms, self.random_state = fit, list(terms), random_state
        if fit.n_outputs != 1:
            raise ValueError(
                f"y has {fit.n_outputs} outputs, but this problem has a single one; mopn.NetworkProblem takes several"
            )
        self._places: list[tuple[Term, str, slice, tuple[int, ...]]] = []
        size = 0
        for term in self.terms:
            for name, shape in term.shapes.items():
                self._places.append((term, name, slice(size, size + math.prod(shape)), shape))
                size += math.prod(shape)
        self.size = size

    @property
    def oracles(self) -> frozenset[str]:
        """Names of the oracles offered."""
        names = set()
        if all(term.smooth for term in self.terms):
            names.add("gradient")
        if self.fit.loss.code is not None and all(term.multiconvex for term in self.terms):
            names.add("blocks")
        return frozenset(names)

    @property
    def reasons(self) -> dict[str, str]:
        """Why oracles are not offered, where the loss is to blame."""
        if self.fit.loss.code is not None:
            return {}
        return dict.fromkeys(("blocks", "batch_gradient"), f"the loss {self.fit.loss.name!r} declares no code")

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Lower and upper bounds on the flat point, or None."""
        lower = np.full(self.size, -np.inf)
        for term, name, place, _ in self._places:
            lower[place] = term.lower.get(name, -np.inf)
        return None if np.isinf(lower).all() else (lower, np.full(self.size, np.inf))

    def start(self, start: Any = None) -> np.ndarray:
        """Return a point.

        Parameters
        ----------
        start : optional
            None for random units (``random_state``), another seed, a flat point, an earlier result, or a dictionary
            with some of the parameters as ``unpack`` names them; the others are then as at the default start.
        """
        if isinstance(start, np.ndarray):
            if start.shape != (self.size,):
                raise ValueError(f"start must be a flat point of shape ({self.size},), got {start.shape}")
            return start.astype(np.float64)
        seed = start if isinstance(start, Integral) else self.random_state
        rng = np.random.default_rng(int(seed))
        given = start if isinstance(start, dict) else {}
        x = np.empty(self.size)
        views = self.views(x)
        for term, at in zip(self.terms, views, strict=True):
            for name, value in (term.start(rng) | term.absorb(given)).items():
                value = np.asarray(value, dtype=np.float64)
                if value.shape != at[name].shape:
                    raise ValueError(f"start: {name} must have shape {at[name].shape}, got {value.shape}")
                if not np.isfinite(value).all():
                    raise ValueError(f"start: {name} contains NaN or infinity")
                at[name][:] = value
        return x

    def views(self, x: np.ndarray) -> list[Parameters]:
        """Return the parameters of each term, as views of a point."""
        views: dict[int, Parameters] = {id(term): {} for term in self.terms}
        for term, name, place, shape in self._places:
            views[id(term)][name] = x[place].reshape(shape)
        return [views[id(term)] for term in self.terms]

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        """Named views of a point."""
        parts: dict[str, Any] = {"x": x}
        for term, at in zip(self.terms, self.views(x), strict=True):
            parts |= term.present(at)
        return parts

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n,), without the offset."""
        return sum((t.outputs(at) for t, at in zip(self.terms, self.views(x), strict=True)), np.zeros(len(self.fit.y)))

    def penalty(self, x: np.ndarray) -> float:
        """Return the sum of the penalties."""
        return sum(term.penalty(at) for term, at in zip(self.terms, self.views(x), strict=True))

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        """Value and gradient of the whole objective."""
        value, G = self.fit.value_gradient(self.outputs(x)[:, None])
        gradient = np.empty(self.size)
        slopes = np.ascontiguousarray(G[:, 0])
        for term, at, parts in zip(self.terms, self.views(x), self.views(gradient), strict=True):
            for name, part in term.gradient(at, slopes).items():
                parts[name][:] = part
        return Evaluation(value + self.penalty(x), gradient)

    def measure(self, x: np.ndarray) -> Measure:
        """Objective; no gap is known."""
        return Measure(self.fit.value(self.outputs(x)[:, None]) + self.penalty(x), math.inf)

    def blocks(self, x: np.ndarray, n_threads: int = 1) -> CoordinateBlocks:
        """Return coordinate descent from a point, which is left as it is."""
        return CoordinateBlocks(self, x.copy(), n_threads)


class CoordinateBlocks:
    """Coordinate descent on the way.

    Attributes
    ----------
    updates : list of callables
        Each minimises along the coordinates of one block in turn, and returns the largest modulus of the derivatives
        that it found.
    """

    def __init__(self, problem: SingleOutputProblem, x: np.ndarray, n_threads: int) -> None:
        self._problem, self._x = problem, x
        designs = {id(design): design for term in problem.terms for design in term.designs}
        self._descent = Descent(problem.fit, problem.outputs(x), designs.values(), n_threads)
        self.updates: list[Callable[[], float]] = []
        for term, at in zip(problem.terms, problem.views(x), strict=True):
            self.updates.extend(term.updates(at, self._descent))

    def value(self) -> float:
        """Return the objective."""
        return self._descent.value() + self._problem.penalty(self._x)

    def point(self) -> np.ndarray:
        """Return a copy of the point."""
        return self._x.copy()


def check_single_output_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name; refuse the multi-class ones."""
    loss = get_loss(loss)
    if loss.targets == "labels":
        raise ValueError(
            f"loss={loss.name!r} is for several classes; a single output takes 'squared', 'binary-logistic' or "
            "'binary-squared-hinge' (targets -1 and +1), and several classes mopn.NetworkProblem"
        )
    return loss


def affine_terms(design: Design, alpha: float, *, linear: bool, intercept: bool) -> list[Term]:
    """Return the terms b and <w, x>, where they are fitted."""
    terms: list[Term] = [Intercept(design.shape[0])] if intercept else []
    return [*terms, Linear(design, alpha)] if linear else terms

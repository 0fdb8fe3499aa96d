"""Kinds of the search that draw models: certified radii, integers, QUBO problems, Shapley values and files."""

import itertools
import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

import mopn

Rng = np.random.Generator
# Digits of distances, and a relative error far above the error of these digits and far below the error of floats.
_DIGITS, _EXACT = 60, mpf(10) ** -25
# Relative tolerance of equalities between floats.
_CLOSE = 1e-9


def draw_model(rng: Rng, target: str | None = None) -> mopn.Model:
    """Draw a model of both kernels: dummies, linear terms, whole numbers, outputs that nearly cancel."""
    d, k, m = (int(rng.integers(1, high)) for high in (6, 5, 4))
    kernel, augment = str(rng.choice(["homogeneous", "anova"])), bool(rng.uniform() < 0.5)
    dummies = (1 if kernel == "homogeneous" else 2) * augment
    H, V, offset = rng.standard_normal((k, dummies + d)), rng.standard_normal((k, m)), rng.standard_normal(m)
    kind = rng.choice(["plain", "whole", "cancelling", "level", "touching"])
    if kind == "whole":
        H, V, offset = np.rint(2.0 * H), np.rint(2.0 * V), np.rint(3.0 * offset)
    elif kind == "cancelling":
        H = np.vstack([H, H * (1.0 + 1e-12 * rng.standard_normal(H.shape))])
        V = 1e9 * np.vstack([V, -V])
    elif kind == "level":
        H[:, dummies:] = np.outer(rng.standard_normal(k), rng.standard_normal(d))
    elif kind == "touching":
        V, offset = np.abs(V), 0.0 * offset
    target = target or str(rng.choice(["labels", "indicator"]))
    return mopn.Model(
        H,
        V,
        kernel=kernel,
        augment=augment,
        offset=offset,
        linear=rng.standard_normal((m, 1 + d)) if rng.uniform() < 0.4 and kind == "plain" else None,
        classes=np.arange(max(2, m)) if target == "labels" else None,
        target=target,
    )


def quadratics(model: mopn.Model, number: Any) -> list[tuple[Any, list[Any], list[list[Any]]]]:
    """Return constants, coefficients (d,) and forms (d, d) of the outputs, in numbers of a type."""
    d, dummies = model.n_features, model.basis.shape[1] - model.n_features
    found = []
    for c, offset in enumerate(np.broadcast_to(model.offset, model.weights.shape[1])):
        A = [[number(0)] * (dummies + d) for _ in range(dummies + d)]
        for h, v in zip(model.basis.tolist(), model.weights[:, c].tolist(), strict=True):
            for i, j in itertools.product(range(dummies + d), repeat=2):
                if model.kernel == "homogeneous" or i != j:
                    A[i][j] += number(v) * number(h[i]) * number(h[j]) / (1 if model.kernel == "homogeneous" else 2)
        W = [number(0)] * (1 + d) if model.linear is None else [number(w) for w in model.linear[c].tolist()]
        constant = number(float(offset)) + W[0] + sum(A[i][j] for i in range(dummies) for j in range(dummies))
        slopes = [W[1 + j] + 2 * sum(A[i][dummies + j] for i in range(dummies)) for j in range(d)]
        found.append((constant, slopes, [row[dummies:] for row in A[dummies:]]))
    return found


def value_at(quadratic: tuple[Any, list[Any], list[list[Any]]], x: list[Any]) -> Any:
    """Return the value of a quadratic function."""
    constant, slopes, A = quadratic
    d = range(len(x))
    return constant + sum(slopes[j] * x[j] for j in d) + sum(A[i][j] * x[i] * x[j] for i in d for j in d)


def squared_distance(quadratic: tuple[Any, list[Any], list[list[Any]]], x: list[Any]) -> mpf:
    """Return a number that is at least the squared distance from x to where a quadratic function is 0.

    It is the maximum over mu of a dual function, which has no gap for one constraint.
    """
    _, slopes, A = quadratic
    d = range(len(x))
    values, vectors = mp.eigsy(mp.matrix(A))
    at = [slopes[j] + 2 * sum(A[i][j] * x[i] for i in d) for j in d]
    b = [mp.fsum(vectors[i, j] * at[i] for i in d) for j in d]
    c, size = value_at(quadratic, x), max(*map(abs, values), *map(abs, b), mpf(10) ** -200)

    def slope(mu: mpf) -> mpf:
        return c - mp.fsum(t * t * (2 * mu + a) / (mu + a) ** 2 / 4 for t, a in zip(b, values, strict=True) if t)

    low = max(mpf(0), -min(values)) + size * mpf(10) ** -45
    high = low
    if slope(low) <= 0:
        high = 2 * low + 1
        while slope(high) <= 0:
            high *= 4
        for _ in range(4 * _DIGITS):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) <= 0 else (low, middle)
    return (c - mp.fsum(t * t / (high + a) / 4 for t, a in zip(b, values, strict=True) if t)) / high


def radius_violations(rng: Rng) -> Iterator[str]:
    """Yield l2 radii beyond the exact distance, and attacks in both norms that change nothing or are too near."""
    model = draw_model(rng, "labels")
    X = rng.standard_normal((3, model.n_features))
    with mp.workdps(_DIGITS):
        outputs = quadratics(model, mpf)
        zero = (mpf(0), [mpf(0)] * model.n_features, [[mpf(0)] * model.n_features for _ in range(model.n_features)])
        outputs = [zero, *outputs] if len(outputs) == 1 else outputs
        for norm in ("l2", "linf"):
            radii, attacks = mopn.explain.certified_radius(model, X, norm=norm, return_attack=True)
            for x, radius, attack, label in zip(X, radii, attacks, model.predict(X), strict=True):
                others = [c for c in range(len(outputs)) if c != label]
                pairs = [_difference(outputs[label], outputs[c]) for c in others]
                place = [mpf(float(value)) for value in x]
                if not radius >= 0 or (radius > 0 and min(value_at(pair, place) for pair in pairs) <= 0):
                    yield f"radius {radius} in {norm} where another class is as large: {model}"
                elif norm == "l2" and 0 < radius < math.inf:
                    nearest = min(squared_distance(pair, place) for pair in pairs)
                    if mpf(float(radius)) ** 2 > nearest * (1 + _EXACT):
                        yield f"radius {radius!r} beyond {float(mp.sqrt(nearest))!r}: {model}"
                if np.isfinite(attack).all() and (
                    model.predict(attack[None])[0] == label
                    or np.linalg.norm(attack - x, 2 if norm == "l2" else np.inf) < radius * (1.0 - _CLOSE)
                ):
                    yield f"attack at {attack} in {norm} changes nothing, or is inside {radius}: {model}"


def _difference(a: tuple[Any, list[Any], Any], b: tuple[Any, list[Any], Any]) -> tuple[Any, list[Any], Any]:
    """Return a quadratic function minus another."""
    slopes = [s - t for s, t in zip(a[1], b[1], strict=True)]
    forms = [[s - t for s, t in zip(*rows, strict=True)] for rows in zip(a[2], b[2], strict=True)]
    return a[0] - b[0], slopes, forms


def integer_violations(rng: Rng) -> Iterator[str]:
    """Yield outputs in integers that are further from those in fractions, or in floats, than their bounds."""
    model = draw_model(rng)
    size = 10.0 ** rng.uniform(-3, 3, model.n_features)
    X = size * (rng.choice([0.0, 1.0, 1e3]) + rng.standard_normal((int(rng.integers(2, 30)), model.n_features)))
    with tempfile.TemporaryDirectory() as folder:
        try:
            integers = mopn.export.to_c(
                model, Path(folder) / "m.h", arithmetic="integer", X=X, dtype=str(rng.choice(["int8", "int16"]))
            )
        except ValueError:
            return  # Units are too small, or too large, for the type.
    far = [X[:2] + reach * size * rng.standard_normal((2, len(size))) for reach in (1.0, 1e3, 1e8, 1e30)]
    rows = np.vstack([X[:4], *far, 0.0 * X[:1]])
    exact, found = quadratics(model, Fraction), integers.outputs(rows)
    for x, bounds, values, floats in zip(rows, integers.bounds(rows), found, model.outputs(rows), strict=True):
        place = [Fraction(float(value)) for value in x]
        for quadratic, bound, value, in_floats in zip(exact, bounds, values, floats, strict=True):
            error = max(
                abs(Fraction(float(value)) - other) for other in (value_at(quadratic, place), Fraction(in_floats))
            )
            if math.isnan(bound):
                yield f"bound {bound} of an output in integers at {x}: {model}"
            elif bound < math.inf and error > Fraction(float(bound)):
                yield f"error {float(error):.3g} of an output in integers beyond {bound:.3g} at {x}: {model}"
    agreement = integers.agree(rows)
    if agreement.may_change is not None and agreement.changed > agreement.may_change:
        yield f"{agreement.changed} predictions change, of {agreement.may_change} that may: {model}"


def magnitude(model: mopn.Model) -> float:
    """Return a size of the terms of the outputs at zeros, ones and other small numbers."""
    return 1.0 + float(np.abs(model.basis).sum(axis=1) ** 2 @ np.abs(model.weights).sum(axis=1))


def corners(d: int) -> np.ndarray:
    """Return all vectors of zeros and ones (2^d, d)."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=d)))


def qubo_violations(rng: Rng) -> Iterator[str]:
    """Yield QUBO problems with another value, or another minimum, than the outputs of all allowed corners."""
    model = draw_model(rng, "indicator")
    d, c = model.n_features, int(rng.integers(model.weights.shape[1]))
    order = rng.permutation(d)
    cut = int(rng.integers(1, d)) if d > 1 else 0
    groups = [order[:cut].tolist(), order[cut:].tolist()] if cut and rng.uniform() < 0.7 else []
    problem, A = mopn.export.to_qubo(model, output=c, one_hot=groups), corners(d)
    values = np.einsum("ni,ij,nj->n", A, problem.matrix(), A) + problem.offset
    allowed = np.all([A[:, group].sum(axis=1) == 1 for group in groups], axis=0) if groups else np.full(len(A), True)
    size = np.abs(values).max() + magnitude(model)
    if np.abs(values - model.outputs(A)[:, c])[allowed].max() > _CLOSE * size:
        yield f"QUBO values of output {c}, groups {groups}: {model}"
    if values[allowed].min() > values.min() + _CLOSE * magnitude(model):
        yield f"QUBO minimum of output {c} that is not allowed by {groups}: {model}"


def shapley_violations(rng: Rng) -> Iterator[str]:
    """Yield Shapley values that differ from the sum over all coalitions, or do not add up."""
    model = draw_model(rng, "indicator")
    d, m = model.n_features, model.weights.shape[1]
    X, background = rng.standard_normal((2, d)), rng.standard_normal((int(rng.integers(1, 5)), d))
    phi = mopn.explain.shap_values(model, X, background).reshape(2, d, m)
    interactions = mopn.explain.shap_interaction_values(model, X, background).reshape(2, d, d, m)
    for i, x in enumerate(X):
        values = [model.outputs(np.where(S > 0, x, background)).reshape(-1, m).mean(axis=0) for S in corners(d)]
        exact = np.zeros((d, m))
        for number, S in enumerate(corners(d)):
            for j in np.flatnonzero(S == 0):
                share = math.factorial(int(S.sum())) * math.factorial(d - int(S.sum()) - 1) / math.factorial(d)
                exact[j] += share * (values[number + 2 ** (d - 1 - j)] - values[number])
        allowed = _CLOSE * magnitude(model)
        if np.abs(exact - phi[i]).max() > allowed or np.abs(interactions[i].sum(axis=1) - phi[i]).max() > allowed:
            yield f"Shapley values off by {np.abs(exact - phi[i]).max():.3g}: {model}"


def file_violations(rng: Rng) -> Iterator[str]:
    """Yield models whose outputs, predictions or radii change in a file."""
    model = draw_model(rng)
    X = rng.standard_normal((5, model.n_features))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.npz")
        loaded = mopn.load(Path(folder) / "model.npz")
    answers = {"outputs": mopn.Model.outputs, "predict": mopn.Model.predict, "radius": mopn.explain.certified_radius}
    for name, answer in answers.items():
        if not np.array_equal(answer(loaded, X), answer(model, X)):
            yield f"{name} of a loaded model: {model}"

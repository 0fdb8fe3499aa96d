"""A search for false certificates: bounds above the minimum, gaps that are too small, and bounds below attained values.

``python -m benchmarks.certificates.search --rounds 2000 --seed 1`` prints every violation in a number of rounds of
draws: one of every kind in each round, or in some rounds for kinds that take long. Its exit status is 1 if there is a
violation. It may be stopped at any time; the same command goes on from there. The test suite runs a few draws. The
kinds:

``gaps``, ``classes``, ``outputs``: networks near, and far from, the minimum of problems with one feature a sample,
where that is known to 40 digits. Weights, scales, offsets, losses, norms, kernels, penalties, balls and storages are
drawn over what floating point allows, with fewer samples than outputs too.
``ridges``: the same with ridges of all sizes; ``ridged``: bounds at good and at poor networks of random problems with a
ridge, or with no other penalty, against the least objective of all of them.
``layers``: output layers from starts as far as 1e10, whose lower bounds are kept while the objective falls.
``cancelling``: units that nearly cancel, and targets that are the rounded outputs.
``minima``: the same with all losses per output, eigenvectors of groups of features, and all storages.
``losses``: losses of one's own that are right, or wrong beyond a threshold that outliers, offsets or changes pass.
``stacks``, ``clustered``, ``wide``: matrices that make bounds on the sphere hard; for l1/linf, all signed sums of them.
``forms``, ``runs``: biquadratic forms of matrices that nearly depend on each other, at bounds near the maximum; and
the bounds of one run over similar stacks, formed with errors.
``squares``: sums of squares of several degrees for such matrices, with multipliers of any size.
``starts``: data whose best unit is orthogonal to the starts that a generator with a known seed would draw.
``few``: few matrices, of rotated sizes, near ties, equal norms in all directions and special spectra.
``radii``, ``integers``, ``qubo``, ``shapley``, ``files``: models against exact distances, fractions and enumeration.
``storages``, ``repetition``, ``exports``: the same data in other storages, with weights, and tables in C.

No tolerance is granted to gaps, as they include rounding; values of stacks have the tolerance of their own
evaluation.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

import mopn
from benchmarks.certificates.drawn_minima import draw_minimum
from benchmarks.certificates.drawn_problems import (
    LOSSES,
    NORMS,
    Draw,
    draw,
    draw_classes,
    draw_outputs,
    exact_objective,
    minimise,
)
from benchmarks.certificates.drawn_stacks import (
    draw_clustered_stack,
    draw_dependent_stack,
    draw_few_outputs,
    draw_stack,
    draw_wide_stack,
)
from benchmarks.certificates.search_fits import export_violations, repetition_violations, storage_violations
from benchmarks.certificates.search_models import (
    file_violations,
    integer_violations,
    qubo_violations,
    radius_violations,
    shapley_violations,
)
from benchmarks.common.store import Store
from benchmarks.common.study import fill, make_parser, out_folder, run
from mopn.network.oracles import METHODS, basis_oracle
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint, sphere
from mopn.solvers.interface import Effort
from mopn.solvers.sphere.biquadratic import Biquadratic, rest_majorant
from mopn.solvers.sphere.boundary_point import Multipliers, step_work, tighten
from mopn.solvers.sphere.bounds import eigen_error
from mopn.solvers.sphere.branch_signs import NODE_WORK
from mopn.solvers.sphere.nested import branch_on_forms, nest_and_bound
from mopn.solvers.sphere.probable import probable_bound
from mopn.solvers.sphere.stack import in_basis, principal_basis, rotated_outputs
from mopn.solvers.sphere.sum_of_squares import Quartic
from mopn.solvers.tools.budgets import Budget

_DIGITS = 40
# Precision and work of proofs for wide stacks, and the probability with which random bounds may fail.
_ROUGH, _WORK, _SURE = 0.05, 3e9, 1e-12
# Random starts that are known: of generators with these seeds. The precision of the bounds that they are to spoil.
_KNOWN_SEEDS, _LOOSE = ((0, 1), (0, 2), 0, 1), 0.02
# The most features of sums of squares of each degree.
_FEATURES = {2: 20, 3: 10, 4: 6}
# Rounds that a row of the results covers.
_A_ROW = 20

Rng = np.random.Generator


# -- problems ----------------------------------------------------------------------------------------------------------


def gap_violations(rng: Rng, make: Callable[[Rng], Draw]) -> Iterator[str]:
    """Yield false statements on gaps of networks near, and far from, the minimum of a drawn problem."""
    with mp.workdps(_DIGITS):
        drawn = make(rng)
        for power in (-16, -12, -8, -4, 0):
            # Towards zero, so that a ball is not left.
            share = 1.0 - 10.0**power * rng.uniform(0.5, 1.0)
            for method in ("auto", "power"):
                measured = mopn.certify(drawn.problem, drawn.basis, share * drawn.weights, method)
                distance = mpf(measured.fun) - drawn.minimum
                # These very units attain the minimum, so the restricted gap, the smaller one, must hold as well.
                bounded = measured.lower <= drawn.minimum and measured.restricted_lower <= drawn.minimum
                if not (bounded and distance <= measured.restricted_gap <= measured.gap):
                    yield f"{drawn.words} share=1-1e{power} oracle={method}: {measured} distance={float(distance):.3g}"


def ridged_violations(rng: Rng) -> Iterator[str]:
    """Yield the bounds of a random problem with a ridge that are above an objective of it."""
    loss, norm, kernel = (str(rng.choice(of)) for of in (LOSSES, (*NORMS, "nonnegative-l1"), ("homogeneous", "anova")))
    n, d, m = (int(rng.integers(*ends)) for ends in ((3, 15), (2, 5), (1, 4)))
    X = 10.0 ** rng.choice([0.0, rng.uniform(-8, 8)]) * rng.standard_normal((n, d))
    size, y = float(np.mean(X**2)), rng.standard_normal((n, m))
    y = np.arange(n) % max(m, 2) if loss in LOSSES[:3] else y if loss == "squared" else np.sign(y)
    weights = 10.0 ** rng.uniform(-3, 3, n) if rng.uniform() < 0.5 else None
    strength = float(rng.choice([0.0, 1.0, 1.0]) * n * size * 10.0 ** rng.uniform(-5, 2))
    ridge = n * size**2 * 10.0 ** rng.choice([rng.uniform(-12, 12), rng.uniform(-2, 2)])
    problem = mopn.NetworkProblem(
        X, y, loss, kernel, norm, strength, sample_weight=weights, augment=bool(rng.integers(2)), ridge=ridge
    )
    tol = 10.0 ** rng.uniform(-9, -2)
    best = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=tol, max_iter=6)
    found = [best, mopn.certify(problem, best.basis, best.weights)]
    for k in range(5):
        H = rng.standard_normal((int(rng.integers(1, 5)), best.basis.shape[1]))
        V = 10.0 ** rng.uniform(-12, 6) / size * rng.standard_normal((len(H), best.weights.shape[1]))
        V = np.abs(V) if norm == "nonnegative-l1" else V
        if k < 3:
            share = 1.0 - 10.0 ** rng.uniform(-16, 0)
            H, V = np.vstack([best.basis, H]), np.vstack([share * best.weights, V])
        found.append(mopn.certify(problem, H, V, rng.choice(["auto", "power", "refine"])))
    least = min(measured.fun + measured.rounding for measured in found[1:])
    if not max(measured.lower for measured in found) <= least:
        yield f"{problem}: least objective {least!r}, bounds {[measured.lower for measured in found]}"


def layer_violations(rng: Rng) -> Iterator[str]:
    """Yield false statements on bounds of output layers of one unit, from starts near and far."""
    loss, n = str(rng.choice(LOSSES[3:])), int(rng.integers(1, 5))
    features, unit = rng.uniform(0.2, 2.0, n), 10.0 ** rng.choice([rng.uniform(-15, 15), 0.0])
    size = 10.0 ** rng.uniform(-15, 15) if loss == "squared" else 1.0
    y = size * rng.uniform(0.5, 2.0, n) if loss == "squared" else rng.choice([-1.0, 1.0], n)
    features, strength = unit * features, float(unit * size * 10.0 ** rng.uniform(-3, 1))
    with mp.workdps(_DIGITS):
        rows = [(float(t), mpf(s), mpf(0), mpf(1)) for t, s in zip(y, features, strict=True)]
        _, minimum = minimise(loss, rows, mpf(strength))
    problem = mopn.OutputLayerProblem(features[:, None], y[:, None], loss=loss, norm="l1", strength=strength)
    start = size / unit * rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-3, 10)
    for solver in (InteriorPoint(), FISTA()):
        result = mopn.minimize(
            problem, solver, start=np.array([[start]]), tol=10.0 ** rng.uniform(-14, -2), max_iter=60
        )
        distances = [mpf(float(fun)) - minimum for fun in (result.fun, *result.trace["fun"])]
        gaps = [result.gap, *result.trace["gap"]]
        if result.lower > minimum or any(d > gap for d, gap in zip(distances, gaps, strict=True)):
            yield f"{loss} n={n} unit={unit:.1g} y={y} strength={strength} {solver} start={start}: {result}"


def cancelling_violations(rng: Rng) -> Iterator[str]:
    """Yield false statements on networks whose units nearly cancel, for targets that are their rounded outputs."""
    n, d, k = int(rng.integers(1, 9)), int(rng.integers(1, 6)), int(rng.integers(1, 5))
    loss, unit = str(rng.choice(LOSSES[3:])), 10.0 ** rng.choice([rng.uniform(-15, 15), 0.0])
    X, H = unit * rng.standard_normal((n, d)), rng.standard_normal((k, d))
    H = np.vstack([H, H + 10.0 ** rng.uniform(-16, -3) * rng.standard_normal((k, d))])
    a = 10.0 ** rng.uniform(-3, 10) / unit**2 * rng.standard_normal((k, 1))
    strength = float(10.0 ** rng.uniform(-30, 0) * unit**2)
    options: dict[str, Any] = {"loss": loss, "norm": "l1", "strength": strength}
    signs = rng.choice([-1.0, 1.0], (n, 1))
    network = mopn.NetworkProblem(X, signs, **options).start((H, np.vstack([a, -a])))
    basis, weights = network.basis, network.weights
    y = np.array(network.outputs) if loss == "squared" else signs
    try:
        problem = mopn.NetworkProblem(X, y, **options)
    except ValueError:
        return  # The targets are too small, or too large.
    measured = mopn.certify(problem, basis, weights)
    with mp.workdps(_DIGITS + 20):
        exact = exact_objective(loss, X, y[:, 0], basis, weights[:, 0], strength)
        zero = exact_objective(loss, X, y[:, 0], basis[:0], weights[:0, 0], strength)
        lower = mpf(measured.lower)
        held = lower <= min(exact, zero) and exact <= mpf(measured.fun) + mpf(measured.rounding)
        if not (held and exact - lower <= measured.gap):
            words = f"{loss} n={n} d={d} k={k} unit={unit:.1g} strength={strength:.1g}"
            yield f"cancelling {words}: {measured} exact={float(exact):.17g} zero={float(zero):.17g}"


class OwnHuber(mopn.Loss):
    """Huber's loss as one of one's own, with or without the end of its conjugate's domain."""

    targets = "numbers"

    def __init__(self, threshold: float, *, bounded: bool, wrong: float) -> None:
        self.threshold, self.bounded, self.wrong = threshold, bounded, wrong

    def smoothness(self, m: int) -> float:
        """Return the Lipschitz constant of the gradient."""
        return 1.0

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        """Return values and gradients."""
        R = O - y
        G = np.clip(R, -self.threshold, self.threshold)
        return np.sum(G * (R - 0.5 * G), axis=1), G

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the conjugates of slopes up to the threshold, with other curvatures of the larger of these."""
        curvature = np.where(np.abs(G) > 0.5 * self.threshold, self.wrong, 1.0)
        return np.sum(G * (0.5 * curvature * G + y), axis=1)

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        """Return the largest scale, or the squared loss's."""
        largest = float(np.abs(G).max())
        return self.threshold / largest if self.bounded and largest > 0 else math.inf


def loss_violations(rng: Rng) -> Iterator[str]:
    """Yield right losses that are refused, and gaps with wrong ones that are not, by the objective of zero."""
    size, bounded = 10.0 ** rng.uniform(-6, 10), bool(rng.uniform() < 0.3)
    threshold = size * 10.0 ** rng.uniform(-3, 0)
    X = rng.uniform(-1, 1, (40, 3))
    y = size * (X[:, :1] * X[:, 1:2] + 3.0 * (rng.random((40, 1)) < 0.3))
    y[int(rng.integers(40))] *= rng.choice([1.0, 10.0 ** rng.uniform(1, 8)])
    options: dict[str, Any] = {"norm": "l1", "strength": float(size * 10.0 ** rng.uniform(-2, 2))}
    if rng.uniform() < 0.3:
        options["offset"] = np.full((40, 1), size * 10.0 ** rng.uniform(-1, 6))
    wrong = float(rng.choice([1.0, rng.uniform(-3.0, 3.0)]))
    words = f"own loss size={size:.3g} threshold={threshold:.3g} bounded={bounded} wrong={wrong:.3g} {list(options)}"
    # The threshold is lowered later in some draws.
    loss = OwnHuber(threshold * rng.choice([1.0, 1e9]), bounded=bounded, wrong=wrong)
    try:
        problem = mopn.NetworkProblem(X, y, loss=loss, **options)
    except ValueError as error:
        if wrong == 1.0:
            yield f"{words}: refused, {error}"
        return
    loss.threshold = threshold
    zero = mopn.certify(mopn.NetworkProblem(X, y, loss=mopn.Huber(threshold), **options), X[:0], y[:0])
    for weight in size * np.power(10.0, rng.uniform(-2, 4, 3)):
        measured = mopn.certify(problem, np.eye(3)[[0, 0]], [[weight], [-weight]])
        if measured.lower > zero.fun + zero.rounding:
            yield f"{words} weight={weight:.3g}: {measured}, zero has {zero.fun:.17g}"


# -- stacks of matrices ------------------------------------------------------------------------------------------------


def attained_values(A: np.ndarray, rng: Rng, starts: int) -> Iterator[tuple[str, float, float]]:
    """Yield norm, exponent, and a value that the stack attains, less what its own evaluation may err by."""
    stack, scale = sphere.DenseStack(A).scaled()
    for norm, p in zip(NORMS, (np.inf, 2.0, 1.0), strict=True):
        largest = largest_value(stack, p, rng, starts)
        yield norm, p, max(largest, largest_leaf(stack.matrices) if p == 1 else 0.0) * scale


def largest_value(stack: sphere.DenseStack, p: float, rng: Rng, starts: int) -> float:
    """Return the largest value that was found, with the errors of forming the stack for it; in extended precision."""
    m, d = stack.shape
    H, _ = sphere.refine(stack, unit_rows(rng, starts, d), p, tol=1e-10, max_iter=200)
    H, A = H.astype(np.longdouble), stack.matrices.astype(np.longdouble)
    # The sums of squares may exceed 1 by their own rounding.
    lengths = np.sum(H * H, axis=1, keepdims=True)
    Q = np.abs(np.einsum("kic,ki->kc", np.einsum("cij,kj->kic", A, H), H) / lengths) + stack.error
    eps = float(np.finfo(np.longdouble).eps)
    return float(np.linalg.norm(Q.astype(np.longdouble), p, axis=1).max() * (1 - 2.0**-53)) - (
        3 * d + m + 4
    ) * eps * float(np.abs(A).sum())


def unit_rows(rng: Rng, k: int, d: int) -> np.ndarray:
    """Draw unit vectors (k, d)."""
    H = rng.standard_normal((k, d))
    return H / np.linalg.norm(H, axis=1, keepdims=True)


def largest_leaf(A: np.ndarray) -> float:
    """Return the largest eigenvalue of all signed sums of matrices (m, d, d), less its error bound: all leaves."""
    signs = np.array([(1.0, *s) for s in itertools.product((1.0, -1.0), repeat=len(A) - 1)])
    sums = np.tensordot(signs, A, axes=1)
    return float(np.abs(np.linalg.eigvalsh(sums)).max()) - max(map(eigen_error, sums)) * len(A)


def bound_violations(rng: Rng, make: Callable[[Rng], tuple[np.ndarray, str]]) -> Iterator[str]:
    """Yield the bounds of a drawn stack that an attained value, or a leaf, exceeds by more than that may err."""
    A, words = make(rng)
    for norm, _, attained in attained_values(A, rng, starts=20):
        for method in METHODS:
            if method == "enumerate" and norm != "l1/linf":
                continue
            bound = basis_oracle(norm, method=method, max_work=200 * NODE_WORK)(A).bound
            if not attained <= bound:
                yield f"stack {words} {norm} {method}: bound={bound:.17g} attained={attained:.17g}"


def clustered_violations(rng: Rng) -> Iterator[str]:
    """Yield the bounds for l1/linf of a stack of nearly tied directions that are below one of its leaves."""
    A, words = draw_clustered_stack(rng)
    leaf = largest_leaf(A)
    for nodes in (4, 1_000_000):
        bound = basis_oracle("l1/linf", method="exact", max_work=nodes * NODE_WORK)(A).bound
        if not leaf <= bound:
            yield f"stack {words} nodes={nodes}: bound={bound:.17g} leaf={leaf:.17g}"


def wide_violations(rng: Rng) -> Iterator[str]:
    """Yield the false bounds among those on principal directions and those from random starts."""
    A, words = draw_wide_stack(rng)
    stack, scale = sphere.DenseStack(A).scaled()
    for norm, p, attained in attained_values(A, rng, starts=10):
        exact = basis_oracle(norm, method="exact")(A, Effort(_ROUGH, work=_WORK)).bound
        random = probable_bound(stack, p, 0.2, _SURE, rng)[1] * scale
        for method, bound in (("exact", exact), ("lanczos", random)):
            if not attained <= bound:
                yield f"stack {words} {norm} {method}: bound={bound:.17g} attained={attained:.17g}"


def form_violations(rng: Rng) -> Iterator[str]:
    """Yield the biquadratic forms on some directions, at some bound near the maximum, that prove a false one."""
    A, words = draw_dependent_stack(rng)
    for p in (1, 2):
        stack, _ = sphere.DenseStack(A).scaled()
        attained = largest_value(stack, p, rng, starts=20)
        outputs = rotated_outputs(stack) if p == 2 else None
        stack = stack if outputs is None else outputs.stack
        stack = in_basis(stack, principal_basis(stack))
        r = int(rng.integers(1, stack.shape[1] + 1))
        R = rest_majorant(stack.matrices[:, r:, r:], p)
        # From next to the largest eigenvalue of R on.
        least = np.linalg.eigvalsh(R).max(initial=0.0) * (1.0 + 10.0 ** rng.uniform(-10, 0))
        t = max(least, attained * rng.choice([rng.uniform(0.0, 3.0), 1.0 - 10.0 ** rng.uniform(-15, 0)]))
        form = Biquadratic(stack.matrices, r, t, R, p)
        n = len(form.matrix)
        none, budget = Multipliers.none(n), Budget(rng.integers(0, 200) * step_work(n))
        proven = tighten(form, none, t, budget).bound
        if p == 1:
            nodes, _ = branch_on_forms(form, none, lambda starts: None, lambda t=t: t, Budget(3e9))
            proven = min(proven, nodes)
        bound = proven + stack.rounding(p)
        bound = bound if outputs is None else outputs.bound(bound)
        if not attained <= bound:
            yield f"stack {words} p={p} r={r} t={t:.17g}: bound={bound:.17g} attained={attained:.17g}"


def square_violations(rng: Rng) -> Iterator[str]:
    """Yield the sums of squares of some degree that prove a false bound, by multipliers that are good, or huge."""
    A, words = draw_dependent_stack(rng)
    degree = int(rng.integers(2, 5))
    stack, _ = sphere.DenseStack(A[:, : _FEATURES[degree], : _FEATURES[degree]]).scaled()
    attained, quartic = largest_value(stack, 2.0, rng, starts=20), Quartic(stack)
    for _ in range(2, degree):
        quartic = quartic.raised()
    noise = rng.standard_normal((len(quartic.matrix), len(quartic.matrix)))
    start = Multipliers.none(len(quartic.matrix))
    if rng.uniform() < 0.3:
        start = start._replace(N=10.0 ** rng.uniform(-3, 12) * (noise + noise.T))
    target = (attained * (1.0 + 10.0 ** rng.uniform(-15, -2))) ** 2
    proof = tighten(quartic, start, target, Budget(rng.integers(0, 200) * step_work(len(quartic.matrix))))
    bound = math.sqrt(proof.bound) + stack.rounding(2)
    if not attained <= bound:
        yield f"stack {words} degree={degree}: bound={bound:.17g} attained={attained:.17g}"


def run_violations(rng: Rng) -> Iterator[str]:
    """Yield the false bounds of a run over similar stacks, formed with errors: multipliers of one start the next."""
    A, words = draw_dependent_stack(rng)
    p, method = int(rng.integers(1, 3)), str(rng.choice(["auto", "exact"]))
    m, d = A.shape[:2]
    size, norm, last = float(np.abs(A).max()), NORMS[3 - p], None
    error = size * 10.0 ** rng.uniform(-14, -1) * rng.uniform(size=m) * rng.integers(0, 2, m)
    similar = 10.0 ** rng.uniform(-12, 1) * A[:, ::-1, ::-1] + rng.integers(0, 2) * size * np.eye(d)
    oracle = basis_oracle(norm, method).begin()
    for k in range(3):
        stack, scale = sphere.DenseStack(A + k * similar, error).scaled()
        attained = max(largest_value(stack, p, rng, 10), largest_leaf(stack.matrices) if p == 1 else 0.0) * scale
        precision, work = 10.0 ** rng.uniform(-12, -1), 10.0 ** rng.uniform(8.3, 9.3)
        # One start alone: the best value is not always the maximum.
        nested = nest_and_bound(stack, unit_rows(rng, 1, d), p, precision, Budget(work), last)
        last = nested.last
        bounds = {
            "forms": nested.bound * scale,
            method: oracle(sphere.DenseStack(A + k * similar, error), Effort(precision, work=work)).bound,
        }
        for name, bound in bounds.items():
            if not attained <= bound:
                yield f"stack {words} {norm} {name} k={k}: bound={bound:.17g} attained={attained:.17g}"


def start_violations(rng: Rng, seed: int | None = None) -> Iterator[str]:
    """Yield the random bounds below the value of a unit that is orthogonal to starts whose seeds are known.

    With a ``seed``, the user's promise that nobody who chose the data knows it, the search shows that it can find one.
    """
    d = int(rng.integers(200, 301))
    known = np.vstack([np.random.default_rng(known).standard_normal((2, d)) for known in _KNOWN_SEEDS])
    Q = np.linalg.qr(known.T)[0]
    h = rng.standard_normal(d)
    for _ in range(3):
        h -= Q @ (Q.T @ h)
    X = np.linalg.qr(np.column_stack([h, rng.standard_normal((d, d - 1))]))[0].T
    # Others are dense at both ends, so that their norm is estimated well; random bounds add less than the excess.
    spectrum = np.append(1.0 + rng.uniform(1.2, 1.5) * _LOOSE, np.cos(np.pi * np.arange(d - 1) / d))
    problem = mopn.NetworkProblem(X, -spectrum, loss="squared", norm="l1", strength=1.0)
    oracle = basis_oracle("l1", "lanczos", seed=seed)
    bound = problem.bound(problem.gradient_at_zero(), oracle, Effort(precision=_LOOSE))
    attained = abs(float((X @ X[0]) ** 2 @ spectrum)) * (1.0 - 1e-12)
    if not attained <= bound:
        yield f"starts d={d} seed={seed}: bound={bound:.17g} attained={attained:.17g}"


# -- the search --------------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of draws, made once in a number of rounds: slow draws are seldom."""

    violations: Callable[[Rng], Iterator[str]]
    one_in: int = 1


KINDS = {
    "gaps": Kind(partial(gap_violations, make=draw)),
    "stacks": Kind(partial(bound_violations, make=draw_stack), 4),
    "wide": Kind(wide_violations, 4),
    "classes": Kind(partial(gap_violations, make=draw_classes), 2),
    "outputs": Kind(partial(gap_violations, make=draw_outputs), 2),
    "minima": Kind(partial(gap_violations, make=draw_minimum), 2),
    "ridges": Kind(partial(gap_violations, make=partial(draw, ridged=True))),
    "ridged": Kind(ridged_violations, 2),
    "layers": Kind(layer_violations),
    "cancelling": Kind(cancelling_violations),
    "losses": Kind(loss_violations),
    "clustered": Kind(clustered_violations, 2),
    "starts": Kind(start_violations, 10),
    "forms": Kind(form_violations, 2),
    "runs": Kind(run_violations, 2),
    "squares": Kind(square_violations, 2),
    "few": Kind(partial(bound_violations, make=draw_few_outputs), 4),
    "radii": Kind(radius_violations),
    "integers": Kind(integer_violations),
    "qubo": Kind(qubo_violations),
    "shapley": Kind(shapley_violations),
    "files": Kind(file_violations),
    "storages": Kind(storage_violations, 2),
    "repetition": Kind(repetition_violations, 4),
    "exports": Kind(export_violations, 10),
}


def violations(rounds: range, seed: int) -> Iterator[str]:
    """Yield the violations found in some rounds of draws."""
    for k in rounds:
        for number, (name, kind) in enumerate(KINDS.items()):
            if k % kind.one_in == 0:
                for found in kind.violations(np.random.default_rng((seed, k, number))):
                    yield f"{name}, round {k}: {found}"


def main(arguments: list[str] | None = None) -> int:
    """Print the violations; return 1 if there is one."""
    parser = make_parser("certificates.search", (__doc__ or "").split("\n")[0], data=False, results="certificates")
    parser.add_argument("--rounds", type=int, default=1000, help="of draws (default 1000)")
    parser.add_argument("--seed", type=int, default=0)

    def search(options: Any) -> int:
        store = Store(out_folder(options) / "search.csv", ["seed", "first", "violations"], ["seed", "first"])
        firsts = range(0, options.rounds, _A_ROW)

        def key(first: int) -> dict[str, int]:
            return {"seed": options.seed, "first": first}

        def row(first: int) -> dict[str, int]:
            found = list(violations(range(first, first + _A_ROW), options.seed))
            for words in found:
                print(words, flush=True)
            return key(first) | {"violations": len(found)}

        failed = fill(store, firsts, key, row, "{violations} violations in the rounds from {first} on")
        done = [row for row in store.rows() if row["seed"] == str(options.seed)]
        found, rounds = sum(int(row["violations"]) for row in done), _A_ROW * len(done)
        draws = {name: rounds // kind.one_in for name, kind in KINDS.items()}
        print(f"{found} violations in {sum(draws.values())} draws: {', '.join(f'{n} {k}' for k, n in draws.items())}")
        return failed + found

    return run(parser, search, arguments)


if __name__ == "__main__":
    sys.exit(main())

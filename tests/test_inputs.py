"""Data, options and starts of problems and estimators: what cannot be meant is refused by an error that names it."""

import inspect
from functools import partial

import numpy as np
import pytest
from odd_values import ODD, failures, is_clear
from scipy import sparse

import mopn
from mopn.core.kernels import KERNELS, get_kernel
from mopn.core.norms import NORMS, get_norm
from mopn.estimators import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    MultiOutputFMRegressor,
    MultiOutputPNClassifier,
    OrdinalFMRegressor,
)
from mopn.losses.loss import LINKS, check_link
from mopn.losses.losses import LOSSES, get_loss
from mopn.oracles import basis_oracle

N = 16
X = np.random.default_rng(0).uniform(-1, 1, (N, 3))
NUMBERS = X[:, 0] * X[:, 1]
LABELS = np.arange(N) % 2
ONES = np.ones(N)


def network(X=X, y=LABELS, strength=1.0, **options):
    return mopn.NetworkProblem(X, y, strength=strength, **options)


def regression(X=X, y=NUMBERS, **options):
    return network(X, y, loss="squared", **options)


def layer(features=X, y=LABELS, strength=1.0, **options):
    return mopn.OutputLayerProblem(features, y, strength=strength, **options)


def direct(X=X, y=NUMBERS, **options):
    return mopn.FactorizationProblem(X, y, **{"n_components": 2} | options)


def lifted(X=X, y=NUMBERS, **options):
    return mopn.LiftedProblem(X, y, **{"rank": 2} | options)


# -- options ----------------------------------------------------------------------------------------------------------

MAKERS = {
    "network": (network, mopn.NetworkProblem),
    "output layer": (layer, mopn.OutputLayerProblem),
    "direct": (direct, mopn.FactorizationProblem),
    "lifted": (lifted, mopn.LiftedProblem),
    "oracle": (lambda norm="l1", **options: basis_oracle(norm, **options), basis_oracle),
}
OPTIONS = [
    (maker, name)
    for maker, (_, public) in MAKERS.items()
    for name in inspect.signature(public).parameters
    if name not in ("X", "y", "features")
]


@pytest.mark.parametrize(("maker", "name"), OPTIONS)
def test_odd_options_of_problems_are_taken_or_refused_by_name(maker, name):
    make = MAKERS[maker][0]
    given = {"strength": None} if name == "radius" else {}
    assert not failures(name, ODD, lambda value: make(**given | {name: value}))


# Public functions, and models made by hand, with valid arguments.
FUNCTIONS = {
    mopn.Model: {"basis": np.eye(3)[:2], "weights": np.ones((2, 2))},
    mopn.FactorizationModel: {"factors": np.ones((1, 2, 3)), "degree": 2, "lams": np.ones(2)},
    mopn.RelationBlocks: {"tables": [np.eye(3)], "rows": np.zeros((4, 1), int)},
    mopn.certify: {"problem": network(), "basis": np.eye(3)[:1], "weights": np.ones((1, 2))},
    mopn.certify_network: {"H": np.eye(3)[:1], "V": np.ones((1, 2)), "X": X, "y": LABELS},
    mopn.minimize: {"problem": network(), "solver": mopn.solvers.ConditionalGradient(), "max_iter": 1},
    mopn.solvers.sphere.maximise: {"matrices": [np.eye(2)]},
}
FUNCTIONS |= {
    mopn.explain.strongest_interactions: {"model": mopn.FactorizationModel(**FUNCTIONS[mopn.FactorizationModel])},
    mopn.explain.certified_radius: {"model": mopn.Model(np.eye(3), np.eye(3)[:, :2], classes=np.arange(2)), "X": X},
}
ARGUMENTS = [
    (function, name)
    for function in FUNCTIONS
    for name in inspect.signature(function).parameters
    if name not in ("feature_names", "output_names")
]


@pytest.mark.parametrize(("function", "name"), ARGUMENTS, ids=lambda part: getattr(part, "__name__", part))
def test_odd_arguments_of_functions_are_taken_or_refused_by_name(function, name):
    function(**FUNCTIONS[function])
    assert not failures(name, ODD, lambda value: function(**FUNCTIONS[function] | {name: value}))


REFUSED = {
    "a radius and a strength": (
        lambda: mopn.NetworkProblem(X, LABELS, strength=1.0, radius=10.0),
        r"only one of them; .*; set strength=None for a ball",
    ),
    "sparse features": (
        lambda: layer(sparse.csr_array(X)),
        r"features must be dense, got a sparse matrix; convert it by features\.toarray",
    ),
    "complex matrices": (lambda: basis_oracle("l1")(1j * np.eye(2)[None]), "Gamma must hold real numbers"),
    "other lengths than y": (
        lambda: direct(X[:8], sample_weight=np.r_[0.0, ONES[1:]]),
        "y must have one row per sample: X has 8 rows",
    ),
    "masked entries of absent samples": (
        lambda: direct(np.ma.MaskedArray(X, X[0, 0] == X), sample_weight=np.r_[0.0, ONES[1:]]),
        "X has masked entries",
    ),
    **{
        f"None among the weights, {make.__name__}": (
            lambda make=make: make(sample_weight=[None, *ONES[1:]]),
            "sample_weight must be finite and >= 0",
        )
        for make in (direct, lifted, regression)
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_why(case):
    call, message = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=message):
        call()


CHOICES = {
    "kernel": (get_kernel, KERNELS),
    "norm": (get_norm, NORMS),
    "loss": (get_loss, LOSSES),
    "link": (check_link, dict.fromkeys(LINKS)),
}


@pytest.mark.parametrize("argument", CHOICES)
def test_choices_are_names_or_objects_and_errors_list_them(argument):
    get, known = CHOICES[argument]
    for name, thing in known.items():
        assert get(name) is (thing or name)
        assert get(thing) is thing
    for wrong in ("rbf", "", 2, np.exp):
        with pytest.raises((TypeError, ValueError), match=f"^{argument} must be one of .*, got") as error:
            get(wrong)
        assert all(repr(name) in str(error.value) for name in known)


# -- data -------------------------------------------------------------------------------------------------------------


def with_first(values, first):
    """An array of objects like another one but for its first entry."""
    changed = np.array(values, dtype=object)
    changed.flat[0] = first
    return changed


# Values that NumPy converts to floats without an error, and values that it does not convert.
CHANGES = {
    "complex numbers": lambda a: a + 1j,
    "dates": lambda a: np.round(a).astype("datetime64[D]"),
    "no date": lambda a: with_first(a, np.datetime64("NaT", "s")),
    "differences of dates": lambda a: np.round(a).astype("timedelta64[D]"),
    "masked entries": lambda a: np.ma.MaskedArray(a, np.arange(a.size).reshape(a.shape) == 1),
    "None": lambda a: with_first(a, None),
    "a huge int": lambda a: with_first(a, 10**400),
    "words": lambda a: with_first(a, "red"),
    "rows of several lengths": lambda a: [[1.0] * 7, *a.tolist()[1:]],
}
TARGETS = {
    "network": (lambda **data: regression(**data), ("X", "y", "sample_weight", "offset")),
    "output layer": (layer, ("features", "sample_weight", "offset")),
    "direct": (direct, ("X", "y", "sample_weight", "offset")),
    "lifted": (lifted, ("X", "y", "sample_weight", "offset")),
    "ordinal": (lambda X=X, y=LABELS, **data: OrdinalFMRegressor(max_units=2).fit(X, y, **data), ("X", "y")),
    "regressor": (lambda X=X, y=NUMBERS, **data: MultiOutputFMRegressor(max_units=2).fit(X, y, **data), ("X", "y")),
    "one output": (lambda X=X, y=NUMBERS: FactorizationMachineRegressor(max_iter=1).fit(X, y), ("X", "y")),
    "classifier": (lambda X=X, **w: MultiOutputPNClassifier(max_units=2).fit(X, LABELS, **w), ("X", "sample_weight")),
}
CASES = [(target, name) for target, (_, names) in TARGETS.items() for name in names]


@pytest.mark.parametrize(("target", "name"), CASES)
def test_data_that_would_lose_a_part_are_refused_by_name(target, name):
    clean = {"X": X, "features": X, "y": NUMBERS, "sample_weight": ONES, "offset": ONES[:, None]}[name]
    if (target, name) == ("ordinal", "y"):
        clean = LABELS.astype(float)
    if (target, name) == ("output layer", "offset"):
        clean = np.ones((N, 2))
    for label, change in CHANGES.items():
        with pytest.raises((TypeError, ValueError)) as error:
            TARGETS[target][0](**{name: change(clean)})
        # scikit-learn refuses complex numbers itself.
        assert is_clear(error.value, name) or "Complex data not supported" in str(error.value), label


@pytest.mark.parametrize("change", ["no date", "masked entries", "None"])
def test_missing_labels_are_no_class(change):
    y = CHANGES[change](LABELS.astype(float))
    for fit in (network, MultiOutputPNClassifier().fit, FactorizationMachineClassifier().fit):
        with pytest.raises((TypeError, ValueError), match=r"\by\b|Input contains NaN"):
            fit(X, y)


@pytest.mark.parametrize("estimator", [MultiOutputPNClassifier(), FactorizationMachineClassifier()])
def test_labels_of_mixed_types_cannot_be_sorted(estimator):
    y = np.where(LABELS > 0, "a", "b").astype(object)
    y[0] = 1
    with pytest.raises(ValueError, match=r"y holds labels that cannot be sorted .*; give labels of a single type"):
        estimator.fit(X, y)


def test_masks_that_hide_nothing_are_taken():
    plain, masked = (
        mopn.minimize(regression(form(X), form(NUMBERS)), mopn.solvers.ConditionalGradient(), max_iter=3)
        for form in (np.asarray, np.ma.MaskedArray)
    )
    np.testing.assert_array_equal(plain.x, masked.x)
    fits = [MultiOutputFMRegressor(max_units=2).fit(form(X), form(NUMBERS)) for form in (np.asarray, np.ma.MaskedArray)]
    np.testing.assert_array_equal(fits[0].predict(X), fits[1].predict(np.ma.MaskedArray(X)))
    with pytest.raises(ValueError, match="X has masked entries"):
        fits[0].predict(np.ma.MaskedArray(X, X > 0))


def test_data_frames_of_dates_are_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = MultiOutputFMRegressor(max_units=2).fit(frame, NUMBERS)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    for dates in (frame.astype("datetime64[ns]"), frame.assign(b=pd.Timestamp("2020-01-01"))):
        with pytest.raises(TypeError, match="X must"):
            model.predict(dates)


@pytest.mark.parametrize(
    "kind",
    [
        partial(MultiOutputFMRegressor, max_units=2),
        partial(FactorizationMachineRegressor, solver="lbfgs", alpha=1.0, beta=1.0),
    ],
)
def test_names_of_blocks_are_those_of_the_model(kind):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    model = kind(warm_start=True).fit(mopn.RowBlocks([lambda: frame]), NUMBERS)
    assert model.feature_names_in_.tolist() == model.model_.feature_names.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["c", "a", "b"]])
    model.fit(mopn.RowBlocks([lambda: frame[["c", "a", "b"]]]), NUMBERS)
    found, expected = model.predict(frame[model.feature_names_in_]), kind().fit(frame, NUMBERS).predict(frame)
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert not hasattr(model.set_params(warm_start=False).fit(mopn.RowBlocks([X]), NUMBERS), "feature_names_in_")


def test_names_of_blocks_are_those_of_partial_fit():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    named, plain = (FactorizationMachineRegressor(solver="adagrad", random_state=0) for _ in range(2))
    for names in (["a", "b", "c"], ["c", "a", "b"]):
        blocks = [lambda part=part: part for part in (frame[names][:9], frame[names][9:])]
        named.partial_fit(mopn.RowBlocks(blocks), NUMBERS)
        plain.partial_fit(mopn.RowBlocks([X[:9], X[9:]]), NUMBERS)
    assert named.feature_names_in_.tolist() == named.model_.feature_names.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(named.model_.factors, plain.model_.factors)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        named.partial_fit(mopn.RowBlocks(blocks), np.c_[NUMBERS, NUMBERS])
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(plain, "feature_names_in_")


# -- starts -----------------------------------------------------------------------------------------------------------


def both_layers(oracle):
    problem = network(y=np.arange(N) % 3)
    return problem.joint(problem.start((np.eye(3), np.ones((3, 3)))), mopn.solvers.interface.Form(oracle))


PROBLEMS = {
    "network": network,
    "output layer": layer,
    "direct": direct,
    "fitted lambda": lambda: direct(lams="fit"),
    "lifted": lifted,
    "joint": lambda: both_layers("gradient"),
    "unit ball": lambda: both_layers("composite"),
}
RESULTS = {
    "network": lambda: mopn.minimize(network(), mopn.solvers.ConditionalGradient(), max_iter=1),
    "direct": lambda: mopn.minimize(direct(n_components=3), mopn.solvers.LBFGS(), max_iter=1),
}
BAD_STARTS = {
    "words": "nonsense",
    "a number": 0.5,
    "True": True,
    "a class": int,
    "unknown names": {"p": 1},
    "a name without an array": {"P": "a", "U": "a"},
    "ragged": [[1.0], [1.0, 2.0]],
    "another size": np.ones(7),
    "NaN": lambda problem: np.full_like(problem.unpack(problem.start())["x"], np.nan),
    "complex": lambda problem: problem.unpack(problem.start())["x"] + 1j,
    "masked": lambda problem: np.ma.masked_all_like(problem.unpack(problem.start())["x"]),
}


@pytest.mark.parametrize("bad", BAD_STARTS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_bad_starts_are_refused(problem, bad):
    problem, start = PROBLEMS[problem](), BAD_STARTS[bad]
    if callable(start) and start is not int:
        start = start(problem)
    with pytest.raises((TypeError, ValueError), match="start"):
        problem.start(start)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_results_of_other_problems_are_no_start(problem):
    other = RESULTS["direct" if problem in ("network", "output layer", "lifted") else "network"]()
    with pytest.raises((TypeError, ValueError), match="start"):
        PROBLEMS[problem]().start(other)


@pytest.mark.parametrize(
    ("problem", "solver"),
    [
        ("network", mopn.solvers.ConditionalGradient()),
        ("output layer", mopn.solvers.FISTA()),
        ("direct", mopn.solvers.LBFGS()),
        ("lifted", mopn.solvers.LBFGS()),
        ("joint", mopn.solvers.LBFGS()),
        ("unit ball", mopn.solvers.FISTA()),
    ],
)
def test_an_earlier_result_is_a_start(problem, solver):
    problem = PROBLEMS[problem]()
    first = mopn.minimize(problem, solver, tol=0.0, max_iter=2)
    again = mopn.minimize(problem, solver, tol=0.0, max_iter=0, start=first)
    assert again.trace["fun"][0] == pytest.approx(first.fun, rel=1e-12)


def test_a_start_may_lack_parameters_but_has_no_others():
    problem, P = direct(fit_linear=True), np.ones((1, 2, 3))
    np.testing.assert_array_equal(problem.unpack(problem.start({"P": P}))["P"], P)
    result = mopn.minimize(direct(), mopn.solvers.LBFGS(), max_iter=2)
    np.testing.assert_array_equal(problem.unpack(problem.start(result))["P"], result.P)
    with pytest.raises(ValueError, match=r"start has unknown parameters 'U', 'v'; this problem has 'P', 'lams', 'w'"):
        problem.start({"P": P, "v": P, "U": P})
    with pytest.raises(ValueError, match="start is a result without 'P', so of another problem"):
        problem.start(RESULTS["network"]())


def test_a_warm_start_after_other_parameters_were_left_out():
    model = FactorizationMachineRegressor(warm_start=True, random_state=0, n_components=2).fit(X, NUMBERS)
    model.set_params(fit_linear=False, fit_intercept=False).fit(X, NUMBERS)
    assert np.isfinite(model.objective_)

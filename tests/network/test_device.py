"""Network problems with X on a device: gradients, fits and certificates against those of the same data in NumPy."""

import numpy as np
import pytest
from devices import LIBRARIES, on_device

import mopn
from mopn.core.kernels import KERNELS
from mopn.data.device_design import DeviceDesign
from mopn.data.device_rows import DeviceRows
from mopn.data.rows_of_data import rows_of_data
from mopn.losses.losses import LOSSES
from mopn.network.two_layers import two_layers
from mopn.solvers import FISTA, ConditionalGradient, FullRefit

RNG = np.random.default_rng(0)
N, D, M, K = 60, 5, 3, 4
X = RNG.uniform(-1, 1, (N, D))
WEIGHTS, OFFSET = RNG.uniform(0.5, 2.0, N), RNG.standard_normal((N, M))
V = RNG.standard_normal((K, M))
every_library = pytest.mark.parametrize("library", LIBRARIES)


def targets(loss):
    kind = LOSSES[loss].targets
    if kind == "labels":
        return np.argmax(X[:, :M] * X[:, 1 : 1 + M], axis=1)
    numbers = X[:, :M] * X[:, 1 : 1 + M]
    if kind == "counts":
        return np.round(4.0 * np.abs(numbers))
    return numbers if kind == "numbers" else np.where(numbers > 0, 1.0, -1.0)


def both_rows(library, loss, dummies, size=None, weights=WEIGHTS, offset=OFFSET, dtype=np.float64):
    host = rows_of_data(X.astype(dtype), targets(loss), loss, weights, offset).in_coordinates(None, dummies)
    device = DeviceRows(DeviceDesign(on_device(library)(X.astype(dtype)), None, dummies), host.losses, size)
    return device, host


def check_layers(device, host, kernel, dummies, linear, single=False):
    # Outputs of moderate size: the exponentials of the Poisson loss multiply the errors of single precision.
    rng = np.random.default_rng(1)
    H = 0.5 * rng.standard_normal((K, D + dummies))
    W = 0.5 * rng.standard_normal((M, 1 + D if linear else 0))
    tol = 1e-5 if single else 1e-12
    kernel = KERNELS[kernel]
    found = two_layers(device, kernel, single=single).value_gradient(H, V, W)
    expected = two_layers(host, kernel).value_gradient(H, V, W)
    assert two_layers(device, kernel, single=single).value(H, V, W) == pytest.approx(expected[0], rel=tol)
    for of_device, of_host in zip(found, expected, strict=True):
        assert np.asarray(of_device).dtype == np.float64
        np.testing.assert_allclose(of_device, of_host, rtol=tol, atol=tol * np.abs(of_host).max(initial=1.0))


@pytest.mark.covering(1)
@every_library
@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize(("dummies", "linear"), [(0, False), (1, True), (2, False)])
@pytest.mark.parametrize("single", [False, True])
def test_gradients(library, loss, kernel, dummies, linear, single):
    check_layers(*both_rows(library, loss, dummies, size=17), kernel, dummies, linear, single)


@every_library
@pytest.mark.parametrize("size", [1, 59, 60, 1000])
@pytest.mark.parametrize(("weights", "offset"), [(None, None), (WEIGHTS, None), (None, OFFSET)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_by_blocks_weights_and_precisions_of_x(library, size, weights, offset, dtype):
    check_layers(*both_rows(library, "logistic", 1, size, weights, offset, dtype), "anova", 1, linear=True)


@every_library
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_without_units_there_is_the_linear_term(library, kernel):
    device, host = both_rows(library, "logistic", 0)
    point = np.zeros((0, D)), np.zeros((0, M)), np.random.default_rng(1).standard_normal((M, 1 + D))
    found, expected = (two_layers(rows, KERNELS[kernel]).value_gradient(*point) for rows in (device, host))
    for of_device, of_host in zip(found, expected, strict=True):
        np.testing.assert_allclose(of_device, of_host, rtol=1e-12, atol=1e-12)


@every_library
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_forms_products_and_matrices(library, kernel):
    """Gamma, its forms and products, and the bounds of rounding that proofs add."""
    device, host = both_problems(library, kernel=kernel, strength=1.0)
    rng = np.random.default_rng(1)
    network = rng.standard_normal((K, D)), rng.standard_normal((K, M))
    forms = [problem._forms(problem.output_gradient(problem.start(network))) for problem in (device, host)]
    H, W = rng.standard_normal((7, D)), rng.standard_normal((7, M))
    for function in (
        lambda forms: forms.forms(H),
        lambda forms: forms.products(W, H),
        lambda forms: forms.dense().matrices,
        lambda forms: forms.combination(W[0])[0],
        lambda forms: forms.rounding(2),
        lambda forms: forms.scaled()[1],
        lambda forms: forms.collatz_bound(2),
    ):
        found, expected = map(function, forms)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def both_problems(library, dtype=np.float64, loss="logistic", **options):
    data = X.astype(dtype)
    return [mopn.NetworkProblem(part, targets(loss), loss=loss, **options) for part in (on_device(library)(data), data)]


OPTIONS = {
    "penalty": {"norm": "l1/l2", "strength": 0.5},
    "ball": {"norm": "l1", "radius": 3.0, "kernel": "anova"},
    "linear": {"norm": "l1/linf", "strength": 0.5, "alpha": 1.0},
    "coordinates": {"norm": "l1/l2", "strength": 0.1, "augment": True, "center": True, "scale": "features"},
    "offset": {"norm": "l1", "strength": 0.3, "sample_weight": WEIGHTS, "offset": OFFSET, "scale": "data"},
}


@every_library
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("loss", ["logistic", "squared", "binary-squared-hinge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certificates(library, options, loss, dtype):
    device, host = both_problems(library, dtype, loss, **options)
    rng = np.random.default_rng(0)
    basis, weights = rng.standard_normal((K, device.rows.shape[1])), 0.02 * V
    linear = 0.1 * rng.standard_normal((M, 1 + D)) if "alpha" in options else None
    found, expected = (mopn.certify(problem, basis, weights, "exact", linear=linear) for problem in (device, host))
    for name in ("lower", "rounding", "restricted_lower"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6)
    assert found.fun == pytest.approx(expected.fun, rel=1e-12)


FITS = [
    ("linear", "single"),
    ("coordinates", "full"),
    ("ball", "none"),
    ("ball", "output"),
    ("ball", "full"),
    ("ball", "fista"),
]
REFITS = {"single": FullRefit(precision="single"), "fista": FullRefit(solver=FISTA())}


@every_library
@pytest.mark.parametrize(("options", "refit"), FITS, ids=lambda name: name)
@pytest.mark.slow
def test_fits(library, options, refit):
    """The minima are the same, as the gaps prove: they may be reached on other ways."""
    solver = ConditionalGradient(refit=REFITS.get(refit, refit))
    tol = 0.2 if refit == "none" else 1e-3
    problems = both_problems(library, loss="squared" if options == "ball" else "logistic", **OPTIONS[options])
    device, host = (mopn.minimize(problem, solver, tol=tol, max_iter=400) for problem in problems)
    assert device.success
    assert host.success
    assert device.fun - device.gap <= host.fun
    assert host.fun - host.gap <= device.fun


@every_library
@pytest.mark.slow
def test_models_and_strengths(library):
    device, host = both_problems(library, augment=True, scale="features", strength=0.1)
    assert device.strength_max() == pytest.approx(host.strength_max(), rel=1e-8)
    result = mopn.minimize(device, ConditionalGradient(refit="full"), tol=1e-2)
    model = mopn.Model.from_result(device, result)
    expected = host.start(result).outputs
    np.testing.assert_allclose(model.outputs(X), expected, rtol=1e-9, atol=1e-9)


@every_library
def test_targets_and_weights_may_be_on_the_device(library):
    move = on_device(library)
    y = targets("logistic")
    device = mopn.NetworkProblem(move(X), move(y), strength=1.0, sample_weight=move(WEIGHTS), offset=move(OFFSET))
    host = mopn.NetworkProblem(X, y, strength=1.0, sample_weight=WEIGHTS, offset=OFFSET)
    assert device.measure(device.start()).fun == pytest.approx(host.measure(host.start()).fun, rel=1e-13)


WRONG = {
    "nan": (lambda X: np.where(0.99 * X.max() < X, np.nan, X), ValueError, "NaN or infinity"),
    "vector": (lambda X: X[:, 0], ValueError, "two-dimensional"),
    "no rows": (lambda X: X[:0], ValueError, "X is empty"),
    "no columns": (lambda X: X[:, :0], ValueError, "0 features"),
    "integers": (lambda X: (9 * X).astype(np.int64), TypeError, "float32 or float64, got .*int64"),
    "large": (lambda X: 1e60 * X, ValueError, "X is too large"),
    "length": (lambda X: X[1:], ValueError, "one row per sample"),
}


@every_library
@pytest.mark.parametrize(("wrong", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_x(library, wrong, error, message):
    with pytest.raises(error, match=message):
        mopn.NetworkProblem(on_device(library)(wrong(X)), targets("logistic"), strength=1.0)


@every_library
def test_missing_targets(library):
    with pytest.raises(TypeError, match="y is missing"):
        mopn.NetworkProblem(on_device(library)(X), strength=1.0)


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr"])
@pytest.mark.filterwarnings("ignore")
def test_sparse_tensors_are_refused(form):
    tensor = getattr(on_device("torch")(X), form)()
    with pytest.raises(TypeError, match="must be dense"):
        mopn.NetworkProblem(tensor, targets("logistic"), strength=1.0)


def test_tensors_with_gradients_are_data_alone():
    tensor = on_device("torch")(X).requires_grad_()
    problem = mopn.NetworkProblem(tensor, targets("logistic"), strength=1.0)
    assert mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-2).success
    assert tensor.grad is None

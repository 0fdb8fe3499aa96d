"""Arrays of PyTorch and CuPy are taken to the host at every door; other libraries' arrays are NumPy's to read."""

import numpy as np
import pytest

import mopn
from mopn.data.values import to_host

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (20, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
WEIGHTS = rng.uniform(0.5, 2.0, 20)


class Remote:
    """An array that NumPy cannot read, in another memory, such as an accelerator's."""

    def __init__(self, values):
        self._values, self.shape, self.dtype = values, values.shape, values.dtype

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion is not allowed")


class Tensor(Remote):
    """A tensor of PyTorch that requires a gradient."""

    def detach(self):
        return Detached(self._values)


class Detached(Remote):
    def cpu(self):
        return OnHost(self._values)


class OnHost(Remote):
    def numpy(self):
        return self._values


class OfCupy(Remote):
    def get(self):
        return self._values


Tensor.__module__, OfCupy.__module__ = "torch", "cupy"
every_library = pytest.mark.parametrize("move", [Tensor, OfCupy], ids=["torch", "cupy"])


@every_library
def test_problems_and_certificates_take_them(move):
    options = {"norm": "l1", "strength": 1.0}
    here = mopn.NetworkProblem(X, Y, sample_weight=WEIGHTS, offset=np.ones((20, 2)), **options)
    there = mopn.NetworkProblem(move(X), move(Y), sample_weight=move(WEIGHTS), offset=move(np.ones((20, 2))), **options)
    blocks = mopn.NetworkProblem(mopn.RowBlocks([move(X[:9]), lambda: move(X[9:])], move(Y)), **options)
    H, V = np.eye(3)[:1], np.array([[1.0, -1.0]])
    assert mopn.certify(there, move(H), move(V)).gap == mopn.certify(here, H, V).gap
    assert mopn.certify(blocks, H, V).fun == pytest.approx(mopn.certify(mopn.NetworkProblem(X, Y, **options), H, V).fun)
    of = mopn.certify_network(move(H), move(V), (None, move(np.zeros(2))), X=move(X), y=move(Y))
    assert of.gap == mopn.certify_network(H, V, (None, np.zeros(2)), X=X, y=Y).gap


@every_library
@pytest.mark.filterwarnings("ignore:max_iter iterations")
@pytest.mark.parametrize("name", ["MultiOutputPNClassifier", "FactorizationMachineClassifier", "TableClassifier"])
def test_estimators_take_them(move, name):
    estimators = pytest.importorskip("mopn.estimators")
    machine = name == "FactorizationMachineClassifier"
    options = {"max_iter": 3, "random_state": 0} if machine else {"max_units": 2, "strength": 1.0}
    here, there = (getattr(estimators, name)(**options) for _ in range(2))
    here.fit(X, Y, sample_weight=WEIGHTS)
    there.fit(move(X), move(Y), sample_weight=move(WEIGHTS))
    np.testing.assert_array_equal(there.decision_function(move(X)), here.decision_function(X))
    assert there.score(move(X), move(Y), move(WEIGHTS)) == here.score(X, Y, WEIGHTS)


def test_all_else_stays_as_it_is():
    for value in (None, 1.0, "logistic", X, [[1.0]]):
        assert to_host(value) is value

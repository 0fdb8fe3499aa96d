"""Sparse matrices whose arrays do not fit their shape: refused before compiled code follows their indices."""

from operator import itemgetter

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.data.designs import make_design
from mopn.data.validation import compressed

FAR = 10**6


def changed(form, **arrays):
    """A matrix (6, 4) of a format, some of whose arrays are replaced: functions of the former ones."""
    X = sparse.random_array((6, 4), density=0.6, format="csr", random_state=np.random.default_rng(0)).asformat(form)
    for name, change in arrays.items():
        setattr(X, name, change(np.array(getattr(X, name))))
    return X


def with_first(value):
    return lambda array: np.append(array.dtype.type(value), array[1:])


def with_last(value):
    return lambda array: np.append(array[:-1], array.dtype.type(value))


shorter = itemgetter(slice(-1))
CHANGES = {
    "index too large": {"indices": with_first(FAR)},
    "index negative": {"indices": with_last(-1)},
    "indptr decreases": {"indptr": lambda indptr: np.concatenate([indptr[:2], indptr[1:2] - 1, indptr[3:]])},
    "indptr starts elsewhere": {"indptr": with_first(-5)},
    "indptr ends too far": {"indptr": with_last(FAR)},
    "indptr too short": {"indptr": shorter},
    "too few data": {"data": shorter},
    "too few indices": {"indices": shorter},
    "indices no integers": {"indices": lambda indices: indices.astype(float)},
    "data no numbers": {"data": lambda data: data.astype(object)},
}
MALFORMED = {f"{form} {what}": (form, CHANGES[what]) for form in ("csr", "csc", "bsr") for what in CHANGES} | {
    "coo row too large": ("coo", {"row": with_first(FAR)}),
    "coo column negative": ("coo", {"col": with_last(-FAR)}),
    "coo too few data": ("coo", {"data": shorter}),
    "dia too few offsets": ("dia", {"offsets": shorter}),
    # A row of one entry, whose lists keep equal lengths.
    "lil column too large": ("lil", {"rows": [FAR]}),
    "lil too many values": ("lil", {"data": [1.0] * FAR}),
}


@pytest.mark.parametrize(("form", "arrays"), MALFORMED.values(), ids=MALFORMED)
def test_what_does_not_fit_is_refused(form, arrays):
    if form == "lil":
        X = sparse.lil_array(np.eye(6, 4))
        for name, row in arrays.items():
            getattr(X, name)[0] = row
    else:
        X = changed(form, **arrays)
    with pytest.raises(ValueError, match=r"X is not a valid .* matrix of shape \(6, 4\): "):
        make_design(X)


def test_the_fault_is_told():
    with pytest.raises(ValueError, match=rf"y is not a valid CSR matrix .*: indices holds {FAR}"):
        compressed(changed("csr", indices=with_first(FAR)), "y")
    with pytest.raises(ValueError, match="indices holds -1"):
        compressed(changed("csc", indices=with_first(-1)))


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_what_fits_is_kept(form):
    X = changed("csr").asformat(form)
    found = compressed(X)
    np.testing.assert_array_equal(found.toarray(), changed("csr").toarray())
    assert (found is X) == (form in ("csr", "csc"))
    assert compressed(sparse.csr_array((3, 2)).asformat(form)).nnz == 0


def test_spare_room_for_entries_is_no_fault():
    X = changed("csr")
    roomy = X.copy()
    roomy.indices, roomy.data = np.append(X.indices, FAR), np.append(X.data, np.nan)
    assert compressed(roomy) is roomy


y = np.arange(6.0)
absent = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("weights", [None, absent])
@pytest.mark.parametrize(
    "make",
    [
        lambda X, weights: mopn.NetworkProblem(X, y, loss="squared", strength=1.0, sample_weight=weights),
        lambda X, weights: mopn.FactorizationProblem(X, y, n_components=2, sample_weight=weights),
        lambda X, weights: mopn.LiftedProblem(X, y, rank=2, sample_weight=weights),
        lambda X, weights: mopn.LiftedProblem((np.ones((6, 2)), X), y, rank=2, sample_weight=weights),
    ],
)
def test_problems_refuse_it(make, weights):
    with pytest.raises(ValueError, match="X is not a valid CSR matrix"):
        make(changed("csr", indices=with_first(FAR)), weights)


def test_models_refuse_it():
    network = mopn.Model(np.ones((1, 4)), np.ones((1, 1)), augment=False)
    factorization = mopn.FactorizationModel(factors=np.ones((1, 1, 4)), degree=2, lams=np.ones(1), w=np.zeros(4))
    for model in (network, factorization):
        with pytest.raises(ValueError, match="X is not a valid CSR matrix"):
            model.predict(changed("csr", indices=with_first(FAR)))

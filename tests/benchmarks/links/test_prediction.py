"""The studies of higher-order factorization machines, on small synthetic graphs: no data folder is needed."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

import mopn
from benchmarks.links import prediction
from benchmarks.links.data import Graph, hold_out, split
from benchmarks.links.models import MODELS, make_problem, pair_scores, tables
from benchmarks.links.prediction import Cell, Plan, area_under_curve

KINDS = [model for model in MODELS if model.degree == 3 or model.kind in ("all-subsets", "bilinear")]
TWO_SIDES, ONE_SIDE = 0, 1


def make_graph(sides, n=(30, 25), seed=0):
    """Nodes whose links a bilinear model explains."""
    rng = np.random.default_rng(seed)
    A = sparse.csr_array(rng.standard_normal((n[0], 4)) * (rng.random((n[0], 4)) < 0.7))
    B = A if sides == ONE_SIDE else sparse.csr_array(rng.standard_normal((n[1], 3)))
    weights = rng.standard_normal((A.shape[1], B.shape[1]))
    strong = (A @ weights @ B.toarray().T) > 0.8
    return Graph(A, B, np.argwhere(np.triu(strong, 1) if sides == ONE_SIDE else strong))


@pytest.fixture(params=[TWO_SIDES, ONE_SIDE], ids=["two-sides", "one-side"])
def graph(request):
    return make_graph(request.param)


def all_pairs(graph):
    return np.argwhere(np.triu(np.ones(graph.shape), 1) if graph.symmetric else np.ones(graph.shape))


# -- splits ------------------------------------------------------------------------------------------------------------


def test_a_split_leaks_nothing(graph):
    parts = split(graph, 3)
    linked = set(map(tuple, graph.links))
    learnt, test = [tuple(pair) for pair in parts.pairs], set(map(tuple, parts.test_links))
    assert len(set(learnt)) == len(learnt) == len(parts.y)
    assert [pair in linked for pair in learnt] == list(parts.y == 1.0)
    assert not test & set(learnt)
    assert test | {pair for pair, y in zip(learnt, parts.y, strict=True) if y} == linked
    assert int(parts.y.sum()) == len(linked) // 2 == len(learnt) // 2
    if graph.symmetric:
        assert np.all(parts.pairs[:, 0] < parts.pairs[:, 1])


# -- scores of all pairs -----------------------------------------------------------------------------------------------


def fitted(model, graph, epochs=3, beta=1e-3):
    parts = split(graph, 0)
    problem = make_problem(model, graph, parts.pairs, parts.y, beta, 5, 0)
    solver = mopn.solvers.CoordinateDescent() if "blocks" in problem.oracles else mopn.solvers.LBFGS()
    return mopn.minimize(problem, solver, max_iter=epochs)


@pytest.mark.parametrize("model", KINDS, ids=lambda model: model.name)
def test_tables_of_nodes_give_the_outputs_of_all_pairs(graph, model):
    result, pairs = fitted(model, graph), all_pairs(graph)
    outputs = make_problem(model, graph, pairs, np.zeros(len(pairs)), 1.0, 5, 0).outputs(result.x)
    left, right = tables(model, result, graph)
    scale = np.abs(outputs).max()
    np.testing.assert_allclose(pair_scores(left, right, pairs), outputs, atol=1e-12 * scale)
    np.testing.assert_allclose((left @ right.T)[pairs[:, 0], pairs[:, 1]], outputs, atol=1e-12 * scale)


# -- the measure -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 60, 10_000])
@pytest.mark.parametrize("ties", [False, True])
def test_area_in_blocks_equals_sklearns(graph, block, ties):
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((n, 3)) for n in graph.shape)
    if ties:
        left, right = np.round(left), np.round(right)
    parts = split(graph, 0)
    kept = graph.mask(all_pairs(graph)) & ~graph.mask(parts.pairs)
    expected = roc_auc_score(graph.mask(parts.test_links)[kept], (left @ right.T)[kept])
    found = area_under_curve(left, right, graph, parts.pairs, parts.test_links, block)
    assert found == pytest.approx(expected, abs=1e-12)


# -- cells and the program ---------------------------------------------------------------------------------------------


def test_validation_never_sees_the_pairs_held_out(monkeypatch):
    graph, seen = make_graph(TWO_SIDES), []
    original = prediction.make_problem

    def spy(model, graph, pairs, *args):
        seen.append(pairs)
        return original(model, graph, pairs, *args)

    monkeypatch.setattr(prediction, "make_problem", spy)
    prediction.run_cell(Cell("made", 0, "bilinear", Plan(2, "raw", 0.5, (1e-2, 1e-1), 2, 2)), graph)
    parts = split(graph, 0)
    _, held = hold_out(parts.y, 0)
    held = {tuple(pair) for pair in parts.pairs[held]}
    assert [len(pairs) for pairs in seen] == [len(parts.y) - len(held)] * 2 + [len(parts.y)]
    assert all(not held & set(map(tuple, pairs)) for pairs in seen[:-1])

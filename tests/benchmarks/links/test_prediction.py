"""The studies of higher-order factorization machines, on small synthetic graphs: no data folder is needed."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

import mopn
from benchmarks.links import prediction
from benchmarks.links.data import SCALES, Graph, hold_out, load, scaled, split
from benchmarks.links.models import MODELS, make_problem, pair_scores, tables
from benchmarks.links.prediction import PLANS, Cell, Plan, area_under_curve
from benchmarks.links.report import report

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


# -- readers -----------------------------------------------------------------------------------------------------------


def test_nips_adds_up_the_words_of_an_authors_papers(tmp_path, write):
    corpus = "2 0:3 2:1\n1 1:5\n2 0:1 1:2\n\n"
    write(tmp_path / "nips12", {"nips.authors": "0 1\n2\n1 2 3\n", "nips.corpus.gz": corpus})
    graph = load("nips", tmp_path)
    np.testing.assert_array_equal(graph.A.toarray(), [[3, 0, 1], [4, 2, 1], [1, 7, 0], [1, 2, 0]])
    assert graph.symmetric
    assert sorted(map(tuple, graph.links)) == [(0, 1), (1, 2), (1, 3), (2, 3)]


def test_movielens_has_one_hot_fields_and_links_of_five_stars(tmp_path, write_movielens):
    five = write_movielens(tmp_path)
    graph = load("movielens", tmp_path)
    assert {tuple(pair) for pair in graph.links} == five
    users, films = graph.A.toarray(), graph.B.toarray()
    # Twelve users from 7 to 62: seven age groups, two genders, three jobs, five first digits.
    assert users.shape == (12, 7 + 2 + 3 + 5)
    np.testing.assert_array_equal(users.sum(axis=1), 4)
    assert films.shape == (15, 29)
    np.testing.assert_array_equal(films[:, :10].sum(axis=1), [1] * 14 + [0])
    assert films[0, 0] == films[13, 9] == 1


def test_gene_disease_turns_genes_by_diseases_round(tmp_path):
    folder = tmp_path / "gene-disease"
    folder.mkdir()
    links = np.zeros((3, 2))
    links[2, 0] = links[0, 1] = 1
    for name, table in (("gd", links), ("gg", np.eye(3)[[1, 0, 2]]), ("dd", np.zeros((2, 2)))):
        sparse.save_npz(folder / f"{name}.npz", sparse.csr_matrix(table))
    graph = load("gene-disease", tmp_path)
    assert sorted(map(tuple, graph.links)) == [(0, 2), (1, 0)]
    np.testing.assert_array_equal(graph.A.toarray(), np.eye(2))
    np.testing.assert_array_equal(graph.B.toarray(), [[1, 1, 0], [1, 1, 0], [0, 0, 1]])


def test_ion_channels_reads_tables_with_names(tmp_path, write):
    texts = {
        "ic_admat_dgc.txt": "\tD1\tD2\nh1\t0\t1\nh2\t0\t0\nh3\t1\t1\n",
        "ic_simmat_dg.txt": "\th1\th2\th3\nh1\t1\t0.5\t0\nh2\t0.5\t1\t0\nh3\t0\t0\t1\n",
        "ic_simmat_dc.txt": "\tD1\tD2\nD1\t1\t0.25\nD2\t0.25\t1\n",
    }
    write(tmp_path / "dti-yamanishi2008", texts)
    graph = load("ion-channels", tmp_path)
    assert graph.shape == (3, 2)
    assert sorted(map(tuple, graph.links)) == [(0, 1), (2, 0), (2, 1)]
    np.testing.assert_array_equal(graph.B.toarray(), [[1, 0.25], [0.25, 1]])


@pytest.mark.parametrize("scale", SCALES)
def test_scales_keep_the_pattern_and_the_links(graph, scale):
    A = abs(graph.A)
    graph = Graph(A, A if graph.symmetric else abs(graph.B), graph.links)
    found = scaled(graph, scale)
    assert (found.symmetric, found.links is graph.links) == (graph.symmetric, True)
    np.testing.assert_array_equal(found.A.toarray() > 0, A.toarray() > 0)
    if scale.endswith("unit"):
        lengths = np.linalg.norm(found.A.toarray(), axis=1)
        np.testing.assert_allclose(lengths[A.toarray().any(axis=1)], 1.0)


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


def test_pairs_held_out_are_in_proportion_and_not_fitted():
    y = np.repeat([1.0, 0.0], 40)
    kept, held = hold_out(y, 0)
    assert sorted([*kept, *held]) == list(range(80))
    assert y[held].sum() == 10
    assert len(held) == 20


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


def test_strength_is_the_papers_times_the_number_of_pairs():
    graph = make_graph(TWO_SIDES)
    pairs, y = graph.links[:10], np.ones(10)
    for model in KINDS:
        assert make_problem(model, graph, pairs, y, 0.25, 2, 0).beta == 2.5
    hofm = make_problem(MODELS[0], graph, pairs, y, 0.25, 2, 0)
    x = hofm.start()
    parts = hofm.unpack(x)
    averaged = 0.5 * np.mean((hofm.outputs(x) - y) ** 2) + 0.125 * sum(np.sum(parts[name] ** 2) for name in ("P", "w"))
    assert hofm.measure(x).fun == pytest.approx(10 * averaged)


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


def test_a_bilinear_model_finds_planted_links():
    graph = make_graph(TWO_SIDES, n=(60, 50))
    bilinear = Plan(5, "raw", 0.5, (1e-4, 1e-2, 10.0), 30, 30)
    row = prediction.run_cell(Cell("made", 0, "bilinear", bilinear), graph)
    assert float(row["test"]) > 0.9
    curve = [float(auc) for auc in row["curve"].split()]
    assert float(row["validation"]) == max(curve)
    assert float(row["beta"]) == bilinear.betas[int(np.argmax(curve))]
    # So large a strength leaves nothing of the model.
    assert row["beta"] != "10"


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


def test_the_report_averages_splits_and_keeps_plans_apart():
    rows = []
    for index, test in enumerate((0.75, 0.76)):
        cell = Cell("movielens", index, "hofm-2", PLANS["movielens"])
        rows.append({name: str(value) for name, value in cell.key.items()} | {"test": str(test)})
    rows.append(rows[0] | {"k": "7", "test": "0.5"})
    text = report(rows)
    assert "0.778   0.755" in text
    assert "(k 7)" in text
    assert "largest difference between splits of a cell: 0.010" in text

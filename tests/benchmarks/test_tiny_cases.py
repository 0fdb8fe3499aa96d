"""Programs of the studies on tiny cases: each runs, prints its tables, draws, and has nothing to do when run again."""

import itertools
import re
import shlex
import shutil
import sys

import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import ExtraTreeRegressor

from benchmarks.alternatives import __main__ as alternatives_program
from benchmarks.alternatives import choice, lines
from benchmarks.alternatives import methods as alternatives_methods
from benchmarks.alternatives.report import REFERENCE
from benchmarks.blackbox import __main__ as blackbox_program
from benchmarks.blackbox import refits as blackbox_refits
from benchmarks.certificates import __main__ as certificates_program
from benchmarks.certificates import oracles, profiles, race, sphere_race
from benchmarks.direct_lifted import __main__ as direct_lifted_program
from benchmarks.direct_lifted import budget, fitted_lambda, wide
from benchmarks.links import __main__ as links_program
from benchmarks.links import higher_order
from benchmarks.multiclass import __main__ as multiclass_program
from benchmarks.multiclass import plan as multiclass_plan
from benchmarks.multiclass import refits as multiclass_refits
from benchmarks.recommender import __main__ as recommender_program
from benchmarks.recommender import plan as recommender_plan
from benchmarks.recommender import serving
from benchmarks.recommender.plan import Plan
from benchmarks.robustness import __main__ as robustness_program
from benchmarks.speed import __main__ as speed_program
from benchmarks.speed import explanation, export, scaling
from benchmarks.tables import __main__ as tables_program
from benchmarks.tables import methods as tables_methods
from benchmarks.tables import seeds
from benchmarks.tables.methods import Method

# The program, its command line, or a set-up that returns it, texts that are printed, and files that are written.
PROGRAMS = {
    "blackbox": (blackbox_program.main, "--quick", ["random"], ["searches.png"]),
    # The folder has no letter.
    "certificates": (
        profiles.main,
        "--data {data} --sets iris vowel letter --norms l1 --ratios 0.5 --rows 60 --max-time 0.1",
        ["2 problems of 2 sets", "left out:"],
        ["profiles.png"],
    ),
    "race of programs": (
        race.main,
        "--solvers mopn --loss logistic --n 40 --d 2 --m 1 2 --max-time 30",
        ["logistic     40    2   1  mopn"],
        ["race.png"],
    ),
    "race on the sphere": (
        sphere_race.main,
        "--stacks random --d 4 --m 2 --seconds 20 40 --p 2 --solvers mopn enumerate low-rank",
        ["\n2 random    4   2     20 "],
        [],
    ),
    "links": (
        links_program.main,
        "--data {data} --quick --sets movielens --models bilinear hofm-2",
        ["2 rows", "0.718"],
        [],
    ),
    "tables, tuned": (
        tables_program.main,
        "--data nowhere --tuned --quick --budget 0.5 --methods linear linear-tuned",
        ["linear, tuned"],
        [],
    ),
}


def program(main, *, texts=(), files=()):
    """Register the set-up of a program."""

    def register(set_up):
        PROGRAMS[set_up.__name__] = main, set_up, texts, files
        return set_up

    return register


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_and_has_nothing_to_do_when_run_again(name, abalone, movielens, tmp_path, monkeypatch, capsys):
    main, line, texts, files = PROGRAMS[name]
    line = line(monkeypatch) if callable(line) else line
    arguments = [*line.format(data=movielens).split(), "--out", str(tmp_path / "out")]
    written = []
    for _ in range(2):
        assert main(arguments) == 0
        printed = capsys.readouterr().out
        assert all(text in printed for text in texts), printed
        written.append({path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.csv")})
    assert written[0] == written[1]
    assert all((tmp_path / "out" / file).stat().st_size > 10_000 for file in files)


# -- set-ups -----------------------------------------------------------------------------------------------------------


@program(
    alternatives_program.main, texts=["breast_cancer: 569 rows, 30 features, 2 classes", "4 rows"], files=["pareto.png"]
)
def alternatives(patch):
    def linear(n, d):
        return {f"C {C}": make_pipeline(StandardScaler(), LogisticRegression(C=C)) for C in (1, 0.1)}

    methods = {"linear": linear, REFERENCE: lambda n, d: {"C 1e-9": LogisticRegression(C=1e-9)}}
    for name, grid in methods.items():
        patch.setitem(alternatives_methods.METHODS, name, alternatives_methods.Method(name, grid))
    return f"--data nowhere --methods {' '.join(methods)} --sets breast_cancer --splits 2"


@program(
    direct_lifted_program.main,
    texts=["figure4.csv: 9 rows", "proven minimum"],
    files=["figure1.png", "figure2.png", "figure4.png"],
)
def direct_lifted(patch):
    Task = fitted_lambda.Task
    kinds = itertools.product(fitted_lambda._KERNELS, fitted_lambda._LAMS)
    some = [Task("standardised", *kind, 4, 0) for kind in kinds]
    pairs = [("anova", "lifted CD"), ("anova", "direct CD"), ("homogeneous", "direct L-BFGS")]
    methods = [("kernel-ridge", 0), *((name, k) for name in budget._STYLES for k in (3, 6))]
    patch.setattr(fitted_lambda, "DATA", {"standardised": "standardised"})
    patch.setattr(fitted_lambda, "tasks", lambda quick: some)
    patch.setattr(wide, "tasks", lambda quick: [wide.Task(*pair, 60, 200, 10, 0.05) for pair in pairs])
    patch.setattr(budget, "tasks", lambda quick: [budget.Task("abalone", *pair, 0, 0, 5) for pair in methods])
    return "--data {data}"


@program(higher_order.main, files=["higher_order.png"])
def links_by_degree(patch):
    patch.setattr(higher_order, "EPOCH_DEGREES", (2, 3))
    patch.setattr(higher_order, "DEGREES", (2,))
    patch.setattr(higher_order, "TIMES", {"movielens": 0.05})
    return "--data {data} --sets movielens"


@program(multiclass_program.main, texts=["Table 2"], files=["figure3.png"])
def multiclass(patch):
    """Two baselines and networks of one norm, of at most six units."""
    cells = [cell for cell in multiclass_plan.CELLS if cell.method in ("linear", "svm") or cell.norm == "l1/l2"]
    patch.setattr(multiclass_plan, "CELLS", cells)
    patch.setattr(multiclass_plan, "QUICK_UNITS", 6)
    patch.setattr(multiclass_plan, "QUICK_SPLITS", 1)
    return "--data {data} --sets vowel --quick --jobs 2"


@program(
    recommender_program.main,
    texts=["6 rows", "multi-output FM, l1/l2", "FM 0.71"],
    files=["ranking.png", "kernels.png"],
)
def recommender(patch):
    small = {
        ("ranking", "ml-100k"): Plan(("A2-linear", "ordinal-l1/l2"), (1, 2)),
        ("kernels", "ml-100k"): Plan(("H2-augment",), (1, 2)),
    }
    patch.setattr(recommender_plan, "PLANS", small)
    return "--data {data}"


@program(
    tables_program.main,
    texts=["EBM is left out: the package nobody_has_it is not installed", "| breast_cancer | 569 | 30 | 2 |"],
    files=["ranks.png", "costs.png"],
)
def tables(patch):
    """Two methods are cheap, and a third one's package is missing."""
    for name, *package in (("mopn",), ("linear",), ("additive", "nobody_has_it")):
        title = "EBM" if package else name
        method = Method(title, DummyClassifier, DummyRegressor, *package)
        patch.setitem(tables_methods.METHODS, name, method)
    return "--data nowhere --methods mopn linear additive --quick"


@program(seeds.main, texts=["| diabetes | lines | 0.00% | 0.00% |"])
def tables_seeds(patch):
    tree, lines = (lambda: ExtraTreeRegressor(max_depth=3)), LinearRegression
    for name, regressor in {"tree": tree, "lines": lines}.items():
        patch.setitem(tables_methods.METHODS, name, Method(name, DummyClassifier, regressor))
    patch.setattr(seeds, "CASES", {"tree": seeds.Case("tree"), "lines": seeds.Case("lines", seed=None)})
    patch.setattr(seeds, "FITS", 2)
    return "--data nowhere --sets diabetes"


# -- programs that print and write nothing -----------------------------------------------------------------------------

# The program, its command line, and expressions with their numbers in the output.
PRINTERS = {
    "alternatives, choice": (choice.main, "--sets breast_cancer --splits 1 --rows 60", {"^breast_cancer ": 1}),
    # The program itself compares the classes of all test rows.
    "alternatives, lines": (lines.main, "--sets digits breast_cancer", {"^(digits|breast_cancer) ": 2}),
    "blackbox, refits": (blackbox_refits.main, "--quick", {}),
    "certificates": (
        certificates_program.main,
        "--data {data} --out {out} --sets vowel --max-time 60 --fractions 0.5 --tol 1e-3",
        {r"^vowel +l1(/l2|/linf)? .*CONVERGED$": 3},
    ),
    "certificates, oracles": (
        oracles.main,
        "--data {data} --out {out} --sets vowel --max-time 5 --rounds 3 --norms l1/linf --fraction 0.3",
        {r"^(l1|extremes|Gram|mopn)( \+ refine)? .*[0-9.]+ \([0-9.]+\)$": 5},
    ),
    "recommender, serving": (
        serving.main,
        "--items 50 --units 2 --repeats 1",
        {
            r"^(one output|expected of 5 levels)( +[0-9.]+ ms){3}$": 2,
            r"^FactorizationMachineRegressor of degree 3 +[0-9.]+ ms$": 1,
        },
    ),
    "robustness": (
        robustness_program.main,
        "--splits 1 --models 'logistic regression' 'RBF SVM, one against the rest'",
        {"logistic regression": 3, "RBF SVM, one against the rest": 1},
    ),
    "speed": (
        speed_program.main,
        "--data {data} --sets vowel --cap 2 --splits 2 --parts refits 'working sets' fits",
        {r"^vowel +l1(/l2|/linf)? ": 9, "^vowel +(squared|logistic) ": 6, "^vowel +mopn +[6-9]": 1},
    ),
    "speed, explanation": (
        explanation.main,
        "--repeats 1 --rows 20",
        {r"^(digits|letter|usps) .* [0-9.]+$": 12},
    ),
}


@pytest.mark.parametrize("name", PRINTERS)
def test_a_program_prints(name, folder, tmp_path, capsys):
    main, line, expressions = PRINTERS[name]
    assert main(shlex.split(line.format(data=folder, out=tmp_path / "out"))) == 0
    printed = capsys.readouterr().out
    counts = {expression: len(re.findall(expression, printed, re.MULTILINE)) for expression in expressions}
    assert counts == expressions, printed


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_agreement_of_exports_is_measured(folder, capsys):
    pytest.importorskip("onnxruntime")
    export.main(["--data", str(folder), "--parts", "agreement", "--sets", "vowel"])
    cells = capsys.readouterr().out.splitlines()[-1].split()
    assert cells[:2] == ["vowel", "600"]
    double, single = (max(map(float, part)) for part in (cells[2:4], cells[4:6]))
    assert double < 1e-12 < single < 1e-4


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_scaling_is_measured_in_processes(capsys):
    scaling.main(["--quick"])
    assert capsys.readouterr().out.count("exponents: time") == 2


def test_refits_of_both_layers_are_better_with_few_units(folder, tmp_path, capsys):
    multiclass_refits.main(["--data", str(folder), "--out", str(tmp_path), "--sets", "vowel", "--max-units", "5"])
    row = capsys.readouterr().out.split("time s\n")[-1].splitlines()[3].split()
    assert (row[1], row[6]) == ("5", "5")
    assert float(row[7]) < float(row[2])
    assert (tmp_path / "refits.png").stat().st_size > 10_000

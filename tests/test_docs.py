"""The README's scripts run as they stand, and so do the examples in docstrings."""

import ast
import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import runpy
import shutil
import socket
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot
import numpy as np
import pytest
import scipy.optimize
import stand_ins

import mopn

mpl.use("Agg")

ROOT = Path(__file__).parents[1]


def blocks_of(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)


def run(block, label, **names):
    """Run a script as it stands, or with the names of those before it; return its names."""
    # Dataclasses look their module up by this name.
    namespace = names | {"__name__": "__main__"}
    exec(compile(block, label, "exec"), namespace)
    return namespace


EXTENDING = blocks_of("docs/extending.md")
DEPLOY = blocks_of("docs/deploy.md")
TORCH = blocks_of("docs/torch.md")
TEACHING = blocks_of("docs/teaching.md")
CHECK = blocks_of("docs/check_certificate.md")
CHECK_PROGRAM = (ROOT / "examples" / "check_certificate.py").read_text("utf-8")
SERVICE = blocks_of("docs/csv_to_service.md")
GUIDE = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
# The scripts of some pages go on from each other, and the second of extending.md is compared; they have own tests.
IN_TURN = "check_certificate.md", "csv_to_service.md", "teaching.md", "torch.md"
SCRIPTS = {
    f"{page} {number}": script
    for page in (
        "README.md",
        *(f"docs/{name}" for name in GUIDE if name not in IN_TURN),
    )
    for number, script in enumerate(blocks_of(page))
    if page != "docs/extending.md" or number != 1
}
LIBRARIES = re.compile(
    r"^ *(?:import|from) (dask|distributed|onnxruntime|pyspark|ray|sklearn\.callback|torch)\b", re.MULTILINE
)
MODULES = [
    name for _, name, _ in pkgutil.walk_packages(mopn.__path__, "mopn.") if not name.startswith("mopn.solvers")
] + [name for _, name, _ in pkgutil.walk_packages(mopn.solvers.__path__, "mopn.solvers.")]


# The output of a script, where the document shows it right after the script.
SHOWN = {
    script: output
    for name in ("README.md", *(f"docs/{page}" for page in GUIDE))
    for script, output in re.findall(
        r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", (ROOT / name).read_text("utf-8"), flags=re.DOTALL
    )
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def check_printed(script, out):
    """Numbers are right to their last digit or 5 %, and counts of steps and units to 10 %: processors differ.

    They are of NumPy 2: with the libraries of NumPy 1 some fits take another path.
    """
    assert out
    shown = SHOWN.get(script, out)
    assert _NUMBER.sub("#", out).split() == _NUMBER.sub("#", shown).split()
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return
    for printed, told in zip(_NUMBER.findall(out), _NUMBER.findall(shown), strict=True):
        digit = 1.01 * 10.0 ** Decimal(told).as_tuple().exponent
        assert float(printed) == pytest.approx(float(told), rel=0.05 if digit < 1.0 else 0.1, abs=digit), out


@pytest.fixture(autouse=True)
def _closed_figures():
    """Scripts leave theirs open."""
    yield
    mpl.pyplot.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_of_the_documents(script, tmp_path, monkeypatch, capsys):
    for name in LIBRARIES.findall(script):
        # The folder of tests that is called dask would be found in its place.
        pytest.importorskip("dask.array" if name == "dask" else name)
        if name == "torch":
            pytest.importorskip("array_api_compat")
    monkeypatch.chdir(tmp_path)
    if "penguins.csv" in script:
        (tmp_path / "examples").mkdir()
        shutil.copy(ROOT / "examples" / "penguins.csv", tmp_path / "examples")
    run(script, "a script")
    check_printed(script, capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("name", stand_ins.MODULES)
def test_a_recipe_with_a_stand_in(name, tmp_path, monkeypatch, capsys):
    """For ray and pyspark, which are large; where they are installed, the next test runs the recipes with them."""
    for module, fake in stand_ins.MODULES[name].items():
        monkeypatch.setitem(sys.modules, module, fake)
    recipe(name.removeprefix("py"), tmp_path, monkeypatch, capsys)


def recipe(name, tmp_path, monkeypatch, capsys):
    """Run an example of blocks, which predicts that two features of one sign are of a class, and of two are not."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / f"{name}_blocks.py"), run_name="__main__")
    assert capsys.readouterr().out.split() in (["[1", "0]"], ["[", "True", "False]"])


@pytest.mark.slow
@pytest.mark.parametrize("name", stand_ins.MODULES)
def test_a_recipe(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip(name)
    recipe(name.removeprefix("py"), tmp_path, monkeypatch, capsys)


def run_in_turn(blocks, label, capsys):
    """Run scripts that go on from each other; return their names."""
    names = {}
    for number, block in enumerate(blocks):
        names = run(block, f"{label} {number}", **names)
        check_printed(block, capsys.readouterr().out)
    return names


# What mopn-serving is installed without.
NOT_SERVED = "numba", "llvmlite", "sklearn", "threadpoolctl", "pandas", "narwhals", "matplotlib"


@pytest.mark.slow
def test_the_page_from_a_file_to_a_service(tmp_path):
    """Each program in a process of its own; the server has NumPy and SciPy alone, and answers over loopback."""
    train, explain, serve, ask, watch = SERVICE
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}

    def printed(program):
        (tmp_path / "program.py").write_text(program.replace("8000", port), "utf-8")
        command = [sys.executable, "program.py"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    printed((ROOT / "examples" / "customers.py").read_text("utf-8"))
    for program in (train, explain):
        check_printed(program, printed(program))
    blocked = f"import sys\nsys.modules.update(dict.fromkeys({NOT_SERVED!r}))\n"
    server = subprocess.Popen(
        [sys.executable, "-c", blocked + serve.replace("8000", port)],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(port, server)
        check_printed(ask, printed(ask))
    finally:
        server.kill()
        log = server.communicate()[1]
    answers = re.findall(r'"POST / HTTP/1.1" (\d+)', log)
    assert answers == ["200"] * 6 + ["400"], log
    check_printed(watch, printed(watch))
    assert {"customers.png", "drift.png"} <= {path.name for path in tmp_path.iterdir()}


def wait_for(port, server):
    """Wait until a server accepts connections, or has ended."""
    while server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), timeout=1.0):
            return
        time.sleep(0.05)
    raise AssertionError(server.communicate()[1])


def test_the_page_for_teaching(tmp_path, monkeypatch, capsys):
    """The gap of every round is at least the distance to the minimum, which mopn has found and proven."""
    monkeypatch.chdir(tmp_path)
    names = run_in_turn(TEACHING, "teaching", capsys)
    distances = names["objectives"] - names["found"].fun
    assert (distances <= names["gaps"]).all()
    assert names["found"].gap < 0.01 * distances[-1]


@pytest.mark.slow
def test_a_certificate_is_proven_again_without_mopn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    gap = run(CHECK[0], "fit")["model"].relative_gap_
    check_printed(CHECK[0], capsys.readouterr().out)
    found = run(CHECK_PROGRAM, "check")
    assert not re.search(r"\b(import|from) mopn\b", CHECK_PROGRAM)
    assert found["gap"] == pytest.approx(gap, rel=0.01)
    assert capsys.readouterr().out == "gap below 0.1%: True\n"


@pytest.mark.slow
def test_the_page_on_torch(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = run_in_turn(TORCH, "torch", capsys)
    assert names["found"].relative_gap <= 0.01


@pytest.mark.slow
def test_the_figure_of_networks_of_torch(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "torch_gaps.py"), run_name="__main__")
    assert Path("torch.png").stat().st_size > 10_000


@pytest.mark.slow
def test_what_users_rated_lowers_the_error(capsys):
    runpy.run_path(str(ROOT / "examples" / "relation_blocks.py"), run_name="__main__")
    plain, blocks = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert blocks < plain


@pytest.mark.slow
@pytest.mark.parametrize(("program", "figure"), [("ball", "ball"), ("drawn_digit", "live")])
def test_a_program_that_draws_a_figure_of_a_page(program, figure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / f"{program}.py"), run_name="__main__")
    assert Path(f"{figure}.png").stat().st_size > 10_000


def test_the_scripts_are_found():
    assert len(SHOWN) >= 8
    assert len(SCRIPTS) >= 18
    assert [len(blocks) for blocks in (EXTENDING, DEPLOY, TORCH)] == [4, 5, 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "row"),
    [(0, np.zeros((1, 64))), (1, {"age": None, "city": "São Paulo"}), (2, np.zeros((1, 64)))],
    ids=["digits", "table", "integers"],
)
def test_a_program_in_c_on_the_page_on_serving(tmp_path, monkeypatch, number, row):
    """It returns the index of the label of a row, which a digit is itself."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    monkeypatch.chdir(tmp_path)
    model = run(DEPLOY[2 + number], "header")["model"]
    programs = re.findall(r"```c\n(.*?)```", (ROOT / "docs/deploy.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    Path("main.c").write_text(programs[number])
    subprocess.run([compiler, "-std=c99", "-Wall", "-Werror", "-o", "main", "main.c", "-lm"], check=True)
    assert model.classes_[subprocess.run(["./main"], check=False).returncode] == model.predict(row)[0]


@pytest.fixture(scope="module")
def away():
    """The solver of docs/extending.md, and the corrective step of the gallery: their names."""
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.MonkeyPatch.context() as patch:
        solver = run(EXTENDING[1], "away steps")
        check_printed(EXTENDING[1], out.getvalue())
        patch.setattr(mpl.pyplot, "show", lambda: None)
        step = runpy.run_path(str(ROOT / "examples/gallery/solvers/plot_own_step.py"), run_name="__main__")
    result = step["runs"]["five away steps"]
    return solver | {"MoreAwaySteps": step["MoreAwaySteps"], "result": result}


@pytest.mark.slow
def test_the_solver_of_ones_own_is_better_than_plain_steps_and_as_true(away):
    problem, results = away["problem"], away["results"] | {"corrected": away["result"]}
    exact = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full"), tol=1e-8)
    assert exact.success
    for result in results.values():
        assert result.gap_is_proven
        assert exact.fun - exact.gap <= result.fun
        assert result.fun - result.gap <= exact.fun
    assert results["away"].gap < 0.5 * results["plain"].gap
    assert results["pairwise"].gap < results["plain"].gap
    assert results["corrected"].gap < results["away"].gap
    assert len(results["away"].basis) < 0.5 * len(results["plain"].basis)


@pytest.mark.slow
def test_the_problems_of_ones_own_agree(away, monkeypatch):
    """The ball through the penalty's minimiser has the same minimiser and bounds, whatever solver found them."""
    monkeypatch.setattr(mpl.pyplot, "show", lambda: None)
    names = runpy.run_path(str(ROOT / "examples/gallery/solvers/plot_completion.py"), run_name="__main__")
    penalty, found, ball = names["penalty"], names["found"], names["problem"]
    assert found.gap_is_proven
    assert found.gap <= 1e-8 * found.fun
    least = found.fun - penalty.strength * ball.radius
    corrections = "none", away["MoreAwaySteps"]()
    solvers = [mopn.solvers.ConditionalGradient(refit=refit) for refit in corrections]
    solvers += [away["AwaySteps"](), away["AwaySteps"](pairwise=True)]
    for solver in solvers:
        result = mopn.minimize(ball, solver, tol=1e-2)
        assert result.success
        assert result.fun - result.gap - found.gap <= least <= result.fun + found.gap


OWN_PROBLEMS = {
    "tall": lambda rng: (rng.uniform(size=(40, 5)), rng.standard_normal(40)),
    "wide": lambda rng: (rng.uniform(size=(10, 30)), rng.uniform(-1, 3, 10)),
    "with a perfect fit": lambda rng: ((A := rng.uniform(size=(30, 8))), A @ rng.uniform(size=8)),
    "with 0 as its solution": lambda rng: (rng.uniform(size=(20, 5)), -rng.uniform(size=20)),
    "in large units": lambda rng: (1e8 * rng.uniform(size=(20, 5)), 1e-8 * rng.standard_normal(20)),
    "with equal columns": lambda rng: (np.tile(rng.uniform(size=(20, 2)), 3), rng.standard_normal(20)),
}


@pytest.fixture(scope="module")
def own_problem():
    """The class of docs/extending.md."""
    with contextlib.redirect_stdout(io.StringIO()):
        return run(EXTENDING[3], "own problem")["NonnegativeLeastSquares"]


@pytest.mark.parametrize("solver", [mopn.solvers.FISTA(), mopn.solvers.LBFGS()], ids=["FISTA", "LBFGS"])
@pytest.mark.parametrize("draw", OWN_PROBLEMS.values(), ids=OWN_PROBLEMS)
def test_the_problem_of_ones_own_is_solved_and_proven(own_problem, draw, solver):
    A, b = draw(np.random.default_rng(0))
    result = mopn.minimize(own_problem(A, b), solver, tol=1e-6, max_iter=3000)
    residuals = A @ scipy.optimize.nnls(A, b)[0] - b
    least = 0.5 * residuals @ residuals
    rounding = 1e-15 * np.sum(b * b)
    assert result.gap_is_proven
    assert result.x.min() >= 0.0
    assert result.fun - result.gap <= least + rounding
    assert result.fun <= least * (1.0 + 1e-6) + rounding


# Examples of the cluster start its processes, and others fit several estimators.
SLOW = ("mopn.dask", "mopn.data.row_blocks", "mopn.estimators.regressors", "mopn.estimators.tables")


EXAMPLES = [pytest.param(name, marks=[pytest.mark.slow] * name.startswith(SLOW)) for name in MODULES]


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_examples(name):
    if name.startswith("mopn.dask"):
        pytest.importorskip("distributed")
        # A client that another test closed may have left itself as the scheduler.
        pytest.importorskip("dask").config.set(scheduler=None)
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.slow
def test_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["digits.py", "--out", str(tmp_path), "--units", "4"])
    runpy.run_path(str(ROOT / "examples" / "digits.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "test accuracy" in out
    assert "certificate" in out
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert mopn.load(tmp_path / "digits.npz").n_features == 64


@pytest.mark.slow
def test_recommendations(tmp_path, capsys):
    """The example on raw files of 8 users and 12 films, of which one is new: as likely to be liked as its genre."""
    rng = np.random.default_rng(0)
    users = [f"{u}|{15 + 7 * u}|F|{('artist', 'doctor')[u % 2]}|12345" for u in range(1, 9)]
    genres = np.eye(19, dtype=int)[[5 if film <= 6 else 8 for film in range(1, 13)]]
    films = [f"{f}|Film {f}|01-Jan-1995||url|{'|'.join(map(str, flags))}" for f, flags in enumerate(genres, 1)]
    pairs = [(u, f) for u in range(1, 9) for f in range(1, 12) if rng.uniform() < 0.8]
    ratings = [f"{u}\t{f}\t{5 if (f <= 6) == (u % 2 == 0) else 1 + (u + f) % 3}\t0" for u, f in pairs]
    for name, lines in (("u.user", users), ("u.item", films), ("u.data", ratings)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", "latin-1")
    example = runpy.run_path(str(ROOT / "examples" / "movielens.py"))
    example["main"](["--data", str(tmp_path), "--user", "1", "--top", "3", "--units", "4", "--strength", "0.1"])
    out = capsys.readouterr().out
    spread = np.std([int(line.split("\t")[2]) for line in ratings])
    assert float(re.search(r"test RMSE ([0-9.]+)", out)[1]) < 0.75 * spread
    recommended = re.findall(r"^  [0-9.]+ +[0-9]+%  (Film [0-9]+)$", out, re.MULTILINE)
    rated = {f"Film {f}" for u, f in pairs if u == 1}
    assert "Film 12" in recommended
    assert not rated & set(recommended)
    assert re.search(r"^  [+-][0-9.]+  (user|film|age|occupation|genre)( x (film|age|genre))?$", out, re.MULTILINE)
    assert re.search(r"^  [+-][0-9.]+  (doctor|artist|Comedy|Drama|user|Film).* x ", out, re.MULTILINE)
    assert "cosine of their interactions with users" in out
    example["main"](["--data", str(tmp_path), "--user", "99", "--ratings", "1=5", "7=1", "--units", "4"])
    assert "for user 99, who has rated 2 films" in capsys.readouterr().out
    for wrong in (["--user", "99"], ["--user", "1", "--ratings", "1=5"], ["--user", "99", "--ratings", "1:5"]):
        with pytest.raises(SystemExit, match=r"user|film=rating|pairs"):
            example["main"](["--data", str(tmp_path), *wrong])


PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
DOCUMENTS = (*PAGES, *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
SOURCES = {path.name for folder in ("mopn", "solvers", "tests", "examples") for path in (ROOT / folder).rglob("*.py")}


def named_files(text):
    """Paths in code spans, names of Python files alone, and targets of links within the repository."""
    spans = re.findall(r"`((?:mopn|solvers|tests|docs|examples|benchmarks)/[\w./-]*|[\w./-]+\.py)`", text)
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)", text)
    return {*spans, *links}


def test_files_and_anchors_that_the_documents_name_exist():
    figures = any((ROOT / "docs").glob("*.png"))  # the source distribution leaves them out
    texts = {path: path.read_text(encoding="utf-8") for path in map(ROOT.joinpath, DOCUMENTS)}
    missing = {
        f"{document.name}: {name}"
        for document, text in texts.items()
        for name in named_files(text)
        if (figures or not name.endswith(".png"))
        and not any((folder / name).exists() for folder in (ROOT, document.parent))
        and name not in SOURCES
    }
    for document, text in texts.items():
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)]+)\)", text):
            target = document.parent / path if path else document
            if anchor not in anchors(target.read_text(encoding="utf-8")):
                missing.add(f"{document.name}: {path}#{anchor}")
    assert not missing


def test_pages_with_results_link_what_their_figures_mean():
    pages = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", *(f"docs/{page}" for page in GUIDE))}
    cited = {name for name, text in pages.items() if "RESULTS.md" in text}
    assert len(cited) >= 10
    assert {name for name in cited if "start.md#figures-in-these-pages" not in pages[name]} <= {"docs/mathematics.md"}


def anchors(text):
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_named_files_are_found():
    found = named_files(
        "`mopn/core/gap.py`, `steps.py` in `solvers/sphere/`, [x](docs/a.md#b), [y](https://z.py) `a.b`"
    )
    assert found == {"mopn/core/gap.py", "steps.py", "solvers/sphere/", "docs/a.md"}


def test_importing_mopn_does_not_import_numba():
    code = (
        "import sys, mopn; assert 'numba' not in sys.modules; mopn.FactorizationProblem; assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_multi_output_estimators_on_dense_data_need_no_numba():
    code = """
import sys
sys.modules["numba"] = None
import numpy as np, mopn.estimators as estimators
X, y = np.random.default_rng(0).uniform(-1, 1, (30, 3)), np.arange(30) % 3
for name in estimators.__all__:
    if name.startswith(("Multi", "Ordinal")):
        getattr(estimators, name)(max_units=2).fit(X, y).predict(X)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


PACKAGES = "dask", "estimators", "explain", "export", "oracles", "plotting", "ranking", "solvers"
REFERENCE = ("mopn", *(f"mopn.{name}" for name in PACKAGES))
GALLERY = sorted((ROOT / "examples/gallery").glob("*/plot_*.py"))


# Pixels of the column of text on a phone of 390 pixels, of the widest picture that is shrunk to it, and of its letters.
PHONE, FITS, LETTERS = 358, 450, 11


def smallest_letters(figure):
    """Return the pixels of a figure's smallest text on a phone; wider pictures are not shrunk there."""
    texts = [text for text in figure.findobj(mpl.text.Text) if text.get_visible() and text.get_text().strip()]
    width = figure.get_figwidth() * 100
    shown = min(1.0, PHONE / width) if width <= FITS else 1.0
    return min(text.get_fontsize() for text in texts) * 100 / 72 * shown


@pytest.mark.slow
@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_draws_figures_that_can_be_read_on_a_phone(script, monkeypatch):
    monkeypatch.delenv("MOVIELENS", raising=False)
    monkeypatch.setattr(mpl.pyplot, "show", lambda: None)
    runpy.run_path(str(script), run_name="__main__")
    figures = [mpl.pyplot.figure(number) for number in mpl.pyplot.get_fignums()]
    assert any(ax.has_data() for figure in figures for ax in figure.axes)
    assert all(smallest_letters(figure) >= LETTERS for figure in figures)
    # One picture of a whole model needs more room, and scrolls.
    wide = [figure.get_figwidth() > FITS / 100 for figure in figures]
    assert sum(wide) == (script.stem == "plot_table")


def test_pages_of_problems_have_what_users_call(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    from user_members import inner_members

    def shown(name):
        members = {member for member in dir(getattr(mopn, name)) if not member.startswith("_")}
        return members - set(inner_members("mopn", name))

    refits = {"default_solver", "measure", "oracles", "start"}
    network = {"classes", "design", "joint", "network", "norm", "output_layer", "strength", "strength_max"}
    network |= {"start_of"}
    one_output = {"network", "outputs", "parameters", "penalty"}
    assert shown("NetworkProblem") == refits | network | {"user_y", "with_ridge", "with_strength", "with_user_y"}
    assert shown("OutputLayerProblem") == refits
    for name in ("FactorizationProblem", "LiftedProblem"):
        assert shown(name) == refits | one_output
    assert inner_members("mopn.solvers.interface", "Problem") == inner_members("mopn.solvers.interface", "Atomic") == []


def test_pages_of_models_have_what_users_call(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    from user_members import inner_members

    for name in ("Model", "FactorizationModel"):
        methods = {member for member, value in vars(mopn.models.base.Predictor).items() if callable(value)}
        public = {member for member in methods if not member.startswith("_")} - {*inner_members("mopn", name)}
        assert public == {"outputs", "predict", "predict_proba"}
        assert not {"save", "from_result"} & {*inner_members("mopn", name)}


@pytest.mark.parametrize("module", REFERENCE)
def test_the_reference_has_every_public_name_and_an_example_of_it(module):
    if module == "mopn.dask":
        pytest.importorskip("distributed")
    module = importlib.import_module(module)
    _, section = (ROOT / "docs/api/index.rst").read_text("utf-8").split(f"currentmodule:: {module.__name__}\n")
    listed = set(re.findall(r"^   (\w+)$", section.split("currentmodule")[0], flags=re.MULTILINE))
    # What mopn and mopn.solvers share is listed once.
    elsewhere = {"oracles", "solvers", *mopn.__all__} if module is not mopn else {"oracles", "solvers"}
    assert set(module.__all__) - listed <= elsewhere
    for name in listed:  # also what results return, such as mopn.Trace
        thing = getattr(module, name)
        assert not callable(thing) or ">>>" in thing.__doc__, name


@pytest.mark.parametrize("module", REFERENCE)
def test_the_summary_of_every_public_name_is_a_sentence_on_a_line(module):
    """The tables of the reference show it, cut at the first point before a space."""
    module = importlib.import_module(module)
    for name in module.__all__:
        thing = getattr(module, name)
        if not callable(thing):
            continue
        summary = thing.__doc__.strip().partition("\n\n")[0]
        assert re.fullmatch(r"[A-Z0-9].*\.", summary), (name, summary)
        assert not re.search(r"\. |cf\.", summary.replace("et al. ", "")), (name, summary)


def listed_names():
    """Full names on the page of the reference."""
    names, module = set(), None
    for line in (ROOT / "docs/api/index.rst").read_text("utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif found := re.fullmatch(r"   ([\w.]+)", line):
            names.add(f"{module}.{found[1]}")
    return names


def test_the_reference_has_what_own_parts_import():
    """Else these names could change at any time."""
    gallery = ROOT / "examples/gallery/solvers"
    own = [(gallery / f"plot_{name}.py").read_text("utf-8") for name in ("completion", "own_step")]
    scripts = [*EXTENDING, *own]
    nodes = [node for script in scripts for node in ast.walk(ast.parse(script)) if isinstance(node, ast.ImportFrom)]
    imported = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
    imported = {name for name in imported if name.startswith("mopn.")}
    assert {"mopn.losses.hessians.Diagonal", "mopn.solvers.interface.Composite"} <= imported
    # What mopn and mopn.solvers share is listed once, elsewhere.
    shared = {f"mopn.solvers.{name}" for name in mopn.__all__}
    assert imported - listed_names() <= shared


@pytest.mark.parametrize("name", GUIDE)
def test_sources_that_a_page_shows_exist(name):
    page = ROOT / "docs" / name
    text = page.read_text("utf-8")
    for path, kind in re.findall(r"\{literalinclude\} (\S+)\n(?::language: python\n:pyobject: (\w+)\n)?", text):
        source = (page.parent / path).read_text("utf-8")
        assert re.search(rf"^(def|class) {kind}\(", source, flags=re.MULTILINE) or not kind


@pytest.fixture
def pages(monkeypatch):
    """What docs/_ext/repository_pages.py defines."""
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(ROOT / "docs/_ext")
    return runpy.run_path(str(ROOT / "docs/_ext/repository_pages.py"))


def test_words_to_search_for_lead_to_pages_and_each_job_has_one(pages):
    words = runpy.run_path(str(ROOT / "docs/_ext/search_words.py"))["WORDS"]
    assert {f"{name}.md" for name in words} <= set(GUIDE)
    jobs = {"data frames", "ratings", "small devices", "black-box optimisation", "is my network optimal", "teaching"}
    assert jobs <= set().union(*words.values())


def test_every_measurement_and_figure_has_its_command_and_date(pages):
    read = runpy.run_path(str(ROOT / "docs/_ext/measurements.py"))["measurements"]
    found = [one for path in ROOT.glob("benchmarks/*/RESULTS.md") for one in read(path.read_text("utf-8"))]
    assert len(found) > 40
    assert not [one.title for one in found if not one.dates]
    drawn = {figure for one in found for figure in one.figures}
    # Other figures are drawn by scripts on their pages or by examples.
    scripts = "\n".join(path.read_text("utf-8") for path in [*ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.py")])
    drawn |= set(re.findall(r'savefig\([^()]*"(\w+\.png)"', scripts))
    assert not {path.name for path in ROOT.glob("docs/*.png")} - drawn
    text = pages["listing"](
        {source: page for source, page in pages["copies"]().items() if source.parent.parent == ROOT / "benchmarks"}
    )
    assert all(command in text for one in found for command in one.commands)


def test_sections_of_results_without_commands_belong_to_the_one_before():
    read = runpy.run_path(str(ROOT / "docs/_ext/measurements.py"))["measurements"]
    first, second = read(
        "# A\n\n2026-01-02\n\n## B\n\n    X=1 python -m b \\\n        --c\n\nText.\n\n## C\n\n![c](../../docs/c.png)\n"
        "\n## D\n\n    taskset -c 0 env Y=2 python -m d\n    python -m e\n\n2026-03-04 and 2026-03-03.\n"
    )
    assert first == ("B", ["    X=1 python -m b \\\n        --c"], ["2026-01-02"], ["c.png"])
    assert second[1:3] == (["    taskset -c 0 env Y=2 python -m d", "    python -m e"], ["2026-03-03", "2026-03-04"])


def test_links_of_pages_lead_to_pages(pages):
    """Links to source files become plain text; results of studies and scripts of the gallery have pages."""
    page = ROOT / "docs/start.md"
    text = "[a](strength.md#x) [b](../benchmarks/speed/RESULTS.md#y) [c](../solvers/fista.py) [d](https://e.org)"
    script = "[e](../examples/gallery/classes/plot_path.py)"
    assert pages["with_site_links"](f"{text} {script}", page, page) == (
        "[a](strength.md#x) [b](pages/benchmarks-speed.md#y) c [d](https://e.org) [e](gallery/classes/plot_path.rst)"
    )

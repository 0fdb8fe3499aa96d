"""Rules of imports, all imports of the source included, and the statements about packages and versions."""

import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mopn

ROOT = Path(__file__).parents[1]
FOLDERS = {"mopn": ROOT / "mopn", "mopn.solvers": ROOT / "solvers"}
# The packages that the modules of a package may import.
BELOW = {
    "compiled": {"solvers"},
    "solvers": set(),
    "losses": {"compiled", "solvers"},
    "data": {"compiled", "solvers", "losses"},
    "core": {"compiled", "solvers", "losses", "data"},
    "network": {"compiled", "solvers", "losses", "data", "core"},
    "factorization": {"compiled", "solvers", "losses", "data", "core"},
    "implicit": {"compiled", "solvers", "losses", "data", "core"},
    "tables": {"solvers", "data"},
    "models": {"compiled", "solvers", "losses", "data", "core", "tables"},
    "explain": {"compiled", "solvers", "losses", "data", "core", "tables", "models"},
    "export": {"solvers", "losses", "data", "tables", "models"},
    "plotting": {"solvers", "data", "models", "explain"},
}
# Files of the root, the estimators among their users, import all of these.
BELOW["the root"] = set(BELOW)
BELOW["estimators"] = {*BELOW}
BELOW["dask"] = {*BELOW} - {"the root"}
# CONTRIBUTING.md, "What may enter". Code is measured in nodes of its syntax tree, which neither packing nor unpacking
# changes; 2 % of slack keep small changes out of this file.
CEILINGS = {
    "packages and modules right below mopn": 20,
    "nodes of mopn and solvers": 198_500,
    "nodes of tests": 241_000,
    "nodes of benchmarks": 86_500,
    "public names": 80,
    "numeric constants": 496,
}
PACKAGES = "dask", "estimators", "explain", "export", "oracles", "plotting", "ranking", "solvers"
PUBLIC = ("mopn", *(f"mopn.{name}" for name in PACKAGES))


@cache
def sources():
    """The file of every module and package, by its full name."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *(part for part in parts if part != "__init__")))] = path
    return found


@cache
def tree(module):
    """The syntax tree of a module."""
    return ast.parse(sources()[module].read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _trees():
    for module in sources():
        tree(module)


@cache
def imports(module):
    """Full names of all imports of a module, wherever in its file; a package stands for the names that it defines."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: imports are absolute"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in sources() else node.module for name in names}
    return found


def imported_modules(module):
    """The modules of mopn among them."""
    return imports(module) & sources().keys() - {module}


def layer(module):
    """The package right below mopn that a module lies in."""
    first = module.split(".")[1:2]
    return first[0] if first and is_package(".".join(["mopn", *first])) else "the root"


def is_package(module):
    return sources()[module].name == "__init__.py"


def test_imports_are_found():
    assert "mopn.solvers.interface" in imports("mopn.solvers.driver")
    assert {"mopn.oracles", "mopn.solvers"} <= imports("mopn")
    assert "mopn.models.single_output" in imports("mopn.models.load")


def test_the_packages_are_those_of_the_layers():
    assert {layer(module) for module in sources()} == BELOW.keys()


def test_modules_import_what_lies_below():
    # The package names everything; what lies above its files it imports on use.
    for module in sources():
        allowed = BELOW[layer(module)] | {layer(module)} | ({"estimators"} if module == "mopn" else set())
        assert {layer(name) for name in imported_modules(module)} <= allowed, module


def test_solvers_need_the_core_dependencies_alone():
    for module in sources():
        if layer(module) == "solvers":
            outside = {name.split(".")[0] for name in imports(module) if not name.startswith("mopn.solvers")}
            # Imported by a method where they are installed: a trace becomes a frame of pandas.
            extras = {"mopn.solvers.result": {"pandas"}}.get(module, set())
            assert outside <= sys.stdlib_module_names | {"numpy", "scipy", "threadpoolctl"} | extras, module


def test_own_counterparts_are_used():
    """numba's decorator fails where no cache can be written, and functools' property holds a lock while it computes."""
    elsewhere = {"numba.jit", "numba.njit", "functools.cached_property"}
    users = {module for module in sources() if elsewhere & names_imported(module)}
    assert users == {"mopn.compiled.jit"}


def names_imported(module):
    nodes = ast.walk(tree(module))
    return {f"{n.module}.{alias.name}" for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names}


def test_no_modules_import_each_other_in_a_circle():
    """Else an error names the modules of one."""
    TopologicalSorter({module: imported_modules(module) for module in sources()}).prepare()


def test_a_checkout_takes_its_own_solvers(tmp_path):
    """Next to another one that is installed for development; and where nothing is installed (``-S``)."""
    for folder in ("mopn", "solvers"):
        (tmp_path / folder).symlink_to(ROOT / folder, target_is_directory=True)
    command = ["-c", "import mopn.solvers.driver as d, mopn; assert mopn.minimize is d.minimize; print(d.__file__)"]
    packages = Path(pytest.__file__).parents[1]
    for options, paths in (([], [tmp_path]), (["-S"], [tmp_path, packages])):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
        found = subprocess.check_output([sys.executable, *options, *command], env=environment, cwd=tmp_path, text=True)
        assert Path(found.strip()) == tmp_path / "solvers" / "driver.py"


def test_nothing_grows_beyond_its_ceiling():
    rooms = [name for name in sources() if name.count(".") == 1 and (is_package(name) or layer(name) == "the root")]
    assigned = {module: dict(assignments(module)) for module in sources()}
    found = {
        "packages and modules right below mopn": len(rooms),
        "nodes of mopn and solvers": nodes_of("mopn") + nodes_of("solvers"),
        "nodes of tests": nodes_of("tests"),
        "nodes of benchmarks": nodes_of("benchmarks"),
        "public names": len(set().union(*(ast.literal_eval(assigned[module]["__all__"]) for module in PUBLIC))),
        "numeric constants": sum(
            name.isupper() and is_number(value) for names in assigned.values() for name, value in names.items()
        ),
    }
    assert found.keys() == CEILINGS.keys()
    assert not {name: count for name, count in found.items() if count > CEILINGS[name]}, found


# Docstrings say things, and contexts and operators stand in the nodes around them.
UNCOUNTED = ast.expr_context | ast.operator | ast.unaryop | ast.cmpop | ast.boolop


def nodes_of(folder):
    return sum(number_of_nodes(ast.parse(path.read_bytes())) for path in (ROOT / folder).rglob("*.py"))


def number_of_nodes(parsed):
    nodes = [node for node in ast.walk(parsed) if not isinstance(node, UNCOUNTED)]
    texts = [node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    # The statement of a docstring, and its text.
    return len(nodes) - 2 * sum(isinstance(text.value, str) for text in texts)


# The packages whose code is written so.
ONE_IDEA_A_LINE = {
    "compiled",
    "core",
    "dask",
    "data",
    "estimators",
    "explain",
    "export",
    "factorization",
    "implicit",
    "losses",
    "models",
    "network",
    "plotting",
    "solvers",
    "tables",
    "the root",
}


def test_a_line_has_one_idea():
    """A line that has to be read twice is written in several statements."""
    found = [
        f"{module}:{node.lineno}: {words}"
        for module in sources()
        if layer(module) in ONE_IDEA_A_LINE
        for node in ast.walk(tree(module))
        for words, is_dense in DENSE.items()
        if is_dense(node)
    ]
    assert not found, "\n".join(found)


def computes_several(node):
    pairs = (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
    )
    return pairs and sum(not is_plain(value) for value in node.value.elts) >= 2


def is_plain(node):
    if isinstance(node, ast.Attribute | ast.UnaryOp):
        return is_plain(node.value if isinstance(node, ast.Attribute) else node.operand)
    return isinstance(node, ast.Name | ast.Constant)


def nests_conditions(node):
    parts = (node.test, node.body, node.orelse) if isinstance(node, ast.IfExp) else ()
    return any(isinstance(part, ast.IfExp) for part in parts)


def repeats_a_text(node):
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else ()
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in parts
    )


def stars_two_arguments(node):
    return isinstance(node, ast.Call) and sum(isinstance(argument, ast.Starred) for argument in node.args) > 1


def is_for_its_side_effect(node):
    kinds = ast.Call | ast.Yield | ast.YieldFrom | ast.Await | ast.Constant
    return isinstance(node, ast.Expr) and not isinstance(node.value, kinds)


DENSE = {
    "two computed values are assigned at once": computes_several,
    "a conditional expression in another": nests_conditions,
    "a text, list or tuple times a condition": repeats_a_text,
    "two starred arguments": stars_two_arguments,
    "a statement for its side effect": is_for_its_side_effect,
}


# Uses of private names of other packages, which have no public ones; of files of mopn there are none.
PRIVATE_USES = {
    "mopn.compiled.jit": ["dispatcher._cache", "dispatcher._cache"],
    "mopn.dask.fitting": ["X._meta", "X._meta"],
    "mopn.estimators.callbacks": ["estimator._init_callback_context"],
    "mopn.estimators.tables": ["_num_samples", "_safe_indexing"],
    "mopn.solvers.tools.decorators": ["sys._getframe"],
}
# Named tuples have these for everyone.
NAMES_OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def test_no_file_uses_private_names_of_another():
    """A name with an underscore belongs to its file; what other files use has a public name."""
    found = {module: private_uses(tree(module)) for module in sources()}
    assert {module: uses for module, uses in found.items() if uses} == PRIVATE_USES


def test_uses_of_private_names_are_found():
    code = """
from a.b import _imported, public

class Kind:
    _attribute: int = 0

    def method(self, other):
        self._set_here = self._inherited + super()._method_above()
        other._attribute, other._set_here, other._replace(x=1), other.__dict__
        return other._private + _imported
"""
    assert private_uses(ast.parse(code)) == ["_imported", "other._private"]


def private_uses(parsed):
    """The private names that a file imports, or takes from objects other than its own, in alphabetical order."""
    nodes = [*ast.walk(parsed)]
    imported = [name.name for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names]
    own = NAMES_OF_NAMED_TUPLES | {*map(name_defined_by, nodes)}
    taken = [
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own and not is_own(node.value)
    ]
    return sorted([*filter(is_private, imported), *taken])


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def name_defined_by(node):
    """The name that a node gives to a function, class or variable, or to an attribute of ``self`` or ``cls``."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if not isinstance(getattr(node, "ctx", None), ast.Store):
        return None
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and is_own(node.value) else None


def is_own(node):
    """Whether a node is ``self``, ``cls`` or ``super()``."""
    if isinstance(node, ast.Call):
        node = node.func
    return isinstance(node, ast.Name) and node.id in {"self", "cls", "super"}


def assignments(module):
    """The names that a module defines at its top, with their values as nodes."""
    for node in tree(module).body:
        for target in getattr(node, "targets", None) or [getattr(node, "target", None)]:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(target.elts, node.value.elts, strict=True) if both else [(target, getattr(node, "value", None))]
            yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name) and value)


def is_number(node):
    """Whether a value is a number, or is computed from numbers alone."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    inner = [*ast.iter_child_nodes(node)]
    return isinstance(node, ast.UnaryOp | ast.BinOp) and all(
        isinstance(part, ast.operator | ast.unaryop) or is_number(part) for part in inner
    )


def test_every_package_is_installed_and_type_checked():
    tool = project()["tool"]
    packages = {name for name in sources() if is_package(name)}
    assert packages == set(tool["setuptools"]["packages"]) == set(tool["mypy"]["packages"])


def test_contributors_are_told_where_a_test_goes():
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    kinds = [path for path in (ROOT / "tests").iterdir() if path.name.startswith("test_") or any(path.rglob("*.py"))]
    assert len(kinds) > 20
    assert not [path.name for path in kinds if not re.search(rf"\btests/{re.escape(path.name)}\b", told)]


def test_helpers_of_tests_are_apart_and_say_what_they_are():
    root = {path.name for path in (ROOT / "tests").glob("*.py") if not path.name.startswith("test_")}
    assert root == {"__init__.py", "conftest.py"}
    for path in (ROOT / "tests" / "helpers").glob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_bytes())), path.name


def test_tests_change_modules_and_not_their_names():
    """A name in a text outlives the module that it names."""
    for path in (ROOT / "tests").rglob("*.py"):
        assert not re.search(r"setattr\(\s*f?\"mopn\.", path.read_text(encoding="utf-8")), path.name


def test_tests_change_no_private_limits():
    """A limit that a test changes is an option, or has a public name."""
    for path in (ROOT / "tests").rglob("*.py"):
        if "cluster" not in path.parts:
            assert not re.search(r"setattr\([\w.]+, \"_[A-Z]", path.read_text(encoding="utf-8")), path.name


def test_the_hook_before_commits_has_the_formatter_of_the_tests():
    (ruff,) = (name for name in project()["project"]["optional-dependencies"]["test"] if name.startswith("ruff"))
    assert ruff.replace("ruff==", "rev: v") in (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


def test_the_address_of_the_repository_is_the_same_everywhere():
    """A release sets it in pyproject.toml, and in these files."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address = settings["project"]["urls"]["Repository"]
    told = {}
    for name in ("README.md", "CITATION.cff", "docs/index.md", "docs/start.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        found = re.findall(r"(?:git clone |repository-code: |`Repository <)([^\s>]+)", text)
        told[name] = set(found)
    assert all(addresses == {address} for addresses in told.values()), told


def test_the_version_is_said_once_and_has_its_changes():
    assert project()["project"]["dynamic"] == ["version"]
    assert "version:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8").replace("cff-version:", "")
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    assert re.fullmatch(re.escape(mopn.__version__) + r" \((unreleased|\d{4}-\d\d-\d\d)\)", newest)


def test_messages_name_packages_that_can_be_installed_wherever_mopn_comes_from():
    """An extra of mopn could be installed by name only from a registry, and not with a checkout or a wheel."""
    extras = project()["project"]["optional-dependencies"]
    known = {re.match(r"[\w-]+", need)[0] for needs in extras.values() for need in needs} - {"mopn"}
    named = {
        re.match(r"[\w-]+", package.strip("'\""))[0]
        for module in sources()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for packages in re.findall(r"pip install ([^;`]+)", node.value)
        for package in packages.split()
    }
    assert {"scikit-learn", "dask"} <= named <= known


def test_the_extra_of_dask_has_what_its_package_and_its_page_import():
    table = project()["project"]
    extras = table["optional-dependencies"]
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    scripts = [code for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "mopn.dask" in code]
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "mopn" / "dask").glob("*.py")]
    nodes = [node for text in (*scripts, *files) for node in ast.walk(ast.parse(text))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {"dask.array", "dask.dataframe", "dask.distributed"} <= names
    needs = {re.match(r"[^>=]+", need)[0] for need in (*table["dependencies"], *extras["dask"], *extras["sklearn"])}
    given = {re.match(r"[\w-]+", need)[0].replace("scikit-learn", "sklearn") for need in needs}
    given |= {"cloudpickle", "pandas", "pyarrow"}  # these come with Dask and its frames
    assert {name.split(".")[0] for name in names} - {"mopn", *sys.stdlib_module_names} <= given
    install = set(re.search(r"Install `([^`]+)`", page)[1].replace('"', "").split())
    assert install == {"dask[array,dataframe]", "distributed", "scikit-learn", "narwhals"} <= needs


def project():
    return pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_site_lists_every_file():
    """With the first sentence of its docstring, which is one line of text."""
    pytest.importorskip("sphinx")
    listing = runpy.run_path(str(ROOT / "docs" / "_ext" / "every_file.py"))["listing"]()
    modules = [module for module in sources() if not is_package(module)]
    assert listing.count("\n- `") == len(modules)
    for module in modules:
        sentence = ast.get_docstring(tree(module)).partition("\n\n")[0]
        assert f"- `{sources()[module].name}`: {' '.join(sentence.split())}\n" in listing
        assert sentence.endswith((".", ")")), module


@pytest.mark.slow
def test_a_quick_case_has_a_budget_of_the_processor(tmp_path):
    """What waits or is compiled is not counted."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_cases.py").write_text("""
import time, numba, numpy as np, pytest

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_quick(): work(0.1)
def test_waits(): time.sleep(1.0)
def test_compiles(): [numba.njit(lambda x: x @ x.T)(np.ones((2, 2), dtype)) for dtype in "fd"]
def test_too_much(): work(1.5)
@pytest.mark.slow
def test_slow(): work(1.0)
""")
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", tmp_path]
    for options, status in (([], 0), (["--budget"], 1), (["--budget", "--all"], 0)):
        done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout
        assert re.search(r"\ntests: median 0\.\d{3} s, longest 1\.5\d s \(\S+test_too_much\)\n", done.stdout)
        said = re.findall(r"make smaller, or mark slow: (.*)", done.stdout)
        assert len(said) == ("--all" not in options)
        assert all(re.fullmatch(r"\S+test_too_much \(1\.5\d s\)", cases) for cases in said), said

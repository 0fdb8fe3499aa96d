#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""The tasks of developers, each said here alone; ``nox --list`` names them.

The workflows call them, and so does ``make``, which has one environment for all. What follows ``--`` goes to pytest:
``nox -s tests -- --all`` runs the slow tests, too.
"""

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"

ROOT = Path(__file__).parent


@nox.session(venv_backend="virtualenv")
def checks(session: nox.Session) -> None:
    """Check the style, and the types of the installed package: it has the layout that users import."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    installed = session.create_tmp()
    # What an earlier build left would be installed, too.
    for folder in (ROOT / "build", Path(installed)):
        shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "pip", "install", "--quiet", "--no-deps", "--target", installed, ".")
    shutil.rmtree(ROOT / "build")
    session.chdir(installed)
    config = "--config-file", str(ROOT / "pyproject.toml")
    session.run("mypy", "-p", "mopn", *config)
    session.run("mypy", *config, str(ROOT / "tests" / "conformance.py"))
    session.run("mypy", "--strict", "--follow-imports=silent", str(ROOT / "tests" / "user_script.py"))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "auto", "--dist", "worksteal", *session.posargs)


@nox.session(python="3.10", venv_backend="uv", default=False)
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions of everything that pyproject.toml allows."""
    session.install("--resolution", "lowest-direct", "-e", ".[test]")
    # Old packages may use what the newest of their own dependencies deprecate.
    session.run("pytest", "-n", "auto", "--dist", "worksteal", "-W", "default::DeprecationWarning", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site in docs/_build/html; a warning is an error, and nothing is fetched but packages."""
    session.install("-e", ".[test]")
    session.run("sphinx-build", "-b", "html", "-W", "--keep-going", "-q", "docs", "docs/_build/html")


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Generate calls of every public interface; tests/fuzz/__init__.py has the options."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "tests.fuzz", *session.posargs)


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
    session.run("repo-review", str(ROOT))


if __name__ == "__main__":
    nox.main()

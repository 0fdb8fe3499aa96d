"""The list of all files on the page for contributors: each with the first sentence of its docstring."""

from __future__ import annotations

import ast
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PACKAGES = "mopn", "solvers"


def listing() -> str:
    """Return the list: a room for every folder, the inner ones first."""
    rooms: dict[str, list[str]] = {}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if path.name != "__init__.py" and docstring:
            sentence = " ".join(docstring.partition("\n\n")[0].split())
            rooms.setdefault(path.parent.relative_to(ROOT).as_posix(), []).append(f"- `{path.name}`: {sentence}\n")
    return "\n".join(f"**{room}/**\n\n{''.join(sorted(files))}" for room, files in sorted(rooms.items(), reverse=True))


def _append(app: Sphinx, name: str, source: list[str]) -> None:
    if name == "pages/contributing":
        source[0] += f"\n## Every file\n\n{listing()}\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Append the list when the page is read."""
    app.connect("source-read", _append)
    return {"parallel_read_safe": True}

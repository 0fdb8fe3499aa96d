"""Pages as notebooks to download: text in cells of Markdown, scripts in cells of Python, no output."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
PAGES = ("teaching",)
_PRINTED = re.compile(r"```text\n.*?```\n", re.DOTALL)
_DIRECTIVE = re.compile(r"```\{.*?```\n", re.DOTALL)
_FENCE = re.compile(r"^:::+(?:\{\w+\} *(.*))?\n", re.MULTILINE)
_FIGURE = re.compile(r"!\[[^\]]*\]\([^)]*\)\n")
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


def notebook(text: str) -> dict[str, Any]:
    """Return a page as a notebook, which prints and draws by itself; of links to other pages the words are left."""
    for pattern in (_PRINTED, _DIRECTIVE, _FIGURE):
        text = pattern.sub("", text)
    for pattern, words in ((_FENCE, r"**\1**\n"), (_LINK, r"\1")):
        text = pattern.sub(words, text)
    cells = []
    for number, part in enumerate(re.split(r"```python\n(.*?)```\n", text.replace("****\n", ""), flags=re.DOTALL)):
        common = {"metadata": {}, "source": part.strip(), "id": f"cell-{number}"}
        if number % 2:
            cells.append({"cell_type": "code", "execution_count": None, "outputs": [], **common})
        elif part.strip():
            cells.append({"cell_type": "markdown", **common})
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def _write(app: Sphinx, error: Exception | None) -> None:
    for page in () if error else PAGES:
        text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
        path = Path(app.outdir) / "_static" / f"{page}.ipynb"
        path.write_text(json.dumps(notebook(text), indent=1), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the notebooks after the pages."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}

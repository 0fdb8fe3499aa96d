"""Documents outside docs/ as pages of the site, such as the results of studies, and links between all of them.

The repository's documents link to each other, and to source files, by paths. Pages keep the links to pages, and to
scripts of the gallery, which are pages, too; of a link to another source file the text is left.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

from measurements import listing

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
PAGES = DOCS / "pages"
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def copies() -> dict[Path, Path]:
    """Return where each document outside docs/ goes."""
    pages = {ROOT / "CHANGELOG.md": PAGES / "changes.md"}
    pages |= {ROOT / f"{name.upper()}.md": PAGES / f"{name}.md" for name in ("contributing", "security")}
    pages[ROOT / "benchmarks/RESULTS.md"] = PAGES / "benchmarks.md"
    for study in sorted(ROOT.glob("benchmarks/*/RESULTS.md")):
        pages[study] = PAGES / f"benchmarks-{study.parent.name}.md"
    return pages


def places() -> dict[Path, Path]:
    """Return the page of each file outside docs/ that has one."""
    gallery = ROOT / "examples/gallery"
    scripts = gallery.glob("*/plot_*.py")
    examples = {script: (DOCS / "gallery" / script.relative_to(gallery)).with_suffix(".rst") for script in scripts}
    return copies() | examples | {gallery: DOCS / "gallery/index.rst"}


def with_site_links(text: str, source: Path, page: Path) -> str:
    """Return the text of a document as a page's: links lead to pages, and to nothing else."""
    pages = places()

    def link(match: re.Match[str]) -> str:
        words, path, anchor = match.group(1), match.group(2), match.group(3) or ""
        target = Path(os.path.normpath(source.parent / path))
        target = pages.get(target, target)
        if not target.is_relative_to(DOCS):
            return words
        return f"[{words}]({os.path.relpath(target, page.parent)}{anchor})"

    return _LINK.sub(link, text)


def _write(app: Sphinx) -> None:
    """Write the copies, those that changed."""
    PAGES.mkdir(exist_ok=True)
    studies = {source: page for source, page in copies().items() if page.stem.startswith("benchmarks-")}
    contents = "\n```{toctree}\n:hidden:\n\n" + "\n".join(page.stem for page in studies.values()) + "\n```\n"
    for source, page in copies().items():
        text = with_site_links(source.read_text(encoding="utf-8"), source, page)
        text += listing(studies) + contents if page.stem == "benchmarks" else ""
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    page = DOCS / f"{name}.md"
    if page.parent == DOCS and page.exists():
        source[0] = with_site_links(source[0], page, page)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for documents."""
    app.connect("builder-inited", _write, priority=1)
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}

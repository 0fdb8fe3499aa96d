"""Pictures on phones: small ones shrink to the column of text, wider ones keep their size, and scroll."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# Pixels: letters of 10 points are 11 pixels high in a picture of this width on a phone of 390 pixels.
FITS = 450


def width_of(path: Path) -> int:
    """Return the width of a PNG file."""
    with path.open("rb") as file:
        return int(struct.unpack(">I", file.read(24)[16:20])[0])


def with_sizes(body: str, widths: Callable[[str], int]) -> str:
    """Return a page whose small pictures have the class ``fits``, and whose wide ones of the gallery are paragraphs."""

    def sized(match: re.Match[str]) -> str:
        tag = match[0]
        if widths(match[1]) > FITS:
            return f"<p>{tag}</p>" if "sphx-glr-single-img" in tag else tag
        if "class" in tag:
            return re.sub(r'class ?= ?"', 'class="fits ', tag)
        return tag.replace("<img ", '<img class="fits" ', 1)

    return re.sub(r'<img [^>]*?src="[^"]*_images/([^"/]+\.png)"[^>]*>', sized, body)


def _size(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    # Pictures of pages are copied last; those of the gallery have been copied.
    sources = {copied: Path(app.srcdir) / source for source, copied in app.builder.images.items()}
    copies = Path(app.outdir) / "_images"
    if "body" in context:
        context["body"] = with_sizes(context["body"], lambda picture: width_of(sources.get(picture, copies / picture)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at the pictures of each page as it is written."""
    app.connect("html-page-context", _size)
    return {"parallel_read_safe": True}

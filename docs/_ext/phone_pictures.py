"""Pictures keep letters that can be read: small ones shrink to a phone, wider ones scroll in a narrow column."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from sphinx.application import Sphinx

# Pixels: letters of 10 points are 11 pixels high in a picture of this width on a phone of 390 pixels.
FITS = 450
# Pixels an inch of a figure: letters of 9 points are 11 pixels high.
READABLE = 88


def least_width(path: Path) -> int | None:
    """Return the width in pixels that the letters of a picture need, or None if it fits a phone."""
    with Image.open(path) as picture:
        if picture.width <= FITS:
            return None
        inches = picture.width / picture.info["dpi"][0]
        return min(picture.width, round(READABLE * inches))


def with_sizes(body: str, least: Callable[[str], int | None]) -> str:
    """Return a page whose small pictures have the class ``fits``, and whose wide ones have a least width.

    Wide ones of the gallery become paragraphs, as those of other pages are: paragraphs of pictures scroll.
    """

    def sized(match: re.Match[str]) -> str:
        tag = match[0]
        width = least(match[1])
        if width is not None:
            tag = tag.replace("<img ", f'<img style="min-width: {width}px" ', 1)
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
        context["body"] = with_sizes(context["body"], lambda name: least_width(sources.get(name, copies / name)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at the pictures of each page as it is written."""
    app.connect("html-page-context", _size)
    return {"parallel_read_safe": True}

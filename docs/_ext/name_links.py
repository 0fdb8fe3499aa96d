"""Names of the interface in code spans, such as `Ratio` or `mopn.load(path)`, as links to their pages."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

MODULES = ("mopn", *(f"mopn.{name}" for name in ("estimators", "solvers", "dask", "oracles", "plotting", "ranking")))
_SPAN = re.compile(r"(?P<module>mopn\.(?:\w+\.)*)?(?P<name>\w+)(?:\(.*\))?")


def targets() -> dict[str, str]:
    """Return the place of each public name; what two modules share is documented in the first."""
    places: dict[str, str] = {}
    for module in MODULES:
        for name in import_module(module).__all__:
            places.setdefault(name, f"{module}.{name}")
    return places


class NameLinks(SphinxTransform):
    """Links of the guide; on pages of the reference each name is the page's own, or a link by its author."""

    default_priority = 500

    def apply(self, **options: Any) -> None:
        """Wrap the code spans that are names; a common word is one only with its module."""
        if self.env.docname.startswith("api/"):
            return
        places = targets()
        for span in list(self.document.findall(nodes.literal)):
            match = _SPAN.fullmatch(span.astext())
            if match is None or match["name"] not in places or isinstance(span.parent, (nodes.reference, nodes.title)):
                continue
            if not match["module"] and re.fullmatch("[a-z]+", match["name"]):
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=places[match["name"]], refexplicit=True
            )
            span.replace_self(link)
            link += span


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(NameLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""How Sphinx builds the site (`make docs`): nothing is fetched, and the pages need no network to be read."""

import sys
from pathlib import Path
from typing import Any

import mopn

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from user_members import inner_members

project = "mopn"
author = "The mopn developers"
project_copyright = f"2026, {author}"
version = release = mopn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "live_page",
    "every_file",
    "mathml",
    "name_links",
    "notebooks",
    "phone_pictures",
    "repository_pages",
    "search_words",
]
exclude_patterns = ["_build", "_ext", "**/*.ipynb"]
highlight_language = "text"  # of indented blocks: commands and tables
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

autosummary_generate = True
autosummary_context = {"inner_members": inner_members}
suppress_warnings = ["config.cache"]  # a function in the context cannot be cached
# several estimators share the __init__ with their parameters
autoclass_content = "both"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"  # methods, then attributes
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("mopn",),
    "show_memory": False,
    "write_computation_times": False,
    "plot_gallery": True,
    "within_subsection_order": "gallery_order.Order",
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"mopn {release}"
html_favicon = "_static/favicon.svg"  # by drawings.py, as the logo
# light or dark as the reader's system; without it the theme logs an error
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "start": [], "pages/changes": []}
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo_dark.svg",
        "text": f"mopn {release}",
        "alt_text": "",
    },
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}


def setup(app: Any) -> None:
    """Leave out the methods that scikit-learn documents: theirs refer to labels of its site."""

    def inherited(
        app: Any, what: str, name: str, member: Any, skip: bool, options: Any
    ) -> bool | None:
        return (
            True
            if str(getattr(member, "__module__", "")).startswith(("sklearn", "scipy"))
            else None
        )

    app.connect("autodoc-skip-member", inherited)

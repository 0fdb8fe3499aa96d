"""Formulas as MathML, which browsers draw by themselves: no script, no font and no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def _inline(translator: Any, node: nodes.math) -> None:
    """Write a formula as a whole; one that is longer than a phone's line scrolls there."""
    formula = convert(node.astext(), display="inline")
    is_long = len(node.astext()) > 35
    translator.body.append(f'<span class="long-formula">{formula}</span>' if is_long else formula)
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

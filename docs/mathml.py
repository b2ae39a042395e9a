"""Formulas as MathML, which browsers draw by themselves: the pages need no network for them."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def markup(formula: str, display: str = "inline") -> str:
    """The formula as MathML."""
    # The character of a prime is raised by itself. As an exponent it would float above its letter.
    return convert(re.sub(r"([A-Za-z])'", "{\\1\N{PRIME}}", formula), display=display)


def visit_math(translator: nodes.NodeVisitor, node: nodes.math) -> None:
    translator.body.append(markup(node.astext()))
    raise nodes.SkipNode


def visit_displayed_math(translator: nodes.NodeVisitor, node: nodes.math_block) -> None:
    translator.body.append(markup(node.astext(), "block"))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Formulas as MathML, which browsers draw by themselves: the pages need no network for them."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def visit_math(translator: nodes.NodeVisitor, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_displayed_math(translator: nodes.NodeVisitor, node: nodes.math_block) -> None:
    translator.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

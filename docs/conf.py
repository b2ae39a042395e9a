"""How the documentation is built: `make docs`."""

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.report import write_page

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
sys.path.insert(0, str(DOCS))  # for the extension beside this file

project = "rewardshift"
author = "the rewardshift authors"
copyright = "2026, the rewardshift authors"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.githubpages",  # the file without which some hosts leave out _static
    "sphinx.ext.napoleon",
    "mathml",
    "command_help",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "rewardshift"
html_static_path = ["_static"]
html_css_files = ["pictures.css"]
html_theme_options = {"top_of_page_buttons": []}  # there is no address to link a page's source to

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

# An error in a notebook ends the build. One whose own code is as it was is not run again: what it
# showed lies in _build, which a fresh checkout does not have and `make clean` removes.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600

# Docstrings write code in single backticks, as the pages do.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["d3rlpy"]  # it has an environment of its own
nitpicky = True


PICTURE = re.compile(r'<p>(<img [^>]*src="[^"]*/(?:figure|doctor)\d*\.(?:png|svg)"[^>]*>)</p>')
FRAME = r'<div class="picture" tabindex="0" role="group" aria-label="Picture">\1</div>'


def complete(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _: Any) -> None:
    """Frames pictures of results for `pictures.css`, and lets the keyboard reach what scrolls."""
    body = PICTURE.sub(FRAME, context.get("body", ""))
    context["body"] = re.sub(
        r'<(pre|div class="(?:table|math)-wrapper[^"]*")>', r'<\1 tabindex="0">', body
    )
    for part in ("body", "furo_navigation_tree"):  # a heading needs a level
        context[part] = context.get(part, "").replace(
            'role="heading"', 'role="heading" aria-level="2"'
        )


def write_pages(out: Path) -> None:
    """Puts the interactive pages beside results.html."""
    write_page(RESULTS, out / "report.html")
    write_page(RESULTS / "absorbing", out / "report-absorbing.html")


def finish(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        write_pages(Path(app.outdir))


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", complete, priority=900)  # after the theme
    app.connect("build-finished", finish)

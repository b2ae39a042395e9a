"""How the documentation is built: `make docs`."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

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
    "sphinx.ext.napoleon",
    "mathml",
    "command_help",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "rewardshift"

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


def write_reports(app: Sphinx, error: Exception | None) -> None:
    """Puts the interactive pages beside results.html."""
    if error is None and app.builder.format == "html":
        write_page(RESULTS, Path(app.outdir) / "report.html")
        write_page(RESULTS / "absorbing", Path(app.outdir) / "report-absorbing.html")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write_reports)

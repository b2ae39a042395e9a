"""How the documentation is built: `make docs`."""

project = "rewardshift"
author = "the rewardshift authors"
copyright = "2026, the rewardshift authors"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "rewardshift"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2

# Docstrings write code in single backticks, as the pages do.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["d3rlpy"]  # it has an environment of its own
nitpicky = True

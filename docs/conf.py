"""How the documentation is built: `make docs`."""

project = "rewardshift"
author = "the rewardshift authors"
copyright = "2026, the rewardshift authors"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "rewardshift"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# A notebook runs again only if its code has changed; an error in one ends the build. The cache is
# in _build, which a checkout does not have, so there all of them run.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600

# Docstrings write code in single backticks, as the pages do.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["d3rlpy"]  # it has an environment of its own
nitpicky = True

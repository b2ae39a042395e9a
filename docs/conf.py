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

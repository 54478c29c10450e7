"""Sphinx configuration: Markdown pages, no network."""

from importlib.metadata import version as _version

project = "spanforge"
author = copyright = "The spanforge authors"  # noqa: A001  Sphinx's own name
release = version = _version("spanforge")
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "spanforge"
exclude_patterns = ["_build", "reference/_inputs.md"]
# Links to the README, decisions and tests lead outside this tree, to the repository.
suppress_warnings = ["myst.xref_missing"]

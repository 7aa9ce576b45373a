"""Sphinx configuration: `sphinx-build -W docs build/docs`."""

import os
from pathlib import Path

import matplotlib as mpl

import skihmm

mpl.use("Agg")

HERE = Path(__file__).parent

project = "skihmm"
author = "The skihmm developers"
project_copyright = author
release = version = skihmm.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["figures/*.py", "**/README.txt", "auto_examples/**/*.py.md5"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "none"
templates_path = ["_templates"]
numpydoc_show_class_members = False  # the template shows them
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("skihmm",),
    "backreferences_dir": "generated/backreferences",
    "reference_url": {"skihmm": None},
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
}
if not os.environ.get("SKIHMM_DATA"):
    # Data that are no part of the package: without them their examples are not run.
    sphinx_gallery_conf["filename_pattern"] = r"plot_(?!.*(words|speech|motion_capture))"

html_theme = "pydata_sphinx_theme"
html_title = "skihmm"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"get_started": [], "changelog": [], "index": []}

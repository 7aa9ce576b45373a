"""Sphinx configuration: `sphinx-build -W docs build/docs`."""

import importlib
import inspect
import os
import re
import tomllib
from pathlib import Path

import matplotlib as mpl
from sphinx_gallery.scrapers import matplotlib_scraper

import skihmm
from skihmm.inspection import _style

mpl.use("Agg")

HERE = Path(__file__).parent
with open(HERE.parent / "pyproject.toml", "rb") as file:
    SOURCE = tomllib.load(file)["project"]["urls"]["Source"]

project = "skihmm"
author = "The skihmm developers"
project_copyright = author
release = version = skihmm.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas render without a network
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "figures/*.py",
    "paper/*",
    "**/README.txt",
    "auto_examples/**/*.py.md5",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]
smartquotes_action = "De"  # quotes of short names stay as in code

autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
templates_path = ["_templates"]
numpydoc_show_class_members = False  # the template shows them
numpydoc_xref_param_type = False

if os.environ.get("READTHEDOCS"):
    # Where the site is hosted there is a network; elsewhere a build needs none.
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "joblib": ("https://joblib.readthedocs.io/en/stable", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
    }


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Find the address of an object's source; None for what is compiled or inherited."""
    found = importlib.import_module(info["module"])
    for name in info["fullname"].split("."):
        found = getattr(found, name, None)
    found = inspect.unwrap(found.fget if isinstance(found, property) else found)
    try:
        path = Path(inspect.getfile(found))
        lines, first = inspect.getsourcelines(found)
    except (TypeError, OSError):
        return None
    package = Path(skihmm.__file__).parent
    if not path.is_relative_to(package):
        return None
    name = (Path("skihmm") / path.relative_to(package)).as_posix()
    # The hosted site has a version for every tag.
    commit = os.environ.get("READTHEDOCS_GIT_IDENTIFIER", "main")
    return f"{SOURCE}/blob/{commit}/{name}#L{first}-L{first + len(lines) - 1}"


def skip_fields(app, what, name, obj, skip, options) -> bool:
    """Leave out fields of named tuples: their parameters describe them."""
    return skip or str(getattr(obj, "__doc__", "")).startswith("Alias for field number")


def setup(app) -> None:
    """Connect what is above."""
    app.connect("autodoc-skip-member", skip_fields)


copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


with open(HERE / "alternative_texts.toml", "rb") as file:
    TEXTS = tomllib.load(file)


class Order:
    """Examples of a section are in the order of their texts."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name):
        return list(TEXTS).index(Path(name).stem)


def scrape(block, block_vars, gallery_conf, **options) -> str:
    """Take the alternative texts of an example's pictures from their file."""
    pictures = block_vars["image_path_iterator"]
    n_before = len(pictures)
    text = matplotlib_scraper(block, block_vars, gallery_conf, **options)
    given = iter(TEXTS[Path(block_vars["src_file"]).stem][n_before : len(pictures)])
    return re.sub(r"(?<=:alt: ).+", lambda _: next(given), text)


def set_colours(gallery_conf, name) -> None:
    """Lines and matrices of all examples have the colours of the displays."""
    mpl.rcParams["axes.prop_cycle"] = mpl.cycler(color=_style._LINE_COLOURS)
    mpl.rcParams["image.cmap"] = _style.SEQUENTIAL


sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": Order,
    "doc_module": ("skihmm",),
    "backreferences_dir": "generated/backreferences",
    "reference_url": {"skihmm": None},
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # their table needs a network
    "abort_on_example_error": True,
    "image_scrapers": (scrape,),
    "reset_modules": ("matplotlib", set_colours),
    "capture_repr": ("_repr_html_",),
    "ignore_repr_types": "skihmm",  # displays and estimators are shown by their pictures
    "subsection_order": [
        f"../examples/gallery/{name}" for name in ("start", "series", "models", "after", "behind")
    ],
}
if not (os.environ.get("SKIHMM_DATA") or os.environ.get("READTHEDOCS")):
    # Data that are no part of the package: without them, and without a network to load them
    # from, their examples are not run.
    sphinx_gallery_conf["filename_pattern"] = r"plot_(?!.*(words|speech|motion_capture))"

html_theme = "pydata_sphinx_theme"
html_title = "skihmm"
html_static_path = ["_static"]
html_search_scorer = str(HERE / "search_scorer.js")
html_css_files = ["custom.css"]
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
html_theme_options = {
    "github_url": SOURCE,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
WITHOUT_SIDEBAR = ("changelog", "choose", "faq", "get_started", "glossary", "index", "install")
html_sidebars = {page: [] for page in WITHOUT_SIDEBAR}

"""Base classes: of recipes (samplers, emissions, transitions), and links to pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sklearn.base import BaseEstimator

from skihmm._data.other_names import ExplainsNames
from skihmm._version import __version__

PAGES = "latest" if "dev" in __version__ else "stable"


class DocLinkMixin:
    """Link to the page of the class, in the HTML representation.

    The attributes are those that scikit-learn documents for other packages.  Classes that
    other packages derive have no link, as their pages are elsewhere.
    """

    _doc_link_module = "skihmm"
    _doc_link_template = (
        f"https://skihmm.readthedocs.io/en/{PAGES}/generated/"
        "{estimator_module}.{estimator_name}.html"
    )


class Recipe(DocLinkMixin, ExplainsNames, BaseEstimator):
    """Constructor parameters, which can be cloned, printed and searched over.

    Attributes
    ----------
    test_params : sequence of dict
        Parameters of the instances that tests should cover, a class attribute, which
        :func:`skihmm.testing.make_instances` builds.
    """

    test_params: ClassVar[Sequence[Mapping[str, object]]] = ({},)

"""Base class of recipes: samplers, emissions and transitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sklearn.base import BaseEstimator


class Recipe(BaseEstimator):
    """Constructor parameters, which can be cloned, printed and searched over.

    Attributes
    ----------
    test_params : sequence of dict
        Of the class: parameters of the instances that tests should cover, which
        :func:`skihmm.testing.make_instances` builds.
    """

    test_params: ClassVar[Sequence[Mapping[str, object]]] = ({},)

"""Segmenter for aeon, which must be installed (``pip install skihmm[aeon]``)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from aeon.segmentation.base import BaseSegmenter
from sklearn.base import clone

from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats, Labels, NamedValues

__all__ = ["HCRPHMMSegmenter"]


class HCRPHMMSegmenter(BaseSegmenter):  # type: ignore[misc]
    """Segmentation of a series by an infinite hidden Markov model, for aeon.

    The segmentation is not one of change points but of states: the state of every time
    point, with the same label wherever it returns (aeon's tag ``returns_dense`` is
    False).

    Parameters
    ----------
    hmm : HCRPHMM or None, default=None
        The model, which is cloned to ``hmm_``.  None: Gaussian states that last,
        ``HCRPHMM(emission="gaussian", transitions="persistent", random_state=0)``.

    Attributes
    ----------
    hmm_ : HCRPHMM
        The fitted model.

    See Also
    --------
    skihmm.HCRPHMM : The model.

    Notes
    -----
    ``fit`` draws from the posterior given a series; ``predict`` is the most probable path
    of a series, the same one or another, under the selected draw.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.contrib.aeon import HCRPHMMSegmenter
    >>> X = np.repeat([0.0, 9.0, 0.0], 20) + np.random.default_rng(0).normal(size=60)
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0)
    >>> HCRPHMMSegmenter(hmm).fit_predict(X)[[0, 19, 20, 39, 40, 59]]
    array([0, 0, 1, 1, 0, 0], dtype=int32)
    """

    _tags: ClassVar[NamedValues] = {
        "X_inner_type": "np.ndarray",
        "capability:multivariate": True,
        "capability:missing_values": True,
        "fit_is_empty": False,
        "returns_dense": False,
        "non_deterministic": False,
    }

    def __init__(self, hmm: HCRPHMM | None = None) -> None:
        self.hmm = hmm
        # Time points are rows, as in scikit-learn.
        super().__init__(axis=0, n_segments=None)

    def _fit(self, X: Floats, y: object = None) -> HCRPHMMSegmenter:
        hmm = self.hmm
        if hmm is None:
            hmm = HCRPHMM(emission="gaussian", transitions="persistent", random_state=0)
        self.hmm_ = clone(hmm).fit(np.reshape(X, (len(X), -1)))
        return self

    def _predict(self, X: Floats) -> Labels:
        return self.hmm_.predict(np.reshape(X, (len(X), -1)))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[NamedValues]:
        return [
            {"hmm": HCRPHMM(emission=emission, n_burnin=2, n_draws=2, random_state=0)}
            for emission in ("gaussian", "diagonal_gaussian")
        ]

"""Detector for sktime, which must be installed (``pip install skihmm[sktime]``)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sktime.detection.base import BaseDetector

from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats, NamedValues
from skihmm.posterior._segments import borders_of

__all__ = ["HCRPHMMDetector"]


def _rows(X: pd.DataFrame) -> Floats:
    # (predict_points and predict_segments hand over a series as it came.)
    return np.reshape(X, (len(X), -1))


class HCRPHMMDetector(BaseDetector):  # type: ignore[misc]
    """Segmentation of a series by an infinite hidden Markov model, for sktime.

    Segments have the label of their state, so that a state that returns has the same
    label again.

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
    ``fit`` draws from the posterior given a series; ``predict`` gives the runs of the
    most probable path of a series, the same one or another, under the selected draw, and
    ``transform`` the state of every step.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.contrib.sktime import HCRPHMMDetector
    >>> X = np.repeat([0.0, 9.0, 0.0], 20) + np.random.default_rng(0).normal(size=60)
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0)
    >>> HCRPHMMDetector(hmm).fit(X).predict(X)
          ilocs  labels
    0   [0, 20)       0
    1  [20, 40)       1
    2  [40, 60)       0
    """

    _tags: ClassVar[NamedValues] = {
        "task": "segmentation",
        "learning_type": "unsupervised",
        "capability:multivariate": True,
        "capability:missing_values": True,
        "X_inner_mtype": "pd.DataFrame",
        "fit_is_empty": False,
    }

    def __init__(self, hmm: HCRPHMM | None = None) -> None:
        self.hmm = hmm
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: object = None) -> HCRPHMMDetector:
        hmm = self.hmm
        if hmm is None:
            hmm = HCRPHMM(emission="gaussian", transitions="persistent", random_state=0)
        self.hmm_ = clone(hmm).fit(_rows(X))
        return self

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        path = self.hmm_.predict(_rows(X))
        borders = borders_of(path, np.zeros(1, dtype=np.intp))
        intervals = pd.IntervalIndex.from_breaks(borders, closed="left")
        return pd.DataFrame({"ilocs": intervals, "labels": path[borders[:-1]]})

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[NamedValues]:
        """Parameters of the instances that sktime's tests use.

        Parameters
        ----------
        parameter_set : str, default="default"
            Ignored.

        Returns
        -------
        params : list of dict
        """
        return [
            {"hmm": HCRPHMM(emission=emission, n_burnin=2, n_draws=2, random_state=0)}
            for emission in ("gaussian", "diagonal_gaussian")
        ]

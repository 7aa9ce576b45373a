"""Agreement of state sequences."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import mutual_info_score

from skihmm._data.validation import check_positive


def mutual_information(states_true: ArrayLike, states: ArrayLike, base: float | None = 2) -> float:
    """Mutual information of two state sequences, from their joint frequencies.

    It does not depend on the labels of the states, and is at most the entropy of either
    sequence.  The values in arXiv 1106.0474 are bits.

    Parameters
    ----------
    states_true, states : array-like of shape (n_samples,)
        One label per step.
    base : float or None, default=2
        Base of the logarithm: 2 for bits, None for nats.

    Returns
    -------
    information : float
        At least 0.

    See Also
    --------
    skihmm.posterior.match_states : Relabel states to compare two paths.

    Examples
    --------
    >>> from skihmm.metrics import mutual_information
    >>> round(mutual_information([0, 1, 2, 3], [7, 5, 5, 9]), 3)
    1.5
    """
    nats = float(mutual_info_score(states_true, states))
    nats = max(nats, 0.0)  # rounding may leave -1e-16
    if base is None:
        return nats
    if check_positive("base", base) == 1.0:
        raise ValueError("base=1; expected a number > 0 other than 1, or None for nats.")
    return nats / float(np.log(base))

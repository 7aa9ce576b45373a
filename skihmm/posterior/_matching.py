"""Common labels for several paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skihmm._draws import PosteriorDraws
from skihmm._typing import Labels
from skihmm._using.matching import match_states
from skihmm._using.partitions import state_paths
from skihmm.posterior._estimate import point_estimate


def align(draws: PosteriorDraws | ArrayLike, reference: ArrayLike | None = None) -> Labels:
    """Paths of all draws, with labels matched to the labels of one path.

    Parameters
    ----------
    draws : PosteriorDraws or array-like of shape (n_draws, n_samples)
        State paths.
    reference : array-like of shape (n_samples,), optional
        The path whose labels are used; by default ``point_estimate(draws)``.

    Returns
    -------
    paths : ndarray of shape (n_draws, n_samples), int32
        All draws, chain after chain, each relabelled by :func:`match_states`.  Labels
        that `reference` does not have are not comparable between draws.

    See Also
    --------
    match_states : Match the labels of one path.

    Examples
    --------
    >>> from skihmm.posterior import align
    >>> align([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 2, 2]], reference=[0, 0, 1, 1])
    array([[0, 0, 1, 1],
           [0, 0, 1, 1],
           [0, 2, 1, 1]], dtype=int32)
    """
    paths = state_paths(draws)
    if reference is None:
        reference = point_estimate(draws)
    return np.stack([match_states(reference, path) for path in paths])

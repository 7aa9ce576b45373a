"""States of a draw matched to the states of a path."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from skihmm._draws import PosteriorDraws
from skihmm._typing import Integers, Labels
from skihmm._using.partitions import by_occupancy, check_path, overlaps

NO_PATHS = (
    "The states of all draws are matched by their paths, which they do not have: fit "
    "with store_states=True."
)


def match_states(reference: ArrayLike, states: ArrayLike) -> Labels:
    """Relabel the states of a path to match the states of another path.

    States are paired one to one such that as many steps as possible have equal labels.

    Parameters
    ----------
    reference : array-like of shape (n_samples,)
        A path; its labels are kept.
    states : array-like of shape (n_samples,)
        The path to be relabelled.

    Returns
    -------
    matched : ndarray of shape (n_samples,), int32
        `states` under the labels of `reference`.  States without a partner, or without a
        common step, get the labels after the largest label of `reference`, by decreasing
        occupancy.

    See Also
    --------
    align : Match the labels of all draws.
    skihmm.HCRPHMM.renumber : Renumber the states of a fit.

    Examples
    --------
    >>> from skihmm.posterior import match_states
    >>> match_states([0, 0, 0, 1, 1, 2], [5, 5, 7, 7, 7, 3])
    array([0, 0, 1, 1, 1, 2], dtype=int32)
    >>> match_states([0, 0, 0, 0, 1, 1], [1, 1, 1, 2, 0, 0])
    array([0, 0, 0, 2, 1, 1], dtype=int32)
    """
    reference = check_path("reference", reference)
    states = check_path("states", states)
    if len(reference) != len(states):
        raise ValueError(
            f"reference has {len(reference)} steps and states {len(states)}; expected "
            "two paths of the same data."
        )
    # Ties must not depend on the labels of the path.
    states = by_occupancy(states)
    names, rows = np.unique(reference, return_inverse=True)
    overlap = overlaps(rows, states)
    row, column = linear_sum_assignment(overlap, maximize=True)
    is_pair = overlap[row, column] > 0
    label = np.full(overlap.shape[1], -1, dtype=np.int32)
    label[column[is_pair]] = names[row[is_pair]]
    alone = np.flatnonzero(label < 0)
    label[alone] = names[-1] + 1 + np.arange(len(alone))
    return label[states]


def places_of_states(labels: Integers, states: Integers) -> Labels:
    """Labels of the states of a draw, matched to a path, and of a new state.

    States without a match have, as the new state, the label after the largest.
    """
    n = int(labels.max()) + 1
    path = match_states(labels, states)
    first = np.unique(states, return_index=True)[1]
    return np.append(np.minimum(path[first], n), n)


def matched_labels(
    draws: PosteriorDraws, path: Labels, labels: Labels | None = None
) -> list[Labels]:
    """Label of every state of each weighted draw, and of a new state.

    It is the label of the matched state of `path`; with `labels` of the steps the label with which
    it shares most steps, and -1 for a new state.
    """
    if not draws.has_states:
        raise ValueError(NO_PATHS)
    paths = [draw.states for draw in draws.weighted(with_states=True)[0] if draw.states is not None]
    if labels is None:
        return [places_of_states(path, states) for states in paths]
    if len(labels) != len(path):
        raise ValueError(
            f"labels has {len(labels)} entries, but the fit had {len(path)} steps; "
            "expected one label per training step."
        )
    return [np.append(overlaps(labels, states).argmax(axis=0), -1) for states in paths]

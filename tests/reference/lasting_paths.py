"""Paths without short stays, by listing all paths."""

from __future__ import annotations

import numpy as np
import pytest

N_STEPS = 8


def all_paths(n_states, n_steps=N_STEPS):
    return np.indices((n_states,) * n_steps).reshape(n_steps, -1).T


def have_long_stays(paths, starts, min_dwell):
    """Whether all stays but the first and the last of every sequence are long enough."""
    is_long = np.ones(len(paths), dtype=bool)
    ends = [*starts[1:], paths.shape[1]]
    for start, end in zip(starts, ends, strict=True):
        since = np.full(len(paths), 1000)  # steps since the stay began; the first may be short
        for t in range(start + 1, end):
            changes = paths[:, t] != paths[:, t - 1]
            is_long &= ~changes | (since >= min_dwell)
            since = np.where(changes, 1, since + 1)
    return is_long


def check_paths(model, paths, logs, starts):
    """Compare paths of all least dwell times; returns in how many the path is another one."""
    free = model.viterbi()[1]
    n_others = 0
    for min_dwell in (2, 3, 4, 5, 7, 8, 30):
        is_long = have_long_stays(paths, starts, min_dwell)
        log_prob, path = model.viterbi(min_dwell)
        assert have_long_stays(path[None], starts, min_dwell).all()
        assert log_prob == pytest.approx(logs[is_long].max(), rel=1e-10)
        place = np.flatnonzero((paths == path).all(axis=1))[0]
        assert logs[place] == pytest.approx(log_prob, rel=1e-10)
        n_others += (path != free).any()
    assert log_prob <= model.viterbi()[0] + 1e-12
    np.testing.assert_array_equal(model.viterbi(1)[1], free)
    return n_others

"""Gaps that were filled before the fit, and columns that only look like them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.signal import lfilter, savgol_filter

from skihmm import HCRPHMM
from skihmm._data.filled import filled_stretches
from skihmm.emissions import ProductEmission

N, ONE = 1200, np.zeros(1, dtype=np.intp)
ROWS = np.arange(N)


def runs(rng):
    return np.cumsum(rng.random(N) < 1 / 30)


def two(rng):
    return runs(rng) % 2


def held(rng):
    return rng.normal(size=N)[runs(rng)]


def smooth(rng, width=40):
    window = np.exp(-0.5 * (np.arange(-3 * width, 3 * width + 1) / width) ** 2)
    noise = rng.normal(size=N + 6 * width)
    return np.convolve(noise, window, "valid") / np.linalg.norm(window)


CONTINUOUS = {
    "states": lambda rng: 3 * two(rng) + rng.normal(size=N),
    "steps": lambda rng: rng.gamma(2, np.where(two(rng), 200.0, 20.0)),
    "walk": lambda rng: np.cumsum(rng.normal(size=N)),
    "integrated": lambda rng: np.cumsum(two(rng) + 0.1 * rng.normal(size=N)),
    "autoregression": lambda rng: lfilter([1], [1, -0.95], rng.normal(size=N)),
    "smooth": smooth,
}
OTHERS = {
    "rounded": lambda rng: np.round(rng.normal(size=N), 1),
    "converted": lambda rng: np.round(np.round(20 + 5 * rng.normal(size=N)) * 1.8, 1),
    "logs of a rounded walk": lambda rng: np.log(
        40 + np.round(np.cumsum(rng.normal(size=N)) * 0.05, 1)
    ),
    "rounded smooth": lambda rng: np.sqrt(9 + np.round(smooth(rng), 2)),
    "upsampled 4": lambda rng: np.interp(ROWS / 4.4, ROWS, rng.normal(size=N)),
    "upsampled 10": lambda rng: np.interp(ROWS / 10, ROWS, rng.normal(size=N)),
    "upsampled walk": lambda rng: np.interp(ROWS / 7.7, ROWS, np.cumsum(rng.normal(size=N))),
    "held 10": lambda rng: rng.normal(size=N)[ROWS // 10],
    "integrated levels": lambda rng: np.cumsum(held(rng)),
    "integrated on and off": lambda rng: np.cumsum(0.37 * two(rng)),
    "meter": lambda rng: np.cumsum(two(rng) * rng.gamma(2, size=N)),
    "slope": lambda rng: 2 + 0.3 * ROWS,
    "slope and noise": lambda rng: 0.3 * ROWS + rng.normal(size=N),
    "sawtooth": lambda rng: 0.37 * (ROWS % 50),
    "ramps and noise": lambda rng: np.where(
        two(rng), rng.normal(size=N), np.cumsum(0.37 * (2 * two(rng) - 1))
    ),
    "levels": held,
    "few levels": lambda rng: np.array([1.1, 2.3, 3.7, 7.9, 11.0])[runs(rng) % 5],
    "levels and noise": lambda rng: held(rng) + 0.1 * rng.normal(size=N),
    "off": lambda rng: np.where(two(rng), 0.0, rng.gamma(2, size=N)),
    "clipped": lambda rng: np.clip(smooth(rng), -0.8, 0.8),
    "counts": lambda rng: rng.poisson(3, N).astype(float),
    "counts so far": lambda rng: np.cumsum(rng.poisson(1, N)).astype(float),
    "rates": lambda rng: rng.poisson(3, N) / rng.gamma(9, size=N)[ROWS // 100],
    "sine": lambda rng: 1e6 + np.sin(0.013 * ROWS),
    "decay": lambda rng: 20 + 80 * np.exp(-(ROWS % 300) / 9),
    "pulses": lambda rng: 20 + np.convolve(rng.random(N) < 0.01, np.exp(-np.arange(99) / 8))[:N],
    "moving mean": lambda rng: np.convolve(rng.normal(size=N + 19), np.ones(20), "valid"),
    "smoother": lambda rng: savgol_filter(rng.normal(size=N), 31, 1),
    "exponential mean": lambda rng: lfilter([0.2], [1, -0.8], two(rng).astype(float)),
    "policy rate": lambda rng: np.cumsum(0.25 * (rng.random(N) < 0.03)),
    "heavy tails": lambda rng: rng.standard_t(1, N),
}


@pytest.mark.parametrize("by", ["line", "last value"])
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_filled_gaps_are_found(kind, by, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    column, is_lost = CONTINUOUS[kind](rng), np.zeros(N, dtype=bool)
    assert filled_stretches(column, ONE) == []
    for first in range(100, 1100, 150):
        is_lost[first : first + int(rng.integers(8, 60))] = True
    if by == "line":
        column = np.interp(ROWS, ROWS[~is_lost], column[~is_lost])
    else:
        column = column[np.maximum.accumulate(np.where(is_lost, 0, ROWS))]
    is_found = np.zeros(N, dtype=bool)
    for first, last in filled_stretches(column, ONE):
        is_found[first : last + 1] = True
    # (With the rows at both ends.)
    assert (is_found & is_lost).sum() >= 0.8 * is_lost.sum()
    assert (is_found & ~is_lost).sum() <= 14


@pytest.mark.parametrize("kind", OTHERS)
def test_other_columns_were_not_filled(kind):
    for seed in range(10):
        column = np.asarray(OTHERS[kind](np.random.default_rng(seed)))
        assert filled_stretches(column, ONE) == [], seed
        single = column.astype(np.float32)
        precision = float(np.finfo(np.float32).eps)
        assert filled_stretches(single.astype(float), ONE, np.inf, precision) == []


def test_lines_end_with_sequences_and_missing_rows():
    column = np.random.default_rng(0).normal(size=100)
    column[20:41] = np.linspace(0, 1, 21)
    assert filled_stretches(column, ONE) == [(20, 40)]
    assert filled_stretches(column, np.array([0, 30])) == []  # of a smoother
    column[60:75] = column[59]
    assert filled_stretches(column, ONE) == [(20, 40), (59, 74)]
    column[66] = np.nan  # the value recurs
    assert filled_stretches(column, ONE) == [(20, 40)]
    column[30] = np.nan
    assert filled_stretches(column, ONE) == []
    # Few rows make no state.
    column = np.random.default_rng(0).normal(size=100)
    column[20:28] = np.linspace(0, 1, 8)
    assert filled_stretches(column, ONE) == []


def test_tracks_with_filled_gaps_are_warned_of():
    """Equal steps and turns of zero, columns of a product in another order."""
    rng = np.random.default_rng(0)
    heading = np.cumsum(rng.vonmises(0, 1.5, size=300))
    moves = rng.gamma(2, 20.0, size=300)[:, None] * np.c_[np.cos(heading), np.sin(heading)]
    at = np.cumsum(moves, axis=0)
    for first in 100, 200:
        at[first : first + 30] = np.linspace(at[first - 1], at[first + 30], 32)[1:-1]
    move = np.diff(at, axis=0)
    turn = np.diff(np.arctan2(move[:, 1], move[:, 0]), prepend=0.0)
    X = np.c_[(turn + np.pi) % (2 * np.pi) - np.pi, rng.poisson(3, 299), np.hypot(*move.T)]
    emission = ProductEmission(
        [("n", "poisson", [1]), ("step", "gamma", [2]), ("turn", "von_mises", [0])]
    )
    hmm = HCRPHMM(emission=emission, n_burnin=1, n_draws=1, random_state=0)
    with pytest.warns(UserWarning, match=r"straight lines.*: 2 in rows 99 to 1.*missing"):
        hmm.fit(X)
    X[100:129] = X[200:229] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hmm.fit(X)

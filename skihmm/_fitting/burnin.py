"""When a burn-in ends, and sweeps between draws, by the number of steps."""

from __future__ import annotations

import numpy as np

from skihmm._typing import Floats

# A burn-in is first checked when steps times sweeps reach CHEAP, and it ends after MOST
# sweeps.  So up to 10,000 steps it has MOST sweeps: there no earlier end is safe (29
# traces: stopping after 100 sweeps loses .02 of the adjusted Rand index on average and
# .15 at worst), and a sweep takes milliseconds.  On long data the start has found the
# states: held-out scores after 20 sweeps are those after 1,000 within .0005 nats a step.
MOST, LEAST, CHEAP = 500, 48, 5_000_000
# A level is the log joint probability, summed over seatings, and the number of states.
# (The log joint probability of one seating moves by thousands of nats with the
# concentrations, at the same labels.)  Levels are taken every so many sweeps.
LEVEL_EVERY = 4
# A chain that has not settled makes half as many sweeps again before the next check.
GROWTH = 1.5
# A chain has settled where the means of the last two thirds of its levels differ by at
# most one standard error, as if levels were independent, or by 1e-4 nats a step and .2
# states.  Levels are correlated, so the rule errs towards more sweeps.
MOST_ERRORS, LEAST_CHANGE, LEAST_STATES = 1.0, 1e-4, 0.2
# Sweeps per draw: MOST_THIN up to THIN_UP_TO steps, fewer on longer data.
MOST_THIN, THIN_UP_TO = 5, 10_000


def usual_thin(n_steps: int) -> int:
    """Sweeps per draw: five, on long data fewer at equal cost, at least one."""
    return int(np.clip(MOST_THIN * THIN_UP_TO // n_steps, 1, MOST_THIN))


def least_burnin(n_steps: int) -> int:
    """Number of sweeps before the first check, a multiple of ``LEVEL_EVERY``."""
    least = int(np.clip(CHEAP // n_steps, LEAST, MOST))
    return least // LEVEL_EVERY * LEVEL_EVERY


def has_settled(levels: Floats, n_steps: int) -> bool:
    """Whether a burn-in ends after these levels, (n_levels, 2), by sweep."""
    n_sweeps, check = len(levels) * LEVEL_EVERY, least_burnin(n_steps)
    if n_sweeps >= MOST:
        return True
    while check < n_sweeps:
        check = int(check * GROWTH) // LEVEL_EVERY * LEVEL_EVERY
    if check > n_sweeps:
        return False
    third = len(levels) // 3
    thirds = levels[-2 * third :].reshape(2, third, 2)
    errors = np.sqrt(thirds.var(axis=1, ddof=1).sum(axis=0) / third)
    changes = np.abs(np.diff(thirds.mean(axis=1), axis=0)[0])
    least = np.array([LEAST_CHANGE * n_steps, LEAST_STATES])
    return bool((changes <= np.maximum(MOST_ERRORS * errors, least)).all())


def end_of_burnin(levels: Floats, n_steps: int) -> int:
    """Sweeps of the burn-in with these levels; ``MOST`` where it has not ended."""
    if levels.ndim != 2 or levels.shape[1] != 2 or levels.dtype != np.float64:
        raise ValueError(
            f"the levels of its burn-in have shape {levels.shape} and type "
            f"{levels.dtype}; expected (n_levels, 2) and float64"
        )
    counts = range(1, len(levels) + 1)
    ended = (n for n in counts if has_settled(levels[:n], n_steps))
    return LEVEL_EVERY * next(ended, MOST // LEVEL_EVERY)

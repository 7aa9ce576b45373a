"""Order of the options of choices, by the evidence of one state."""

from __future__ import annotations

from functools import cache

import numpy as np

from skihmm._typing import Floats, Integers

# Further options are inserted one by one.
_MOST_BY_SUBSETS = 6
# Nats a row by which another order has to be better.
_LEAST_GAIN = 0.01
# Evenly spaced: six options take .1 CPU seconds with four inputs, .7 with sixty.
_MOST_ROWS = 2000
# Nats within which a mode is found, and orders tie; steps after which it is near enough.
_TOLERANCE, _MOST_STEPS = 1e-2, 100


def _log_evidence(x: Floats, is_one: Floats, mean: Floats, precision: Floats) -> float:
    """Log evidence of a logistic regression, by Laplace's method."""
    signed = np.where(is_one, 1.0, -1.0)[:, None] * x

    def log_joint(beta: Floats) -> float:
        distance = 0.5 * (precision * (beta - mean) ** 2).sum()
        return float(-np.logaddexp(0.0, -signed @ beta).sum() - distance)

    beta = mean
    for _ in range(_MOST_STEPS):
        left = 0.5 * (1.0 - np.tanh(0.5 * signed @ beta))
        slope = left @ signed - precision * (beta - mean)
        curvature = np.diag(precision) + (signed.T * (left * (1.0 - left))) @ signed
        step = np.linalg.solve(curvature, slope)
        # (True for NaN too.)
        if not slope @ step >= _TOLERANCE:
            break
        # The log joint probability is concave, but a whole step may be too long.
        while log_joint(beta + step) < log_joint(beta):
            step = 0.5 * step
        beta = beta + step
    log_det = np.log(precision).sum() - np.linalg.slogdet(curvature)[1]
    return log_joint(beta) + 0.5 * float(log_det + slope @ step)


def best_order(
    choices: Integers, inputs: Floats, mean: Floats, precision: Floats
) -> tuple[int, ...]:
    """Order of the options in which regressions, one after the other, fit best.

    The evidence of one state is the product of the evidences of the regressions "this option, if
    none before it", each for the rows with this option or a later one.  All orders of the six most
    frequent options are compared, subset by subset of the remaining options; further options are
    inserted where the evidence is largest.  The order is 0, 1, ... unless another order gains more
    than .01 nats a row.

    `choices` are options by number, -1 is missing; `inputs` are standardised; `mean` and
    `precision` are the prior of the coefficients and, last, of the intercept.
    """
    by_number = tuple(range(int(choices.max()) + 1))
    known = np.flatnonzero((choices >= 0) & ~np.isnan(inputs).any(axis=1))
    spaced = np.linspace(0, len(known) - 1, min(len(known), _MOST_ROWS))
    rows = known[spaced.astype(np.intp)]
    y, x = choices[rows], np.column_stack([inputs[rows], np.ones(len(rows))])

    @cache
    def term(first: int, others: frozenset[int]) -> float:
        is_left = np.isin(y, [first, *others])
        return _log_evidence(x[is_left], y[is_left] == first, mean, precision)

    def total(order: tuple[int, ...]) -> float:
        return sum(term(o, frozenset(order[i:])) for i, o in enumerate(order[:-1], 1))

    def best(orders: list[tuple[int, ...]]) -> tuple[int, ...]:
        found = orders[0]
        for order in orders[1:]:
            # (Which of the last two is first makes no difference.)
            found = order if total(order) > total(found) + _TOLERANCE else found
        return found

    @cache
    def of_subset(options: tuple[int, ...]) -> tuple[int, ...]:
        rests = [tuple(other for other in options if other != o) for o in options]
        starts = zip(options, rests, strict=True)
        return best([(o, *of_subset(rest)) for o, rest in starts] or [()])

    frequent = np.argsort(-np.bincount(y, None, len(by_number)), kind="stable").tolist()
    found = of_subset(tuple(sorted(frequent[:_MOST_BY_SUBSETS])))
    for o in frequent[_MOST_BY_SUBSETS:]:
        found = best([(*found[:i], o, *found[i:]) for i in range(len(found), -1, -1)])
    gain = total(found) - total(by_number)
    return found if gain > _LEAST_GAIN * len(rows) else by_number

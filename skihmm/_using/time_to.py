"""Time until a state is entered: first passage of the chain of states."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.sequences import Sequences
from skihmm._data.validation import as_array, check_integer
from skihmm._draws import Draw
from skihmm._typing import Array, Flags, Floats, Labels, VectorLike
from skihmm._using.decoding import frozen_model
from skihmm._using.stays import has_inputs
from skihmm.emissions import BaseEmission

# Steps of the distribution, unless inputs of staying are known for so many only.
_USUAL_HORIZON = 1000
# Probability beyond the horizon that does not matter for the mean.
_NEGLIGIBLE = 1e-9


class TimeTo:
    """Distribution of the number of steps until one of some states is entered.

    :meth:`skihmm.posterior.PosteriorPredictive.time_to` returns one.  The first coming
    step has the number 1, also if the chain is in a state of interest already and stays.
    A mixture of all draws with such a state, by their weights.

    Parameters
    ----------
    survival : ndarray of shape (horizon + 1,)
        Probability that none of the states is entered within 0, 1, ..., horizon steps.
    beyond : float
        Expected number of steps after the horizon.  NaN where unknown.
    share : float
        Weight of the draws that have such a state.

    Attributes
    ----------
    horizon : int
    share : float

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> X = np.repeat([[0.0], [9.0]] * 10, 20, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> hmm = HCRPHMM("blocked", "gaussian", n_burnin=50, random_state=0).fit(X)
    >>> ahead = hmm.predict_next(X).time_to(hmm.labels_[0])
    >>> ahead
    <TimeTo: mean 20.8 steps, 2 to 61 with probability 0.9>
    >>> ahead.quantile(0.5)
    15.0
    """

    def __init__(self, survival: Floats, beyond: float, share: float = 1.0) -> None:
        self._survival = survival
        self._beyond = beyond
        self.horizon = len(survival) - 1
        self.share = share

    def __repr__(self) -> str:
        low, high = self.interval(0.9)
        return (
            f"<TimeTo: mean {self.mean():.3g} steps, {low:.0f} to {high:.0f} with probability 0.9>"
        )

    def mean(self) -> float:
        """Expected number of steps.

        Returns
        -------
        mean : float
            With the steps after the horizon, which have no context.  NaN if staying
            depends on inputs, which are not known there, and the horizon may well come
            first.
        """
        return float(self._survival[:-1].sum() + self._beyond)

    def survival(self) -> Floats:
        """Probabilities that the chain enters no such state for 0, 1, ... steps.

        Returns
        -------
        survival : ndarray of shape (horizon + 1,)
            For 0, 1, ..., horizon steps, beginning with one.
        """
        return self._survival.copy()

    def quantile(self, q: ArrayLike) -> Array | float:
        """Quantiles of the number of steps.

        Parameters
        ----------
        q : float or array-like of float
            Probabilities between 0 and 1.

        Returns
        -------
        n_steps : float or ndarray of the shape of q
            The least number of steps within which the chain enters a state with
            probability `q` or more.  Infinity beyond the horizon.
        """
        levels = np.asarray(q, dtype=np.float64)
        if not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q={q!r}; expected probabilities between 0 and 1.")
        # Sums of many terms may be short of one by rounding.
        places = np.searchsorted(1 - self._survival, levels - 1e-12)
        found = np.where(places > self.horizon, np.inf, places)
        return float(found) if found.ndim == 0 else found

    def interval(self, level: float) -> tuple[float, float]:
        """Central interval of the number of steps.

        Parameters
        ----------
        level : float
            Its probability, between 0 and 1.

        Returns
        -------
        lower, upper : float
            Quantiles of ``(1 - level) / 2`` and ``(1 + level) / 2``.
        """
        lower, upper = (self.quantile(0.5 + side * level / 2) for side in (-1, 1))
        return float(lower), float(upper)


class WithEntryTimes:
    """Predictive distribution with the time until a state is entered."""

    n_steps: int
    _draws: Sequence[Draw]
    _weights: Floats
    _emission: BaseEmission
    _matching: Callable[[Labels | None], list[Labels]] | None
    # By draw, of all states and then a new state: probabilities at the coming steps.
    _state_probs: list[Floats]
    # No rows, with contexts and inputs of the coming steps.
    _nothing: Sequences

    def time_to(
        self,
        states: ArrayLike,
        *,
        horizon: int | None = None,
        labels: VectorLike | None = None,
    ) -> TimeTo:
        """Distribution of the number of steps until one of some states is entered.

        It belongs to the chain of states from the end of the sequence, averaged over the
        draws that have such a state.

        Parameters
        ----------
        states : int or list of int
            Labels of the estimator, ``labels_``; ``n_states_`` is any other state.
        horizon : int, default=None
            Number of steps of the distribution, of which `n_steps` have contexts and
            inputs; those after them have no context.  None: 1000, or if staying depends
            on inputs `n_steps`.
        labels : array-like of shape (n_samples,), optional
            Other labels of the training steps, from 0 on, whose `states` are meant, such
            as ``regimes_``.  Every state of a draw counts to the label with which it
            shares most steps.

        Returns
        -------
        time : TimeTo
            Its methods are ``mean``, ``quantile``, ``interval`` and ``survival``.

        Raises
        ------
        ValueError
            If there are no such states, or staying depends on inputs, which are not known
            up to the horizon.

        Notes
        -----
        One step means that the next state is one of these: also if the last one is, and
        stays.  States of the draws are matched as for ``predict_proba(draws="all")``.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.tile([[2], [5], [7]], (40, 1))
        >>> hmm = HCRPHMM(n_burnin=100, n_draws=20, random_state=0).fit(X)
        >>> hmm.predict_next(X).time_to(hmm.labels_[1]).quantile(0.5)
        2.0
        """
        if self._matching is None:
            raise ValueError(
                "The states of these draws are not matched to labels; expected the "
                "result of HCRPHMM.predict_next."
            )
        found = self._matching(None if labels is None else _checked_labels(labels))
        targets = _checked_targets(states, 1 + max(int(each.max()) for each in found))
        needs_inputs = has_inputs(self._draws[0])
        if horizon is None:
            horizon = self.n_steps if needs_inputs else _USUAL_HORIZON
        horizon = check_integer("horizon", horizon, 1)
        if needs_inputs and horizon > self.n_steps:
            raise ValueError(
                f"horizon={horizon}, but staying depends on inputs, which are known for "
                f"{self.n_steps} steps. Pass n_steps={horizon} and inputs= of so many "
                "steps to predict_next, or a smaller horizon."
            )
        are_targets = [np.isin(each, targets) for each in found]
        chosen = np.flatnonzero([which.any() for which in are_targets]).tolist()
        if not chosen:
            raise ValueError("No draw has a state that is matched to one of `states`.")
        total = self._weights[chosen].sum()
        survival, beyond = np.zeros(horizon + 1), 0.0
        for d in chosen:
            weight = self._weights[d] / total
            passed, left = self._first_passage(d, are_targets[d], horizon)
            survival += weight * passed
            beyond += weight * left
        if needs_inputs and survival[-1] <= _NEGLIGIBLE:
            beyond = 0.0
        return TimeTo(survival, beyond, float(total / self._weights.sum()))

    def _first_passage(self, d: int, is_target: Flags, horizon: int) -> tuple[Floats, float]:
        """Survival under a draw, and the expected number of steps after the horizon."""
        first, others = self._state_probs[d][0], ~is_target
        chain = _Chain(self._draws[d], self._nothing, self._emission)
        alive = (first / first.sum())[others]
        found = [1.0, alive.sum()]
        for i in range(1, horizon):
            alive = alive @ chain.between(i, others)
            found.append(alive.sum())
        if has_inputs(self._draws[d]):
            return np.array(found), np.nan
        onward = chain.between(self.n_steps, others)
        left = np.linalg.solve(np.eye(len(onward)) - onward, np.ones(len(onward)))
        return np.array(found), float(alive @ left)


def _checked_targets(states: ArrayLike, n_labels: int) -> Labels:
    """Labels to be entered, one or several of 0, 1, ..."""
    targets = np.atleast_1d(np.asarray(states))
    if (
        targets.ndim != 1
        or not len(targets)
        or targets.dtype.kind not in "iu"
        or not ((targets >= 0) & (targets < n_labels)).all()
    ):
        raise ValueError(
            f"states={states!r}; expected a label from 0 to {n_labels - 1}, or a list of such."
        )
    return targets


def _checked_labels(labels: VectorLike) -> Labels:
    """Check labels of the training steps."""
    values = as_array("labels", labels)
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.min(initial=0) < 0:
        raise ValueError(
            f"labels has shape {values.shape} and type {values.dtype}; expected "
            "non-negative integers, one per training step."
        )
    return values.astype(np.int32)


class _Chain:
    """Transitions of a draw between states, a new state last."""

    def __init__(self, draw: Draw, steps: Sequences, emission: BaseEmission) -> None:
        self._contexts = steps.contexts
        self._model = frozen_model(draw, steps, emission)
        self._usual: Floats | None = None

    def between(self, i: int, which: Flags) -> Floats:
        """Probabilities into coming step i between some states.

        Steps after the given contexts have no context.
        """
        if self._contexts is not None and i < len(self._contexts.codes):
            return self._matrix(i)[np.ix_(which, which)]
        if self._usual is None:
            self._usual = self._matrix(-1)[np.ix_(which, which)]
        return self._usual

    def _matrix(self, i: int) -> Floats:
        return self._model.transition_matrix(i)[1]

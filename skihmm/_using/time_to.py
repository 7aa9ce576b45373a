"""Time until a state is entered: first passage of the chain of states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

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


@dataclass(frozen=True)
class Passage:
    """First passage under a draw, among the states that are not to be entered.

    Attributes
    ----------
    weight : float
        Of the draw; weights sum to 1.
    alive : ndarray of shape (n,)
        Probabilities of these states at the first coming step.
    known : list of ndarray of shape (n, n)
        Transitions between them into the steps after it that have contexts, or inputs.
    usual : ndarray of shape (n, n) or None
        Transitions into all later steps; None where inputs of staying are not known.
    exits : ndarray of shape (n,)
        Probabilities to leave them in a later step.
    """

    weight: float
    alive: Floats
    known: list[Floats]
    usual: Floats | None
    exits: Floats

    def walk(self, n_steps: int) -> Iterator[Floats]:
        """Probabilities of these states at the first steps."""
        alive = self.alive
        for i in range(n_steps):
            if i:
                matrix = self.known[i - 1] if i <= len(self.known) else self.usual
                assert matrix is not None
                alive = alive @ matrix
            yield alive

    def mean(self, horizon: int) -> float:
        """Expected number of steps; NaN where it is not known beyond the horizon."""
        n_known = min(len(self.known) + 1, horizon)
        total, alive = 1.0, self.alive
        for alive in self.walk(n_known):
            total += alive.sum()
        total -= alive.sum()  # those of the last of these steps are among `left`
        if self.usual is None:
            return total if alive.sum() <= _NEGLIGIBLE else np.nan
        left = expected_steps(self.usual, self.exits)
        return float(total + alive[alive > 0] @ left[alive > 0])


def expected_steps(within: Floats, exits: Floats) -> Floats:
    """Expected number of steps until some states are left, from each; infinity if never.

    Parameters
    ----------
    within : ndarray of shape (n, n)
        Transition probabilities between the states.
    exits : ndarray of shape (n,)
        Probabilities to leave them.

    Notes
    -----
    Elimination without subtraction (Grassmann, Taksar and Heyman, 1985): exact to the
    last digits for exits of any size, where 1 minus a row's sum has lost them.
    """
    flows, out = np.array(within, dtype=np.float64), np.array(exits, dtype=np.float64)
    n = len(out)
    steps, totals = np.ones(n), np.zeros(n)
    for k in range(n - 1, -1, -1):
        totals[k] = total = out[k] + flows[k, :k].sum()
        into = np.flatnonzero(flows[:k, k] > 0)
        if total == 0 or np.isinf(steps[k]):
            steps[k] = np.inf
            steps[into] = np.inf
            continue
        shares = flows[into, k] / total
        flows[into, :k] += shares[:, None] * flows[k, :k]
        out[into] += shares * out[k]
        steps[into] += shares * steps[k]
    for k in range(n):
        before = np.flatnonzero(flows[k, :k] > 0)
        steps[k] += flows[k, before] @ steps[before]
        if totals[k] > 0:
            steps[k] /= totals[k]
    return steps


class TimeTo:
    """Distribution of the number of steps until one of some states is entered.

    The first coming step has the number 1, also if the chain is in a state of interest
    already and stays.  The distribution is a mixture of all draws with a state of interest,
    by the weights of the draws.

    Parameters
    ----------
    passages : list of Passage
        First passages under the draws.
    horizon : int
        Number of steps of the distribution.
    share : float
        Weight of the draws with a state of interest.

    Attributes
    ----------
    horizon : int
    share : float

    See Also
    --------
    PosteriorPredictive.time_to : Returns the distribution.
    skihmm.inspection.DwellTimeDisplay : Draw how long states last.

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

    def __init__(self, passages: list[Passage], horizon: int, share: float = 1.0) -> None:
        self._passages = passages
        self.horizon = horizon
        self.share = share

    @cached_property
    def _survival(self) -> Floats:
        """Survival, which the mean does not need."""
        survival = np.zeros(self.horizon + 1)
        survival[0] = 1.0
        for passage in self._passages:
            for i, alive in enumerate(passage.walk(self.horizon), 1):
                survival[i] += passage.weight * alive.sum()
        return survival

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
            Steps after the horizon count too, without a context.  NaN if staying depends on
            inputs and the horizon may well come first, because inputs after the horizon are
            unknown.  Infinity if the chain may never enter a state of interest.
        """
        return float(sum(each.weight * each.mean(self.horizon) for each in self._passages))

    def survival(self) -> Floats:
        """Probabilities that the chain enters no state of interest for 0, 1, ... steps.

        Returns
        -------
        survival : ndarray of shape (horizon + 1,)
            For 0, 1, ..., horizon steps.  The first probability is 1.
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
            Probability of the interval, between 0 and 1.

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

        The chain of states starts at the end of the sequence.  The distribution is an
        average over all draws with a state of interest.

        Parameters
        ----------
        states : int or list of int
            Labels of the estimator, ``labels_``; ``n_states_`` is any other state.
        horizon : int, default=None
            Number of steps of the distribution.  The first `n_steps` have contexts and
            inputs, and later steps have no context.  None: 1000, or `n_steps` if staying
            depends on inputs.
        labels : array-like of shape (n_samples,), optional
            Labels of the training steps, from 0 on, that `states` refers to instead of
            ``labels_``: for example ``regimes_``.  Every state of a draw gets the label
            with the most common steps.

        Returns
        -------
        time : TimeTo
            Has the methods ``mean``, ``quantile``, ``interval`` and ``survival``.

        Raises
        ------
        ValueError
            If no state has the label, or if staying depends on inputs and the inputs up to
            the horizon are unknown.

        Notes
        -----
        One step means that the next state is a state of interest, also if the last state is
        a state of interest and stays.  States of the draws are matched as by
        ``predict_proba(draws="all")``.

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
        passages = [
            self._first_passage(d, are_targets[d], horizon, float(self._weights[d] / total))
            for d in chosen
        ]
        return TimeTo(passages, horizon, float(total / self._weights.sum()))

    def _first_passage(self, d: int, is_target: Flags, horizon: int, weight: float) -> Passage:
        """First passage into states of a draw."""
        first, others, draw = self._state_probs[d][0], ~is_target, self._draws[d]
        model = frozen_model(draw, self._nothing, self._emission)
        needs_inputs, contexts = has_inputs(draw), self._nothing.contexts
        n_known = 0
        if contexts is not None:
            n_known = min(horizon, len(contexts.codes))
        between = np.ix_(others, others)
        known = [model.transition_matrix(i)[1][between] for i in range(1, n_known)]
        usual = model.transition_matrix(-1)[1]
        return Passage(
            weight,
            (first / first.sum())[others],
            known,
            None if needs_inputs else usual[between],
            usual[np.ix_(others, is_target)].sum(axis=1),
        )


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

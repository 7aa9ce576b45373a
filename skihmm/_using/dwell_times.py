"""How long states last: the law of dwell times under a draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skihmm._draws import Draw
from skihmm._records import hyperparameters_of
from skihmm._typing import Floats, Integers
from skihmm._using.stays import has_inputs
from skihmm.core._franchise import changes_of, leaves_of, stay_counts_of, stays_of
from skihmm.core._random import RandomStream


@dataclass(frozen=True)
class DwellLaw:
    """Law of the dwell times of states: for how many steps a path stays in a state.

    At every step a run of a state ends with probability `leave`; then another state
    follows with probability `change`, otherwise a new run of the same state.

    Attributes
    ----------
    leave : ndarray of shape (n_states,)
        One if states have no probability of their own to stay.
        With inputs of staying, its mean over the steps after the state.
    change : ndarray of shape (n_states,)
    """

    leave: Floats
    change: Floats

    @classmethod
    def of_draw(cls, draw: Draw) -> DwellLaw:
        """Law under the posterior means of the probabilities of a draw."""
        if has_inputs(draw):
            repeats = stays_of(draw.arrays, _mean_inputs(draw))[1]
            return cls(_mean_leaves(draw), 1 - repeats)
        leave = leaves_of(draw.arrays)
        return cls(leave, changes_of(draw.arrays) / leave)

    @classmethod
    def drawn(cls, draw: Draw, generator: np.random.Generator) -> DwellLaw:
        """Law under probabilities that are drawn given the seating of a draw."""
        record, n_states = draw.transitions, draw.n_states
        rows, dishes = record["rows"], record["dishes"]
        leave = _drawn_leaves(draw, generator)
        hyperparameters = hyperparameters_of(record)
        alpha, gamma = hyperparameters["alpha"], hyperparameters["gamma"]
        tables = np.bincount(dishes, record["n_tables"], n_states)
        other = generator.beta(tables.sum() - tables + gamma, tables)
        if record.get("contexts", {}).get("n_before"):
            # Without a context all states have the overall distribution.
            return cls(leave, other)
        is_own = rows == dishes
        own = np.bincount(dishes[is_own], record["n_customers"][is_own], n_states)
        rest = np.bincount(rows, record["n_customers"], n_states)[:n_states] - own
        tiny = np.finfo(float).tiny
        change = generator.beta(rest + alpha * other + tiny, own + alpha * (1 - other) + tiny)
        return cls(leave, change)

    @property
    def mean(self) -> Floats:
        """Mean dwell time of every state, in steps; infinite if it is never left."""
        # Drawn probabilities may be zero, or so small that the inverse overflows.
        with np.errstate(divide="ignore", over="ignore"):
            return 1 / (self.leave * self.change)

    def survival(self, lengths: Integers) -> Floats:
        """Probability that a stay lasts for at least so many steps.

        `lengths` are 1 or more, increasing; the result has a row for every state.
        """
        stay = 1 - self.leave * self.change
        return np.asarray(stay[:, None] ** (lengths - 1))


def _mean_inputs(draw: Draw) -> Floats:
    return np.zeros((1, len(draw.transitions["stay_scale"])))


def _mean_leaves(draw: Draw) -> Floats:
    """With inputs: mean probabilities with which runs end, over the steps of the states."""
    # A state that no step follows has no mean.
    typical = 1 - stays_of(draw.arrays, _mean_inputs(draw))[0][0]
    leaves = draw.transitions["leaves"]
    return np.where(leaves > 0, leaves, typical)


def _drawn_leaves(draw: Draw, generator: np.random.Generator) -> Floats:
    """Draw the probabilities with which runs end.

    With inputs, draw their means over the steps, about as certain as the steps are many.
    """
    if not has_inputs(draw):
        return leaves_of(draw.arrays, RandomStream(generator.bit_generator))
    share = np.clip(_mean_leaves(draw), 1e-300, 1 - 1e-16)
    stays, leaves = stay_counts_of(draw.arrays)
    n_steps = stays + leaves + 1.0
    return generator.beta(share * n_steps, (1 - share) * n_steps)

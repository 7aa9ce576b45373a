"""Two-level Chinese restaurant seating: the transitions' prior."""

import numpy as np

from skihmm.core._record cimport (
    MOST_CUSTOMERS,
    concentration_of,
    entry_of,
    integer_of,
    record_from_arrays,
    record_to_arrays,
)

# Names of the numbers of HCRPTransitions::hyperparameters, in records, draws and recipes.
HYPERPARAMETERS = ("alpha", "gamma")


cdef class Franchise:
    """Seating of the transitions over slots (see ``_franchise.pxd``).

    Parameters
    ----------
    alpha, gamma : float
        Lower and top concentration, from 1e-50 to 1e50.
    prior : (float, float) or None
        Shape and rate of the Gamma prior of both; None keeps them fixed.
    """

    def __init__(self, alpha=1.0, gamma=1.0, prior=None):
        self.seating = new Seating()
        self.shared.reset(self.seating)
        self.seating.set_hyperparameters(
            [concentration_of(alpha, "alpha"), concentration_of(gamma, "gamma")])
        if prior is not None:
            self.seating.set_prior(prior[0], prior[1])

    @property
    def hyperparameters(self):
        """Current hyperparameters by name."""
        return dict(zip(HYPERPARAMETERS, self.seating.hyperparameters(), strict=True))


cdef dict transitions_to_arrays(const TransitionsRecord &record):
    return {**record_to_arrays(record.seating),
            **dict(zip(HYPERPARAMETERS, record.hyperparameters, strict=True))}


cdef int transitions_from_arrays(object arrays, TransitionsRecord *out) except -1:
    out.n_states = <int32_t> integer_of(
        entry_of(arrays, "n_states", "the record"), "n_states", 1, MOST_CUSTOMERS)
    transitions = entry_of(arrays, "transitions", "the record")
    out.hyperparameters = [
        concentration_of(entry_of(transitions, name, "transitions"), f"transitions: {name}")
        for name in HYPERPARAMETERS]
    record_from_arrays(transitions, "transitions", out.n_states + 1, out.n_states, True,
                       &out.seating)
    out.check()
    return 0


cdef Franchise frozen_transitions(object arrays):
    cdef TransitionsRecord record
    cdef Franchise transitions = Franchise()
    transitions_from_arrays(arrays, &record)
    transitions.seating.load(record, FIRST + record.n_states)
    return transitions


def hyperparameters_of(record):
    """Hyperparameters in the record of transitions, by name."""
    return {name: record[name] for name in HYPERPARAMETERS}


def occupancies_of(record):
    """Number of steps in every state, from the record of transitions."""
    # Every step is a customer of the dish that is its state.
    return np.bincount(record["dishes"], weights=record["n_customers"])

"""Two-level Chinese restaurant seating: the transitions' prior."""

import numpy as np

from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport (
    Archive,
    archive_of,
    array_of,
    concentration_of,
    from_record,
    integers_of,
)
from skihmm.core._slots cimport FIRST, NEW, START

# exp of it, times whole numbers of steps, has to fit in single precision.
MOST_PENALTY = 50.0  # type: float


cdef class Franchise:
    """Seating of the transitions over slots (see ``_franchise.pxd``).

    Parameters
    ----------
    alpha, gamma : float
        Lower and top concentration, from 1e-50 to 1e50.
    prior : (float, float) or None
        Shape and rate of the Gamma prior of both; None keeps them fixed.
    stays : dict or None
        Options of the prior of staying in a state, see ``_stay_prior.hpp``: ``stay_prior``, a pair
        that is kept fixed, or ``expected_stay``, the steps, more than 1, for which a state is
        expected to last: the pair is then sampled.  None: no coins.
    contexts : StepContexts, optional
        Contexts of the steps: an object with attributes ``n_before``, the number of columns
        above the states in the tree of restaurants, ``parents``, for every number n of
        columns from 1 on the number of the prefix of n - 1 columns of every prefix of n
        columns, and by step ``depths``, that of the leaf, and ``prefixes``, the number of
        the prefix to which it belongs.
    context_alpha : sequence of float
        With `contexts`: concentration of every column.
    switch_penalty : float
        With coins: nats per draw after a state, from 0 to MOST_PENALTY.
    inputs : ndarray of shape (n_steps, n_inputs), optional
        Numbers of every step, standardised, on which the coin of the step before depends, with an
        ``expected_stay`` in `stays`.
    """

    def __init__(self, alpha: float = 1.0, gamma: float = 1.0,
                 prior: tuple[float, float] | None = None,
                 stays: Mapping[str, Any] | None = None,
                 contexts: StepContexts | None = None, context_alpha: Sequence[float] = (),
                 switch_penalty: float = 0.0, inputs: Floats | None = None):
        cdef ContextShape shape
        cdef vector[ContextPlace] places
        cdef vector[float64_t] values
        self.native = new Transitions()
        self.shared.reset(self.native)
        values = [concentration_of(alpha, "alpha"), concentration_of(gamma, "gamma")]
        if contexts is not None:
            shape_of(contexts.n_before, contexts.parents, &shape)
            self.native.set_contexts(shape)
            places_of(contexts.depths, contexts.prefixes, shape, &places)
            self.native.set_places(places)
            if len(context_alpha) != shape.n_columns():
                raise ValueError(
                    f"{len(context_alpha)} concentrations for {shape.n_columns()} columns of "
                    "contexts")
            for value in context_alpha:
                values.push_back(concentration_of(value, "context_alpha"))
        self.native.set_hyperparameters(values)
        if prior is not None:
            self.native.set_prior(prior[0], prior[1])
        if stays:
            options = {
                name: np.asarray(value, dtype=np.float64) if np.ndim(value) else value
                for name, value in stays.items()
            }
            self.native.set_stays(archive_of(options, "stays"))
        if inputs is not None:
            if "expected_stay" not in (stays or {}):
                raise ValueError(f"inputs with stays={stays!r}; expected an expected_stay.")
            self.native.set_inputs(inputs.shape[1])
            set_input_rows(self.native, inputs)
        self.native.set_switch_penalty(switch_penalty)

    @property
    def hyperparameters(self) -> NamedValues:
        """Current hyperparameters by name."""
        cdef Archive archive
        self.native.write_hyperparameters(archive)
        return from_record(archive.record())

    @property
    def n_contexts(self) -> int:
        """Number of columns of contexts."""
        return self.native.shape().n_columns()

    @property
    def has_contexts(self) -> bool:
        """Whether transitions depend on contexts."""
        return self.native.has_contexts()

    @property
    def has_coins(self) -> bool:
        """Whether states have a probability of their own to stay."""
        return self.native.coins().exist()

    @property
    def has_inputs(self) -> bool:
        """Whether these depend on inputs."""
        return self.native.has_inputs()


cdef int shape_of(n_before, parents, ContextShape *out) except -1:
    out.visit(archive_of({"n_before": n_before, "parents": parents}, "contexts"))
    return 0


cdef int places_of(depths, prefixes, const ContextShape &shape,
                   vector[ContextPlace] *out) except -1:
    cdef vector[int32_t] depth, prefix
    integers_of(depths, "contexts: depths", &depth)
    integers_of(prefixes, "contexts: prefixes", &prefix)
    out[0] = shape.places(depth, prefix)
    return 0


cdef int set_input_rows(Transitions *native, inputs) except -1:
    cdef vector[float64_t] rows
    archive_of(np.asarray(inputs, dtype=np.float64), "inputs").array(&rows, [-1, -1], NULL)
    native.set_input_rows(rows)
    return 0


cdef dict transitions_to_arrays(TransitionsRecord &transitions):
    cdef Archive archive
    transitions.visit(archive)
    return from_record(archive.record())


cdef int transitions_from_arrays(object arrays, TransitionsRecord *out) except -1:
    if isinstance(arrays, dict):
        # The rest is large, or of the emission.
        names = ("n_states", "transitions", "stayed", "stay_weights")
        arrays = {name: arrays[name] for name in names if name in arrays}
    out.visit(archive_of(arrays, ""))
    return 0


cdef Franchise frozen_transitions(object arrays, object contexts=None):
    cdef TransitionsRecord record
    cdef vector[ContextPlace] places
    cdef Franchise transitions = Franchise()
    transitions_from_arrays(arrays, &record)
    # Weights of the steps of a chain: with these its coins would have no probabilities.
    record.coins.weights.clear()
    if record.contexts.exists():
        transitions.native.set_contexts(record.contexts)
        if contexts is not None:
            places_of(contexts.depths, contexts.prefixes, record.contexts, &places)
            transitions.native.set_places(places)
    transitions.native.load(record, FIRST + record.n_states)
    if record.coins.n_inputs() and contexts is not None:
        set_input_rows(transitions.native, contexts.inputs)
    return transitions


def changes_of(arrays: ModelRecord) -> Floats:
    """Return the probabilities that the next step leaves each state, from the arrays of a draw.

    With contexts, for a step without a context; with inputs, for a step with the mean inputs.
    """
    cdef Franchise transitions = frozen_transitions(arrays)
    cdef int32_t j, k, n = transitions.native.n_slots()
    cdef vector[float64_t] row
    cdef float64_t[::1] out = np.zeros(n - FIRST)
    row.resize(n)
    for j in range(FIRST, n):
        transitions.native.fill_row(-1, j, row.data())
        # (One minus the rest would cancel where a state lasts.)
        for k in range(n):
            if k != j and k != START:
                out[j - FIRST] += row[k]
    return np.asarray(out)


def leaves_of(arrays: ModelRecord, RandomStream stream=None) -> Floats:
    """Probabilities that the next step leaves a state, from the arrays of a draw.

    Parameters
    ----------
    arrays : dict
        Without inputs of staying.
    stream : RandomStream, optional
        Draw the probabilities; by default these are their means.

    Returns
    -------
    leaves : ndarray of shape (n_states,)
        One if states have no probability of their own to stay.
    """
    cdef Franchise transitions = frozen_transitions(arrays)
    cdef int32_t k, n = transitions.native.n_slots()
    cdef float64_t stay
    cdef float64_t[::1] leaves = np.ones(n - FIRST)
    for k in range(FIRST, n if transitions.has_coins else FIRST):
        if stream is None:
            transitions.native.look(-1, k, &stay, &leaves[k - FIRST])
        else:
            leaves[k - FIRST] = transitions.native.draw_coin(k, False, stream.bits)
    return np.asarray(leaves)


def draw_stays(arrays: ModelRecord, RandomStream stream) -> Floats:
    """Draw the probabilities that the next step stays in a state or, last, in a new state.

    They are zero if states have no probability of their own to stay; `arrays` have no inputs.
    """
    cdef Franchise transitions = frozen_transitions(arrays)
    cdef int32_t k, n = transitions.native.n_slots()
    stays = np.zeros(n - FIRST + 1)
    if transitions.has_coins:
        stays[:] = [
            transitions.native.draw_coin(k, True, stream.bits) for k in [*range(FIRST, n), NEW]]
    return stays


def stay_counts_of(arrays: ModelRecord) -> tuple[Labels, Labels]:
    """Numbers of stays in, and of leaves of, every state, in a draw with coins."""
    cdef Franchise transitions = frozen_transitions(arrays)
    stays = array_of(transitions.native.coins().stays())
    leaves = array_of(transitions.native.draws())
    return stays[FIRST:], leaves[FIRST:]


def stays_of(arrays: ModelRecord, inputs: Floats) -> tuple[Floats, Floats]:
    """Probabilities to stay, in the arrays of a draw whose coins depend on inputs.

    Parameters
    ----------
    arrays : dict
    inputs : ndarray of shape (n_rows, n_inputs)
        Standardised.

    Returns
    -------
    stays : ndarray of shape (n_rows, n_states)
        The probabilities of the coins.
    repeats : ndarray of shape (n_states,)
        Probability that a state which is left without a context is drawn again.
    """
    cdef Franchise transitions = frozen_transitions(arrays)
    cdef int32_t k, n = transitions.native.n_slots()
    cdef int64_t t, n_rows = len(inputs)
    cdef float64_t leave
    cdef float64_t[:, ::1] stays = np.empty((n_rows, n - FIRST))
    cdef float64_t[::1] repeats = np.empty(n - FIRST)
    cdef vector[float64_t] row
    row.resize(n)
    set_input_rows(transitions.native, inputs)
    for k in range(FIRST, n):
        for t in range(n_rows):
            transitions.native.look(t, k, &stays[t, k - FIRST], &leave)
        transitions.native.fill_draws(-1, k, row.data())
        repeats[k - FIRST] = row[k]
    return np.asarray(stays), np.asarray(repeats)

"""Two-level Chinese restaurant seating: the transitions' prior."""

import numpy as np

from skihmm.core._record cimport (
    MOST_CUSTOMERS,
    SeatingRecord,
    array_of,
    concentration_of,
    entry_of,
    integer_of,
    integers_of,
    record_from_arrays,
    record_to_arrays,
)

# Names of the numbers of HCRPTransitions::hyperparameters, in records, draws and recipes; with
# coins the last two, kappa and omega, are the pair STAY_PRIOR.
HYPERPARAMETERS = ("alpha", "gamma")
STAY_PRIOR = "stay_prior"
# With inputs of staying, in their place: mean and precision of the coins' intercepts, and by input
# the standard deviation of coefficients, of which a common factor is kept too.
STAY_MEAN, STAY_PRECISION = "stay_mean", "stay_precision"
STAY_SCALE, STAY_SHRINKAGE = "stay_scale", "stay_shrinkage"
# The last ones, with contexts: concentrations of the columns.
CONTEXT_ALPHA = "context_alpha"

# A stage is stored in a byte.
MOST_STAGES = 255
# exp of it, times whole numbers of steps, has to fit in single precision.
MOST_PENALTY = 50.0


cdef class Franchise:
    """Seating of the transitions over slots (see ``_franchise.pxd``).

    Parameters
    ----------
    alpha, gamma : float
        Lower and top concentration, from 1e-50 to 1e50.
    prior : (float, float) or None
        Shape and rate of the Gamma prior of both; None keeps them fixed.
    stay_prior : (float, float) or None
        kappa and omega of the Beta prior of staying in a state, kept fixed.  None: no coins,
        unless there is a `dwell`.
    dwell : float or None
        Without `stay_prior`: dwell time, above `n_stages`, around which kappa and omega are
        sampled.
    n_stages : int
        Stages of every state, 1 unless there are coins.
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
        Numbers of every step, standardised, on which the coin of the step before depends, with a
        `dwell` and without a `stay_prior`.
    """

    def __init__(self, alpha=1.0, gamma=1.0, prior=None, stay_prior=None, dwell=None,
                 n_stages=1, contexts=None, context_alpha=(), switch_penalty=0.0, inputs=None):
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
        self.native.set_stages(n_stages)
        if prior is not None:
            self.native.set_prior(prior[0], prior[1])
        if stay_prior is not None:
            kappa, omega = stay_prior
            self.native.set_stay_prior(concentration_of(kappa, "kappa"),
                                       concentration_of(omega, "omega"))
        elif inputs is not None:
            self.native.set_inputs(inputs.shape[1], dwell)
            set_input_rows(self.native, inputs)
        elif dwell is not None:
            self.native.set_dwell(dwell)
        self.native.set_switch_penalty(switch_penalty)

    @property
    def hyperparameters(self):
        """Current hyperparameters by name."""
        return name_hyperparameters(self.native.hyperparameters(), self.n_contexts,
                                    self.native.has_inputs())

    @property
    def n_contexts(self):
        """Number of columns of contexts."""
        return self.native.shape().n_columns()

    @property
    def has_contexts(self):
        """Whether transitions depend on contexts."""
        return self.native.has_contexts()

    @property
    def has_coins(self):
        """Whether states have a probability of their own to stay."""
        return self.native.coins().exist()

    @property
    def has_inputs(self):
        """Whether these depend on inputs."""
        return self.native.has_inputs()

    @property
    def n_stages(self):
        """Number of stages of every state."""
        return self.native.coins().n_stages


cdef int shape_of(n_before, parents, ContextShape *out) except -1:
    cdef vector[int32_t] numbers
    out.n_before = <int32_t> integer_of(n_before, "contexts: n_before", 0, 1)
    for column in parents:
        integers_of(column, "contexts: parents", &numbers)
        out.parents.push_back(numbers)
    if not out.parents.size():
        raise ValueError("contexts: there is no column")
    out.check(b"contexts")
    return 0


cdef int places_of(depths, prefixes, const ContextShape &shape,
                   vector[ContextPlace] *out) except -1:
    cdef vector[int32_t] depth, prefix
    cdef ContextPlace place
    cdef int32_t least = 0 if shape.n_before else 1
    cdef int64_t n
    cdef size_t t
    integers_of(depths, "contexts: depths", &depth)
    integers_of(prefixes, "contexts: prefixes", &prefix)
    if depth.size() != prefix.size():
        raise ValueError(f"contexts: {depth.size()} depths and {prefix.size()} prefixes")
    for t in range(depth.size()):
        place.depth = <int32_t> integer_of(depth[t], "contexts: a depth", least, shape.depth())
        n = shape.n_rows(place.depth, 1) if place.depth else 1
        place.prefix = <int32_t> integer_of(prefix[t], "contexts: a prefix", 0, n - 1)
        out.push_back(place)
    return 0


cdef int set_input_rows(Transitions *native, inputs) except -1:
    cdef vector[float64_t] rows
    cdef const float64_t[:, ::1] view = np.ascontiguousarray(inputs, dtype=np.float64)
    cdef size_t t, i
    rows.reserve(view.shape[0] * view.shape[1])
    for t in range(<size_t> view.shape[0]):
        for i in range(<size_t> view.shape[1]):
            rows.push_back(view[t, i])
    native.set_input_rows(rows)
    return 0


cdef dict name_hyperparameters(const vector[float64_t] &values, size_t n_contexts, bint has_inputs):
    names = dict(zip(HYPERPARAMETERS, values))
    if has_inputs:
        names[STAY_MEAN], names[STAY_PRECISION], names[STAY_SHRINKAGE] = values[2:5]
        names[STAY_SCALE] = np.array(list(values)[5:values.size() - n_contexts])
    elif values.size() > 2 + n_contexts:
        names[STAY_PRIOR] = np.array([values[2], values[3]])
    if n_contexts:
        names[CONTEXT_ALPHA] = np.array(list(values)[-<intp_t> n_contexts:])
    return names


cdef dict transitions_to_arrays(const TransitionsRecord &record):
    cdef size_t i
    arrays = {**record_to_arrays(record.levels[0]),
              **name_hyperparameters(record.hyperparameters, record.contexts.parents.size(),
                                     record.n_inputs > 0)}
    if record.contexts.exists():
        arrays["levels"] = [record_to_arrays(record.levels[i])
                            for i in range(1, record.levels.size())]
        arrays["contexts"] = {
            "n_before": record.contexts.n_before,
            "parents": [array_of(record.contexts.parents[i])
                        for i in range(record.contexts.parents.size())],
        }
    if record.stays.size():
        arrays["stays"] = array_of(record.stays)
    if record.draws.size():
        arrays["draws"] = array_of(record.draws)
    if record.n_inputs:
        arrays["coins"] = numbers_to_array(record.coins).reshape(record.n_states, -1)
        arrays["leaves"] = numbers_to_array(record.leaves)
        arrays["log_ways"] = record.log_ways
    if record.n_stages > 1:
        arrays["advances"] = array_of(record.advances)
        arrays["n_stages"] = record.n_stages
    return arrays


cdef object bytes_to_array(const vector[uint8_t] &values):
    cdef size_t t
    out = np.empty(values.size(), dtype=np.uint8)
    cdef uint8_t[::1] view = out
    for t in range(values.size()):
        view[t] = values[t]
    return out


cdef object numbers_to_array(const vector[float64_t] &values):
    cdef size_t i
    out = np.empty(values.size())
    cdef float64_t[::1] view = out
    for i in range(values.size()):
        view[i] = values[i]
    return out


cdef int numbers_from_array(object values, name, shape, vector[float64_t] *out) except -1:
    if (not isinstance(values, np.ndarray) or values.dtype != np.float64
            or len(values.shape) != len(shape)
            or any(n not in (m, -1) for n, m in zip(shape, values.shape))
            or not np.isfinite(values).all()):
        raise ValueError(
            f"transitions: {name} is {values!r:.100}; expected finite float64 of shape {shape}")
    for value in values.ravel():
        out.push_back(value)
    return 0


cdef dict steps_to_arrays(const TransitionsRecord &record):
    arrays = {}
    if record.weights.size():
        arrays["stay_weights"] = numbers_to_array(record.weights)
    if record.stayed.size():
        arrays["stayed"] = bytes_to_array(record.stayed)
    if record.stages.size():
        arrays["stages"] = bytes_to_array(record.stages)
    return arrays


cdef int bytes_from_array(object values, name, int32_t most, vector[uint8_t] *out) except -1:
    cdef vector[int32_t] wide
    integers_of(values, name, &wide)
    for n in wide:
        out.push_back(<uint8_t> integer_of(n, f"an entry of {name}", 0, most))
    return 0


cdef int counts_from_array(object transitions, name, int32_t n_entries,
                           vector[int32_t] *out) except -1:
    integers_of(entry_of(transitions, name, "transitions"), name, out)
    if <int32_t> out.size() != n_entries:
        raise ValueError(f"transitions: {name} has {out.size()} entries; expected {n_entries}")
    for n in out[0]:
        integer_of(n, f"an entry of {name}", 0, MOST_CUSTOMERS)
    return 0


cdef int input_coins_from_arrays(object arrays, object transitions,
                                 TransitionsRecord *out) except -1:
    mean = entry_of(transitions, STAY_MEAN, "transitions")
    if not isinstance(mean, float) or not np.isfinite(mean):
        raise ValueError(f"transitions: {STAY_MEAN} is {mean!r:.100}; expected a finite number")
    out.hyperparameters.push_back(mean)
    for name in (STAY_PRECISION, STAY_SHRINKAGE):
        out.hyperparameters.push_back(
            concentration_of(entry_of(transitions, name, "transitions"), f"transitions: {name}"))
    scale = entry_of(transitions, STAY_SCALE, "transitions")
    numbers_from_array(scale, STAY_SCALE, (-1,), &out.hyperparameters)
    if not (scale > 0).all() or not len(scale):
        raise ValueError(f"transitions: {STAY_SCALE} is {scale!r:.100}; expected positive numbers")
    width = len(scale) + 1
    out.n_inputs = <int32_t> len(scale)
    numbers_from_array(entry_of(transitions, "coins", "transitions"), "coins",
                       (out.n_states, width + width * (width + 1) // 2), &out.coins)
    log_ways = entry_of(transitions, "log_ways", "transitions")
    if not isinstance(log_ways, float) or not -np.inf < log_ways <= 0:
        raise ValueError(
            f"transitions: log_ways is {log_ways!r:.100}; expected a finite number up to 0")
    out.log_ways = log_ways
    if "stay_weights" in arrays:
        numbers_from_array(arrays["stay_weights"], "stay_weights", (-1,), &out.weights)
        if not (arrays["stay_weights"] > 0).all():
            raise ValueError("transitions: a weight of a stay is not positive")
    return 0


cdef int stays_from_arrays(object arrays, object transitions, TransitionsRecord *out) except -1:
    if STAY_SCALE in transitions:
        input_coins_from_arrays(arrays, transitions, out)
    else:
        prior = entry_of(transitions, STAY_PRIOR, "transitions")
        if not isinstance(prior, np.ndarray) or prior.shape != (2,):
            raise ValueError(f"transitions: {STAY_PRIOR} is {prior!r:.100}; expected two numbers")
        for value, name in zip(prior, ("kappa", "omega"), strict=True):
            out.hyperparameters.push_back(concentration_of(value, f"transitions: {name}"))
    counts_from_array(transitions, "stays", out.n_states, &out.stays)
    if "contexts" in transitions:
        counts_from_array(transitions, "draws", out.n_states + 1, &out.draws)
    if "n_stages" in transitions:
        out.n_stages = <int32_t> integer_of(
            transitions["n_stages"], "the number of stages", 2, MOST_STAGES)
        counts_from_array(transitions, "advances", out.n_states, &out.advances)
    if "stayed" in arrays:
        bytes_from_array(arrays["stayed"], "stayed", 1, &out.stayed)
    if "stages" in arrays:
        bytes_from_array(arrays["stages"], "stages", out.n_stages - 1, &out.stages)
    return 0


cdef int transitions_from_arrays(object arrays, TransitionsRecord *out) except -1:
    out.n_states = <int32_t> integer_of(
        entry_of(arrays, "n_states", "the record"), "n_states", 1, MOST_CUSTOMERS)
    transitions = entry_of(arrays, "transitions", "the record")
    out.hyperparameters = [
        concentration_of(entry_of(transitions, name, "transitions"), f"transitions: {name}")
        for name in HYPERPARAMETERS]
    if STAY_PRIOR in transitions or STAY_SCALE in transitions:
        stays_from_arrays(arrays, transitions, out)
    levels = tree_from_arrays(transitions, out) if "contexts" in transitions else []
    levels_from_arrays([transitions, *levels], "transitions", out.contexts, out.n_states + 1,
                       out.n_states, &out.levels)
    out.check()
    return 0


cdef list tree_from_arrays(object transitions, TransitionsRecord *out):
    contexts = entry_of(transitions, "contexts", "transitions")
    shape_of(entry_of(contexts, "n_before", "contexts"),
             entry_of(contexts, "parents", "contexts"), &out.contexts)
    values = entry_of(transitions, CONTEXT_ALPHA, "transitions")
    n_columns = out.contexts.n_columns()
    if not isinstance(values, np.ndarray) or values.shape != (n_columns,):
        raise ValueError(
            f"transitions: {CONTEXT_ALPHA} is {values!r:.100}; expected {n_columns} numbers")
    for value in values:
        out.hyperparameters.push_back(
            concentration_of(value, f"transitions: {CONTEXT_ALPHA}"))
    levels = entry_of(transitions, "levels", "transitions")
    if not isinstance(levels, list) or len(levels) != n_columns:
        raise ValueError(
            f"transitions: levels is {levels!r:.100}; expected a list of {n_columns} dicts")
    return levels


cdef int levels_from_arrays(list levels, str what, const ContextShape &shape,
                            int32_t n_labels, int32_t n_dishes,
                            vector[SeatingRecord] *out, bint seats=True) except -1:
    cdef SeatingRecord level
    cdef int32_t d
    for d in range(1, shape.depth() + 1):
        n_rows = integer_of(shape.n_rows(d, n_labels), "the number of restaurants", 0,
                            MOST_CUSTOMERS)
        record_from_arrays(levels[d - 1], shape.name(what.encode(), d).decode(),
                           <int32_t> n_rows, n_dishes, seats, &level)
        out.push_back(level)
    return 0


cdef Franchise frozen_transitions(object arrays, object contexts=None):
    cdef TransitionsRecord record
    cdef vector[ContextPlace] places
    cdef Franchise transitions = Franchise()
    transitions_from_arrays(arrays, &record)
    # Weights of the steps of a chain: with these its coins would have no probabilities.
    record.weights.clear()
    if record.contexts.exists():
        transitions.native.set_contexts(record.contexts)
        if contexts is not None:
            places_of(contexts.depths, contexts.prefixes, record.contexts, &places)
            transitions.native.set_places(places)
    transitions.native.load(record, FIRST + record.n_states)
    if record.n_inputs and contexts is not None:
        set_input_rows(transitions.native, contexts.inputs)
    return transitions


def hyperparameters_of(record):
    """Hyperparameters in the record of transitions, by name."""
    names = (*HYPERPARAMETERS, STAY_PRIOR, STAY_MEAN, STAY_PRECISION, STAY_SCALE, CONTEXT_ALPHA)
    return {name: record[name] for name in names if name in record}


def occupancies_of(record):
    """Number of steps in every state, from the record of transitions."""
    # Every step is a customer of the dish that is its state, a stay or an advance.
    steps = np.bincount(record["dishes"], weights=record["n_customers"])
    for level in record.get("levels", ()):
        # Tables of a level are customers of the one above.
        direct = level["n_customers"].astype(np.int64) - level["n_tables"]
        steps += np.bincount(level["dishes"], weights=direct, minlength=len(steps))
    return steps + record.get("stays", 0) + record.get("advances", 0)


def changes_of(arrays):
    """The probability that the next step leaves each state in the arrays of a draw.

    For transitions that depend on contexts, that of a step without one; on inputs, of a step
    with the mean ones.
    """
    cdef Franchise transitions = frozen_transitions(arrays)
    cdef int32_t j, k, n = transitions.native.n_slots()
    cdef vector[float64_t] row
    cdef float64_t[::1] out = np.zeros(n - FIRST)
    row.resize(n)
    for j in range(FIRST, n):
        transitions.native.fill_row(-1, j, row.data())
        # (Not one minus the rest, which would cancel where a state lasts.)
        for k in range(n):
            if k != j and k != START:
                out[j - FIRST] += row[k]
    return np.asarray(out)


def stays_of(arrays, inputs):
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
        That a state which is left without a context is drawn again.
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

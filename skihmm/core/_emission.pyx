"""Sufficient statistics of the emissions, for Python."""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._record cimport Archive, archive_of, from_record, integers_of
from skihmm.core._types cimport int32_t


cdef class EmissionStats:
    """Emission statistics, by default of a part that emits no column; see ``_emission.pxd``."""

    @property
    def n_steps(self):
        """Number of steps."""
        return self.shared.get().n_steps

    @property
    def n_inputs(self):
        """Number of inputs of a step."""
        return self.shared.get().n_inputs()

    @property
    def draws_parameters(self):
        """Whether samplers can draw the states' parameters for a sweep."""
        return self.shared.get().parameters() is not NULL

    def check_arrays(self, arrays, labels):
        """Refuse a record that does not belong to these data, without any change.

        Parameters
        ----------
        arrays : object
            A result of :meth:`to_arrays`, or any other content of a file.
        labels : ndarray of shape (n_steps,), int32
            State of every step: 0, 1, ..., each of them occupied.

        Raises
        ------
        ValueError
            If `arrays` are not the statistics of the observations in these states.
        """
        cdef vector[int32_t] states
        integers_of(labels, "labels", &states)
        self.shared.get().check_record(archive_of(arrays, "emission"), states)

    def load(self, arrays, n_states):
        """Load the statistics of a record, with state k in slot ``FIRST + k``.

        The data of a posterior draw are unknown, so all checks that need only `arrays`
        are made here too: unchecked entries must not be used as indices.

        Raises
        ------
        ValueError
            If `arrays` are no statistics over `n_states` states.
        """
        self.shared.get().load(archive_of(arrays, "emission"), n_states)

    def take_hyperparameters(self, arrays):
        """Load the hyperparameters of a record, and the numbers of subjects.

        Parameters
        ----------
        arrays : dict
            Result of :meth:`to_arrays`.
        """
        self.shared.get().load_shared(archive_of(arrays, "emission"))

    def reread(self):
        """Re-read observations that the caller has changed in place.

        Returns
        -------
        is_done : bool
            False if copies depend on the observations.
        """
        return self.shared.get().reread()

    def watch(self, is_stopped):
        """Set a callback that long computations poll; True stops them.

        Parameters
        ----------
        is_stopped : callable
            If it returns True, the computation ends with KeyboardInterrupt.
        """

    def open_gaps(self, starts, every=False):
        """Fill missing entries that :meth:`draw_hidden` draws, with zeros before others are set.

        Which: :func:`skihmm.emissions._gaps.filled_places`; by default none.

        Parameters
        ----------
        starts : ndarray of shape (n_sequences,)
        every : bool, default=False

        Returns
        -------
        steps, columns : ndarray of shape (n_filled,)
        """
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)

    def first_filled(self, starts):
        """Return values for these entries before any are drawn, shape (n_filled,)."""
        return np.empty(0)

    def open_hidden(self, starts, stream=None):
        """Set all numbers that are drawn besides the labels before a chain draws any.

        Missing entries get the values of :meth:`first_filled`, rows possible weights; until then
        weights are unknown, and predictive probabilities are integrals over weights.  With a
        stream, offsets of subjects come from a registration.
        """
        self.set_hidden({"filled": self.first_filled(starts)})

    def hidden(self):
        """Return the numbers that are drawn besides the labels.

        Returns
        -------
        hidden : dict of str to ndarray
            `filled`, the values of missing entries, shape (n_filled,); `weights` of
            rows, shape (n_steps * n_weights,).  Without entries of size zero.
        """
        return {}

    def set_hidden(self, hidden):
        """Set some of these numbers; statistics do not follow before they are loaded.

        Parameters
        ----------
        hidden : dict of str to ndarray
        """

    def draw_hidden(self, slots, stream, is_chain=False):
        """Draw those that the hyperparameters do not bring, given the slots of all steps.

        Parameters of the states are drawn from their posterior for it, and discarded.
        The statistics do not follow before they are settled.

        Parameters
        ----------
        slots : ndarray of shape (n_steps,), int32
        stream : RandomStream
        is_chain : bool, default=False
            Whether numbers that the records of draws contain are drawn too: offsets of
            subjects; with more subjects than in the fit, offsets of the further subjects.

        Returns
        -------
        means : ndarray of shape (n_filled,) or None
            Conditional means of missing entries; None if nothing is drawn.
        """
        return None

    def filled(self):
        """Return the values that fill missing entries, in units of the data."""
        return self.hidden().get("filled", np.empty(0))

    def rows(self):
        """Rows of every part, for particle filters.

        Returns
        -------
        rows : list of (ndarray, int, list of int)
            Codes of symbols (int32) or numbers, with their inputs; how many of the columns
            are observed; and for each of these that holds symbols their number.
        """
        return []

    def to_arrays(self, labels):
        """Packed copy of the statistics, slot k as state ``labels[k]``."""
        cdef Archive archive
        cdef vector[int32_t] states
        integers_of(labels, "labels", &states)
        self.shared.get().write(archive, states)
        return from_record(archive.record())

    def predictives(self, slots, inputs=None):
        """Posterior predictive distributions of states.

        Parameters
        ----------
        slots : ndarray of shape (n_states,), int32
            NEW stands for a new state.
        inputs : ndarray of shape (n_inputs,) or (n_states, n_inputs), optional
            What precedes the observation or is given, if the emission has inputs; by
            default the inputs of the first step of a sequence.

        Returns
        -------
        predictives : list
            One entry for every column of the data: the probabilities of its symbols, shape
            (n_states, n_symbols), or the means of its numbers, shape (n_states,), of angles
            the means of exp(i angle).
        """
        return []

    def draw_values(self, slots, n_known, stream, inputs=None):
        """Draw one observation for every slot listed, each from the predictive distribution.

        Parameters
        ----------
        slots : ndarray of shape (n_draws,), int32
            As for :meth:`predictives`; a slot may occur many times.
        n_known : list of int
            Number of symbols (the first ones) that may be drawn, for every column of the
            data; 0 for a column of numbers.
        stream : RandomStream
        inputs : ndarray of shape (n_draws, n_inputs), optional
            One row for every draw, as for :meth:`predictives`.

        Returns
        -------
        values : list of ndarray of shape (n_draws,)
            One entry for every column of the data: codes or numbers.
        """
        return []

    def check(self, slots):
        """Compare the statistics with a recount; returns a message or None.

        Parameters
        ----------
        slots : ndarray of shape (n_steps,)
            The slot of every step.
        """
        cdef vector[int32_t] states
        integers_of(slots, "slots", &states)
        return self.shared.get().check(states).decode() or None

"""Abstract statistics of the emissions."""

from libcpp.vector cimport vector


cdef class EmissionStats:
    """Base class of emission statistics; see ``_emission.pxd`` for every hook's contract.

    A hook without a meaningful default raises: a silent no-op would sample from the
    wrong law.
    """

    cdef int add_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks add_value")

    cdef int remove_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks remove_value")

    cdef float64_t fill_probs(self, intp_t t, float64_t *out) except? -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks fill_probs")

    cdef int fill_pair(self, intp_t t, const int32_t *states,
                       float64_t *out) except -1 nogil:
        cdef vector[float64_t] row
        row.resize(self.n_slots)
        self.fill_probs(t, row.data())
        out[0] = row[states[0]]
        out[1] = row[states[1]]
        return 0

    cdef bint fill_column(self, intp_t t, SymbolColumn *out) noexcept nogil:
        return False

    cdef const int32_t *totals(self, float64_t *offset_out) noexcept nogil:
        return NULL

    cdef bint is_moderate(self, float64_t least, float64_t most) noexcept nogil:
        return False

    cdef bint as_seating(self, SeatingEmission *out) noexcept nogil:
        return False

    cdef int resize(self, int32_t n_slots) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks resize")

    cdef int commit(self) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks commit")

    cdef int rollback(self) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks rollback")

    cdef float64_t log_joint(self) except? -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks log_joint")

    cdef int draw_hyperparameters(self, bitgen_t *g) except -1 nogil:
        return 0  # all hyperparameters are fixed

    cdef int settle(self, const int32_t *states) except -1 nogil:
        return 0

    cdef const Family *family(self) except NULL:
        raise NotImplementedError(f"{type(self).__name__} lacks family")

    cdef object numbers_of(self, arrays, int32_t n_states):
        raise NotImplementedError(f"{type(self).__name__} lacks numbers_of")

    cdef size_t n_bytes(self) noexcept nogil:
        return 0

    cdef int draw_parameters(self, const int32_t *occupancy, bint lazy,
                             bitgen_t *g) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks draw_parameters")

    cdef const float64_t *likelihoods(self, intp_t t,
                                      const int32_t *occupancy) except NULL nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks likelihoods")

    cdef float64_t log_likelihood(self, intp_t t, int32_t k, bitgen_t *g) except? -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks log_likelihood")

    cdef int draw_newborn(self, int32_t k, intp_t t, bitgen_t *g) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks draw_newborn")

    cdef int reseat(self, const int32_t *states, bitgen_t *g) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks reseat")

    def check_arrays(self, arrays, labels):
        """Refuse a record that is not made of these data; nothing changes.

        Parameters
        ----------
        arrays : object
            What :meth:`to_arrays` has returned, perhaps, or what a file holds instead.
        labels : ndarray of shape (n_steps,), int32
            State of every step: 0, 1, ..., each of them used.

        Raises
        ------
        ValueError
            If `arrays` are not the statistics of the observations in these states.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks check_arrays")

    def load(self, arrays, slots):
        """Take over the statistics of a record, its state i in slot ``slots[i]``.

        The data of a posterior draw are not known, so what can be told from `arrays`
        alone has to be checked here too: nothing may be indexed by what a file holds.

        Raises
        ------
        ValueError
            If `arrays` are no statistics over ``len(slots)`` states.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks load")

    def take_hyperparameters(self, arrays):
        """Take over the hyperparameters of a record; nothing by default.

        Parameters
        ----------
        arrays : dict
            Of :meth:`to_arrays`.
        """

    def columns(self, arrays=None):
        """What particle filters take for every column, and in `arrays`, if given.

        Parameters
        ----------
        arrays : dict, optional
            A record; its hyperparameters replace those of these statistics.

        Returns
        -------
        columns : list
        """
        raise NotImplementedError(f"{type(self).__name__} lacks columns")

    def records(self, arrays):
        """The parts of a record that belong to :meth:`columns`.

        Parameters
        ----------
        arrays : dict

        Returns
        -------
        records : list
        """
        raise NotImplementedError(f"{type(self).__name__} lacks records")

    def to_arrays(self, labels):
        """Packed copy of the statistics, slot k as state ``labels[k]``."""
        raise NotImplementedError(f"{type(self).__name__} lacks to_arrays")

    def predictives(self, slots):
        """What states will emit next, their parameters integrated out.

        Parameters
        ----------
        slots : ndarray of shape (n_states,), int32
            NEW stands for a fresh state.

        Returns
        -------
        predictives : list
            One entry for every column of the data: the probabilities of its symbols, shape
            (n_states, n_symbols), or the means of its numbers, shape (n_states,).
        """
        raise NotImplementedError(f"{type(self).__name__} lacks predictives")

    def draw_values(self, slots, n_known, stream):
        """Draw one observation for every slot listed, each from the predictive distribution.

        Parameters
        ----------
        slots : ndarray of shape (n_draws,), int32
            As for :meth:`predictives`; a slot may occur many times.
        n_known : list of int
            Of every column of the data, how many of its symbols (the first ones) may be
            drawn; 0 for a column of numbers.
        stream : RandomStream

        Returns
        -------
        values : list of ndarray of shape (n_draws,)
            One entry for every column of the data: codes or numbers.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks draw_values")

    def check(self, slots):
        """Compare the statistics with a recount; returns a message or None.

        Parameters
        ----------
        slots : ndarray of shape (n_steps,)
            The slot of every step.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks check")

"""Statistics of the emissions, seen from Python."""


cdef class EmissionStats:
    """Base class of emission statistics; see ``_emission.pxd``."""

    @property
    def n_steps(self):
        """Number of steps."""
        return self.shared.get().n_steps

    @property
    def draws_parameters(self):
        """Whether samplers can draw the states' parameters and keep them for a sweep."""
        return self.shared.get().parameters() is not NULL

    cdef object numbers_of(self, arrays, int32_t n_states):
        raise NotImplementedError(f"{type(self).__name__} lacks numbers_of")

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

    def load(self, arrays, n_states):
        """Take over the statistics of a record, its state k in slot ``FIRST + k``.

        The data of a posterior draw are not known, so what can be told from `arrays`
        alone has to be checked here too: nothing may be indexed by what a file holds.

        Raises
        ------
        ValueError
            If `arrays` are no statistics over `n_states` states.
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

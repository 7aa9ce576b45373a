"""Two-level Chinese restaurant seating: the transitions' prior."""

from skihmm.core._record cimport concentration_of, record_to_arrays


cdef class Franchise:
    """Seating of the transitions over slots (see ``_franchise.pxd``).

    Parameters
    ----------
    alpha, gamma : float
        Lower and top concentration, from 1e-50 to 1e50.
    """

    def __init__(self, alpha=1.0, gamma=1.0):
        self.seating = new Seating()
        self.shared.reset(self.seating)
        self.seating.set_concentrations(
            concentration_of(alpha, "alpha"), concentration_of(gamma, "gamma"))

    @property
    def alpha(self):
        """Lower concentration."""
        return self.seating.alpha

    @property
    def gamma(self):
        """Top concentration."""
        return self.seating.gamma

    cpdef dict to_arrays(self):
        """Packed copy of the seating (see ``SeatingRecord``) and its concentrations."""
        arrays = record_to_arrays(self.seating.record())
        arrays["alpha"] = self.seating.alpha
        arrays["gamma"] = self.seating.gamma
        return arrays

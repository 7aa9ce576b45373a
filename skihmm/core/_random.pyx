"""Random stream shared by compiled code and NumPy's Generator."""

from cpython.pycapsule cimport PyCapsule_GetPointer

import numpy as np


cdef class RandomStream:
    """A random stream on one of NumPy's bit generators.

    Parameters
    ----------
    seed : numpy.random.SeedSequence, int or numpy.random.BitGenerator
        Where the stream starts.  Anything but a bit generator seeds a new ``PCG64``.
    """

    def __init__(self, seed):
        if not isinstance(seed, np.random.BitGenerator):
            seed = np.random.PCG64(seed)
        self.bit_generator = seed
        self.generator = np.random.Generator(seed)
        self.bits = <bitgen_t *> PyCapsule_GetPointer(seed.capsule, "BitGenerator")

    @property
    def state(self):
        """State of the bit generator, as NumPy's plain dictionary."""
        return self.bit_generator.state

    @state.setter
    def state(self, value):
        self.bit_generator.state = value

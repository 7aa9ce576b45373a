# The restricted collapsed draw.  The algorithm, with the Metropolis-Hastings ratio, is the
# template in _rcd.hpp; proposals and kernels are C++ classes that are compiled for a chain and
# its emission.
from libcpp.map cimport map as cpp_map
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport pair

from skihmm.core._emission cimport Emission
from skihmm.core._product cimport Product
from skihmm.core._state cimport Chain, ChainState
from skihmm.core._types cimport int32_t, int64_t, intp_t


cdef extern from "_rcd.hpp" namespace "skihmm" nogil:
    cdef cppclass Exchange "skihmm::Exchange<skihmm::Emission>":
        Product r_old, r_new
        void remove_draw(Chain &chain, int32_t j, int32_t k, int64_t t) except +
        void add_draw(Chain &chain, int32_t j, int32_t k, int64_t t) except +
        void remove_block(Chain &chain, Emission &emission, int64_t start, int64_t stop,
                          int32_t j, const int32_t *labels, int32_t follower) except +
        void add_block(Chain &chain, Emission &emission, int64_t start, int64_t stop,
                       int32_t j, const int32_t *labels, int32_t follower) except +
        bint is_accepted(Chain &chain, const Product &q_old, const Product &q_new) except +
        void restore(Chain &chain, Emission &emission) except +
        void keep(Chain &chain, Emission &emission) except +

    cdef cppclass Move "skihmm::Move<skihmm::Emission>":
        # s_L -> s_0, collecting r_old; s_0 -> s*_L, collecting r_new; then accept (keep) or
        # reject (restore), returned by decide, or restore without a decision.
        void open(Chain &chain, Emission &emission, int64_t start, int64_t stop) except +
        void seat(Chain &chain, Emission &emission, const int32_t *path) except +
        bint decide(Chain &chain, Emission &emission, const int32_t *path,
                    const Product &q_old, const Product &q_new) except +
        void restore(Chain &chain, Emission &emission) except +
        # Note the slots of the block's neighbours and of `path` in chain.touched.
        void touch(Chain &chain, const int32_t *path) except +

    # Steps [starts[b], stops[b]) for b < n; without stops, one step each.
    cdef struct Blocks "skihmm::Blocks":
        const int32_t *starts
        const int32_t *stops
        int64_t n

    cdef cppclass Proposal:
        void attach(Chain &chain, Emission &emission) except +
        void prepare(Chain &chain, Emission &emission, int64_t start, int64_t stop) except +
        void score(Chain &chain, int64_t start, int64_t stop, Product *q) except +
        void propose(Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except +
        void end_move(Chain &chain, Emission &emission, int64_t start, int64_t stop,
                      bint accepted) except +
        int64_t run(Chain &chain, Emission &emission, const Blocks &blocks,
                    int32_t *path) except +

    cdef cppclass SweepCounts:
        int64_t n_proposed, n_accepted
        cpp_map[string, pair[int64_t, int64_t]] trials

    cdef cppclass Kernel:
        SweepCounts sweep(Chain &chain) except +
        size_t n_bytes()

    cdef cppclass BlockKernel(Kernel):
        BlockKernel(Proposal *proposal, int64_t block_size) except +


cdef class BlockProposal:
    # True if it takes blocks of one step only; set by __init__.
    cdef readonly bint is_single_step
    # A new C++ proposal, compiled for the emission of a chain.
    cdef Proposal *build(self, Chain &chain) except NULL


cdef class CompiledKernel:
    # Built for an emission at the first sweep of a chain with it.
    cdef unique_ptr[Kernel] kernel
    cdef shared_ptr[Emission] emission
    # A new C++ kernel, compiled for the emission of a chain.
    cdef Kernel *build(self, Chain &chain) except NULL


cdef class RCDKernel(CompiledKernel):
    cdef readonly BlockProposal proposal
    cdef readonly intp_t block_size

# The public native interface: `from skihmm.core cimport Chain, Proposal, ...`.
from skihmm.core._emission cimport Emission, EmissionStats, stats_of
from skihmm.core._family cimport Family
from skihmm.core._franchise cimport Transitions
from skihmm.core._product cimport Product
from skihmm.core._random cimport RandomStream, below, bitgen_t, uniform
from skihmm.core._rcd cimport (
    BlockProposal,
    CompiledKernel,
    Exchange,
    Kernel,
    Proposal,
    RCDKernel,
)
from skihmm.core._slots cimport NEW, START, FIRST
from skihmm.core._state cimport Chain, ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t

# The public native interface: `from skihmm.core cimport ChainState, BlockProposal, ...`.
from skihmm.core._emission cimport EmissionStats, SymbolColumn
from skihmm.core._family cimport Family
from skihmm.core._franchise cimport NEW, START, FIRST, Franchise, Product, Seating
from skihmm.core._random cimport RandomStream, below, bitgen_t, uniform
from skihmm.core._rcd cimport BlockProposal, RCDKernel, RCDMove
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t

from skihmm.core._rcd import RCDKernel
from skihmm.core._state import ChainState
from skihmm.core._sweep_info import SweepInfo

class SplitMergeKernel:
    n_trials: int
    def __init__(self, n_trials: int = ...) -> None: ...
    def sweep(self, state: ChainState) -> SweepInfo: ...

class InterleavedKernel:
    local: RCDKernel
    split_merge: SplitMergeKernel
    split_merge_rate: float
    def __init__(self, local: RCDKernel, split_merge_rate: float) -> None: ...
    def sweep(self, state: ChainState) -> SweepInfo: ...

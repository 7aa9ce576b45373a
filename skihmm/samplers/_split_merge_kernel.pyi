from skihmm.core._rcd import CompiledKernel, RCDKernel

class SplitMergeKernel(CompiledKernel):
    n_trials: int
    def __init__(self, n_trials: int = ...) -> None: ...

class InterleavedKernel(CompiledKernel):
    local: RCDKernel
    split_merge_rate: float
    def __init__(self, local: RCDKernel, split_merge_rate: float) -> None: ...

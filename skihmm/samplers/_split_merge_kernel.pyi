from skihmm.core._rcd import CompiledKernel

class SplitMergeKernel(CompiledKernel):
    n_trials: int
    def __init__(self, n_trials: int = ...) -> None: ...

class InterleavedKernel(CompiledKernel):
    local: CompiledKernel
    split_merge_rate: float
    def __init__(self, local: CompiledKernel, split_merge_rate: float) -> None: ...

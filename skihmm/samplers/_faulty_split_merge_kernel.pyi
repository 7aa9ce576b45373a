from skihmm.samplers._split_merge_kernel import SplitMergeKernel

class FaultySplitMergeKernel(SplitMergeKernel):
    def __init__(self, n_trials: int = ..., bug: str | None = ...) -> None: ...

from skihmm.core._rcd import CompiledKernel

class RunSplitMergeKernel(CompiledKernel):
    local: CompiledKernel | None
    rate: float
    def __init__(self, local: CompiledKernel | None, rate: float) -> None: ...

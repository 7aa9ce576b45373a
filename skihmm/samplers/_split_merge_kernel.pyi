from skihmm.core._rcd import CompiledKernel

class InterleavedKernel(CompiledKernel):
    local: CompiledKernel | None
    split_merge_rate: float
    def __init__(self, local: CompiledKernel | None, split_merge_rate: float) -> None: ...

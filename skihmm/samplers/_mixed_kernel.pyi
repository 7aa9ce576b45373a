from skihmm.core._rcd import CompiledKernel

class MixedKernel(CompiledKernel):
    usual: CompiledKernel
    other: CompiledKernel
    share: float
    def __init__(self, usual: CompiledKernel, other: CompiledKernel, share: float) -> None: ...

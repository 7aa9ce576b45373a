from skihmm.core._rcd import CompiledKernel

class StickBreakingKernel(CompiledKernel):
    beam: bool
    def __init__(self, beam: bool = ...) -> None: ...

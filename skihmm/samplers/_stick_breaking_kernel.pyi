from skihmm.core._rcd import CompiledKernel

class StickBreakingKernel(CompiledKernel):
    beam: bool
    block_size: int
    n_threads: int
    def __init__(self, beam: bool = ..., block_size: int = ..., n_threads: int = ...) -> None: ...

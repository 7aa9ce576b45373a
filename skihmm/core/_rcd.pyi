from skihmm.core._state import ChainState

class BlockProposal:
    is_single_step: bool

class RCDKernel:
    proposal: BlockProposal
    block_size: int
    def __init__(self, proposal: BlockProposal, block_size: int = ...) -> None: ...
    def sweep(self, state: ChainState) -> tuple[int, int]: ...

from skihmm.core._rcd import BlockProposal

class StagedBlockedProposal(BlockProposal):
    def __init__(self) -> None: ...

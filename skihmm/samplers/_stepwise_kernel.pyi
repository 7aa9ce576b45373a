from skihmm.core._rcd import BlockProposal

DENSE_SLOTS: int

class StepwiseProposal(BlockProposal):
    def __init__(self, dense_slots: int = ...) -> None: ...

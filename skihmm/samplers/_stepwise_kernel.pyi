from skihmm.core._rcd import BlockProposal

class StepwiseProposal(BlockProposal):
    exact: bool
    def __init__(self, lookup_slots: int = ..., exact: bool = ...) -> None: ...

from skihmm.core._rcd import BlockProposal

DENSE_SLOTS: int

class StepwiseProposal(BlockProposal):
    exact: bool
    def __init__(
        self, dense_slots: int = ..., lookup_slots: int = ..., exact: bool = ...
    ) -> None: ...

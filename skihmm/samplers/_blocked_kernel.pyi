from skihmm.core._rcd import BlockProposal

GIBBS_CUT: float
BEAM_CUT: float
LOOKUP_SLOTS: int

class BlockedProposal(BlockProposal):
    def __init__(self, cut: float = ...) -> None: ...

class BeamProposal(BlockProposal):
    def __init__(self, cut: float = ...) -> None: ...

class SliceProposal(BlockProposal):
    def __init__(self, lookup_slots: int = ...) -> None: ...

from skihmm.core._rcd import BlockProposal

GIBBS_CUT: float
BEAM_CUT: float

class BlockedProposal(BlockProposal):
    def __init__(self, cut: float = ...) -> None: ...

class BeamProposal(BlockProposal):
    def __init__(self, cut: float = ...) -> None: ...

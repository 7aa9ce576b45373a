from skihmm.core._state import ChainState

class DirectAssignmentKernel:
    def sweep(self, state: ChainState) -> tuple[int, int]: ...

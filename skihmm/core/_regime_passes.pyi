from skihmm._typing import Flags, Floats, Integers, Labels

class RegimePasses:
    def __init__(
        self,
        likelihoods: Floats,
        first: Flags,
        groups: Integers,
        weights: Floats,
        startprob: Floats,
        transmat: Floats,
    ) -> None: ...
    def filter(self) -> tuple[Floats, Floats]: ...
    def smooth(self, probs: Floats) -> tuple[Floats, Floats]: ...
    def viterbi(self) -> Labels: ...

from typing import Literal, overload

from skihmm._records import ModelRecord
from skihmm._typing import Array, Floats, Integers, Labels
from skihmm.core._emission import EmissionStats
from skihmm.core._franchise import Places
from skihmm.core._random import RandomStream

class FrozenModel:
    n_steps: int
    n_states: int
    def __init__(
        self,
        arrays: ModelRecord,
        emission: EmissionStats,
        starts: Integers,
        restaurant: int | None = ...,
        stage: int = ...,
        contexts: Places | None = ...,
    ) -> None: ...
    def transition_matrix(self, t: int = ...) -> tuple[Floats, Floats]: ...
    def filter(self, with_probs: bool = ...) -> tuple[Floats, Floats | None]: ...
    @overload
    def forecast(self, n_steps: int) -> Floats: ...
    @overload
    def forecast(
        self, n_steps: int, with_logs: Literal[True]
    ) -> tuple[Floats, Floats | None, Floats | None]: ...
    def draw_future(
        self, log_columns: Floats, n_paths: int, n_steps: int, stream: RandomStream
    ) -> Labels: ...
    def log_mixtures(self, probs: Floats, log_probs: Floats | None = ...) -> Floats: ...
    def predictives(self, inputs: Floats | None = ...) -> list[Floats]: ...
    def draw_values(
        self,
        states: Integers,
        n_known: list[int],
        stream: RandomStream,
        inputs: Floats | None = ...,
    ) -> list[Array]: ...
    def smooth(self) -> Floats: ...
    def sample_path(self, stream: RandomStream) -> Labels: ...
    def sample_runs(
        self, steps: Integers, n_paths: int, stream: RandomStream
    ) -> Labels: ...
    def log_joint(self, path: Integers) -> float: ...
    def viterbi(self) -> tuple[float, Labels]: ...

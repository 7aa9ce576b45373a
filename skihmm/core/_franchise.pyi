from collections.abc import Mapping, Sequence
from typing import Protocol

from skihmm._records import ModelRecord
from skihmm._typing import Floats, Integers, NamedValues
from skihmm.core._random import RandomStream

MOST_STAGES: int
MOST_PENALTY: float

class Places(Protocol):
    @property
    def depths(self) -> Integers: ...
    @property
    def prefixes(self) -> Integers: ...

class Contexts(Places, Protocol):
    @property
    def n_before(self) -> int: ...
    @property
    def parents(self) -> Sequence[Integers]: ...

class Franchise:
    def __init__(
        self,
        alpha: float = ...,
        gamma: float = ...,
        prior: tuple[float, float] | None = ...,
        stays: Mapping[str, object] | None = ...,
        n_stages: int = ...,
        contexts: Contexts | None = ...,
        context_alpha: Sequence[float] = ...,
        switch_penalty: float = ...,
        inputs: Floats | None = ...,
    ) -> None: ...
    @property
    def hyperparameters(self) -> NamedValues: ...
    @property
    def has_coins(self) -> bool: ...
    @property
    def has_contexts(self) -> bool: ...
    @property
    def has_inputs(self) -> bool: ...
    @property
    def n_contexts(self) -> int: ...
    @property
    def n_stages(self) -> int: ...

def changes_of(arrays: ModelRecord) -> Floats: ...
def leaves_of(
    arrays: ModelRecord, stream: RandomStream | None = ..., with_new: bool = ...
) -> Floats: ...
def stay_counts_of(arrays: ModelRecord) -> tuple[Integers, Integers]: ...
def stays_of(arrays: ModelRecord, inputs: Floats) -> tuple[Floats, Floats]: ...

"""Chains that go on with more rows: the paths with which they begin."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skihmm._data.sequences import Sequences
from skihmm._fitting.chain import begin_chain
from skihmm._fitting.starts import ModelSettings
from skihmm._records import ChainRecord, ModelRecord, TransitionsRecord, hyperparameters_of
from skihmm._typing import Flags, Integers, Labels
from skihmm._using.decoding import target_model
from skihmm._using.new_subjects import N_PARTICLES, NewSubjects
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._subjects import has_subjects
from skihmm.transitions import BaseTransitions

# A sequence is continued from the message of so many of its last rows.
_TAIL = 500


@dataclass(frozen=True)
class Onward:
    """Rows of a fit and rows that were added, as the model of the fit sees them.

    Attributes
    ----------
    seen : Sequences
        All rows, encoded by the emission and the transitions of the fit.
    are_added : ndarray of shape (n_samples,), bool
    emission : BaseEmission
        Of the fit.
    """

    seen: Sequences
    are_added: Flags
    emission: BaseEmission

    def begin(
        self,
        record: ChainRecord,
        model: ModelRecord,
        states: Integers,
        whole: Sequences,
        settings: ModelSettings,
    ) -> ChainRecord:
        """Record of a chain on all rows.

        Earlier rows have `states`, and added rows the most probable path given the earlier rows
        under `model`, a draw.  All customers are seated anew.  ``settings.init`` is not used.
        """
        stream = RandomStream(None)
        stream.state = record["stream"]
        path = self._path(model, states, settings.transitions, stream)
        begun = _begun(settings.transitions, model["transitions"])
        start = replace(settings, transitions=begun, init=path)
        return begin_chain(whole, start, stream.bit_generator).record()

    def _path(
        self,
        model: ModelRecord,
        states: Integers,
        transitions: BaseTransitions,
        stream: RandomStream,
    ) -> Labels:
        seen, emission = self.seen, self.emission
        new = NewSubjects.find(seen, emission) if has_subjects(emission) else None
        if new is not None:
            found = new.added_to(model, emission, N_PARTICLES // 20, stream)
            seen, model = replace(seen, codes=new.codes), {**model, "emission": found}
        path = np.empty(seen.n_steps, dtype=np.int32)
        path[~self.are_added] = states
        rows, starts = self._new_sequences()
        if len(rows):
            begun = target_model(model, seen.part(rows, starts), emission, transitions)
            path[rows] = begun.viterbi()[1]
        for start, first, stop in self._continued():
            tail = seen.part(slice(max(start, first - _TAIL), first))
            message = target_model(model, tail, emission, transitions).follow()[-1]
            added = seen.part(slice(first, stop))
            onward = target_model(model, added, emission, transitions, message)
            path[first:stop] = onward.viterbi()[1]
        return path

    def _bounds(self) -> Iterator[tuple[int, int, int]]:
        """First row, first added row and end of every sequence."""
        starts = self.seen.starts.tolist()
        for start, stop in zip(starts, [*starts[1:], self.seen.n_steps], strict=True):
            yield start, stop - int(self.are_added[start:stop].sum()), stop

    def _new_sequences(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of new sequences, and the places of their first rows among them."""
        spans = [np.arange(start, stop) for start, first, stop in self._bounds() if start == first]
        sizes = [len(span) for span in spans]
        rows = np.concatenate([*spans, np.empty(0, dtype=np.intp)]).astype(np.intp)
        return rows, np.cumsum([0, *sizes[:-1]], dtype=np.intp)

    def _continued(self) -> Iterator[tuple[int, int, int]]:
        """Bounds of earlier sequences with added rows."""
        return (bounds for bounds in self._bounds() if bounds[0] < bounds[1] < bounds[2])


def _begun(transitions: BaseTransitions, record: TransitionsRecord) -> BaseTransitions:
    """Transitions that begin with the hyperparameters of a record."""
    begun = copy(transitions)
    # Those of inputs of staying are found again with the weights of the steps.
    return begun.set_params(
        **{
            name: value
            for name, value in hyperparameters_of(record).items()
            if name in begun.get_params()
        }
    )

"""Numbers that are drawn beside the labels, before a chain draws any."""

from __future__ import annotations

from skihmm._typing import Integers
from skihmm.core._emission import EmissionStats
from skihmm.core._random import RandomStream
from skihmm.emissions._gaps import first_filled


def open_hidden(stats: EmissionStats, starts: Integers, stream: RandomStream | None = None) -> None:
    """Set all numbers that are drawn beside the labels before a chain draws any.

    Missing entries get the values of :func:`first_filled`, rows possible weights; until then
    weights are unknown, and predictive probabilities are integrals over weights.  With a
    stream, effects that rows have besides their states come from a registration.
    """
    for part in stats.leaves:
        if stream is not None and part.effects is not None:
            part.effects.register(part, starts, stream)
        part.set_hidden({"filled": first_filled(part, starts)})
        part.open_weights()

"""Short names of transitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skihmm.transitions._base import BaseTransitions
from skihmm.transitions._hcrp import HCRPTransitions

TRANSITIONS: dict[str, Callable[[], BaseTransitions]] = {
    "hcrp": HCRPTransitions,
    # Nine tenths of the states are expected to last for 2 to 106 steps, so the data
    # decide (docs/dwell_times.md).
    "sticky": partial(HCRPTransitions, expected_dwell=10),
}

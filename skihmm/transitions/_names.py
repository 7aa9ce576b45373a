"""Short names of transitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skihmm.transitions._base import BaseTransitions
from skihmm.transitions._hcrp import HCRPTransitions

TRANSITIONS: dict[str, Callable[[], BaseTransitions]] = {
    "hcrp": HCRPTransitions,
    # The prior of the dwell time spans 1 to 100 steps (docs/dwell_times.md), so that the
    # data decide.
    "sticky": partial(HCRPTransitions, expected_dwell=10),
}

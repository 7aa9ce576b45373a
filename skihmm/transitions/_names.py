"""Short names of transitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skihmm.transitions._base import BaseTransitions
from skihmm.transitions._hcrp import HCRPTransitions

TRANSITIONS: dict[str, Callable[[], BaseTransitions]] = {
    # For emissions whose states need not last.
    "auto": HCRPTransitions,
    "hcrp": HCRPTransitions,
    # Nine tenths of the states are expected to last for 2 to 106 steps, so the data
    # decide (docs/dwell_times.md).
    "sticky": partial(HCRPTransitions, expected_dwell=10),
    # From 3 to 6 nats long states are found as well; more hurts states of five steps
    # (docs/dwell_times.md).
    "persistent": partial(HCRPTransitions, expected_dwell=10, switch_penalty=4.0),
}

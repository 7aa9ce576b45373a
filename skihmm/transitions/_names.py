"""Short names of transitions."""

from __future__ import annotations

from collections.abc import Callable

from skihmm.transitions._hcrp import HCRPTransitions

TRANSITIONS: dict[str, Callable[[], HCRPTransitions]] = {"hcrp": HCRPTransitions}

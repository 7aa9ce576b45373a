"""Short names of transitions."""

from __future__ import annotations

from collections.abc import Callable

from skihmm.transitions._base import BaseTransitions
from skihmm.transitions._hcrp import HCRPTransitions

TRANSITIONS: dict[str, Callable[[], BaseTransitions]] = {"hcrp": HCRPTransitions}

"""What pickles say of the skihmm that made them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skihmm._data.validation import warn_caller
from skihmm._version import __version__

# Number of the attributes that pickles hold: add one when these change.
LAYOUT = 1


def with_version(state: Mapping[str, Any]) -> dict[str, Any]:
    """State to be pickled, with the version and the layout that made it."""
    return {**state, "_skihmm_version": __version__, "_skihmm_layout": LAYOUT}


def without_version(state: Mapping[str, Any], what: str) -> dict[str, Any]:
    """State from a pickle; ValueError for another layout, a warning for another version.

    `what` was pickled, for the error.
    """
    state = dict(state)
    version, layout = state.pop("_skihmm_version", "unknown"), state.pop("_skihmm_layout", None)
    if layout != LAYOUT:
        raise ValueError(
            f"This {what} was pickled by skihmm {version} with layout {layout}; skihmm "
            f"{__version__} reads layout {LAYOUT} only. Make it again, or load it with the "
            "version that made it."
        )
    if version != __version__:
        # One text for all parts of a pickle, which is shown once.
        warn_caller(
            f"A model that was pickled by skihmm {version} is being loaded by "
            f"{__version__}; fit it again if anything looks wrong."
        )
    return state

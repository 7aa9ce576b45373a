"""Kinds of findings."""

from __future__ import annotations

import re

import pytest

from skihmm.metrics import Finding
from skihmm.metrics._finding import KINDS


def test_the_docstring_lists_all_kinds():
    kinds = Finding.__doc__.split("kind : str")[1].split("size : float")[0]
    assert sorted(re.findall(r'"(\w+)"', kinds)) == sorted(KINDS)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind is 'drifts'; expected one of 'sequences', 'drift'"):
        Finding("drifts", 0.5, "Something drifts", "give time as an input")


def test_consequences_of_kinds():
    # An effect of noise alone is no state that moves.
    assert Finding("drift", 0.5, "seen", "remedy").makes_states
    assert not Finding("skew", 0.5, "seen", "remedy").makes_states

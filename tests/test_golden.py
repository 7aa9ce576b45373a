"""Chains give what they gave before the last rebuilding."""

import pytest
from golden import CASES, outcome, recorded

EXPECTED = recorded()
BY_DEFAULT = ("auto", "blocked sm", "stick-breaking", "predictions")


def test_every_golden_chain_is_run():
    assert CASES.keys() == EXPECTED.keys()


def _assert_same(result, expected):
    assert type(result) is type(expected)
    if isinstance(expected, dict):
        assert result.keys() == expected.keys()
        for key, value in expected.items():
            _assert_same(result[key], value)
    elif isinstance(expected, str):
        assert result == expected
    else:
        assert result == pytest.approx(expected, rel=1e-9, abs=1e-9)


# Emissions in Python take the most time; by default with some of the samplers.
def is_slow(name):
    return name.endswith("| python") and name.split(" |")[0] not in BY_DEFAULT


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if is_slow(n) else ()) for n in CASES],
)
def test_golden_chain(name):
    _assert_same(outcome(name), EXPECTED[name])

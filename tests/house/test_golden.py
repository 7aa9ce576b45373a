"""Chains give what they gave before the last rebuilding."""

import pytest
from golden import CASES, EMISSIONS, SAMPLERS, outcome, recorded

EXPECTED = recorded()
# By default every fifth pair, which leaves out no sampler and no emission; `golden.py
# compare` has all.
SLOW = {
    f"{sampler} | {emission}"
    for i, sampler in enumerate(SAMPLERS)
    for j, emission in enumerate(EMISSIONS)
    if (i + j) % 5
}


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


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES]
)
def test_golden_chain(name):
    _assert_same(outcome(name), EXPECTED[name])

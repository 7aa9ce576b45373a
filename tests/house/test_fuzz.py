"""A few fixed examples of what fuzz.py looks at in any number."""

import pytest
from fuzz import PROPERTIES, check


@pytest.mark.parametrize("test", PROPERTIES, ids=lambda test: test.__name__)
def test_fixed_examples(test):
    check(test, 3, derandomize=True)

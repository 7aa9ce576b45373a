#!/usr/bin/env python3
"""Print the version in skihmm/_version.py, without importing skihmm."""

import re
from pathlib import Path

text = (Path(__file__).parent.parent / "skihmm" / "_version.py").read_text()
print(re.search(r'__version__ = "(.+)"', text)[1])

"""What `import skihmm` brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
# Beyond what scikit-learn's basis imports.
import sklearn.base, sklearn.utils.parallel, sklearn.utils.validation
before = set(sys.modules)
import skihmm
print(*sorted(set(sys.modules) - before))

# What authors of extensions import.
import skihmm.testing
print(*sys.modules)

sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
import numpy as np
from skihmm.inspection import TraceDisplay
try:
    TraceDisplay({"lp": np.zeros((1, 3))}).plot(x="draw")
except ImportError as error:
    print(error)
"""
# For plots, downloads, clusters, files and tests: imported where they are needed.
NOT_NEEDED = {
    "dask",
    "distributed",
    "matplotlib",
    "ray",
    "skihmm.datasets",
    "skihmm.inspection",
    "skihmm.testing",
    "skops",
    "urllib.request",
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Lines that a new process prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_nothing_heavy_is_imported(printed):
    modules = set(printed[0].split())
    assert "skihmm._hcrp_hmm" in modules
    assert modules & NOT_NEEDED == set()
    ours = {"skihmm", "sklearn", "numpy", "scipy", "joblib"}
    third = {name.split(".")[0] for name in modules} - ours - sys.stdlib_module_names
    # Compiled modules announce themselves by Cython's names.
    assert {name for name in third if not name.startswith("_cy")} <= {"cython_runtime"}


def test_the_test_kit_needs_no_pytest(printed):
    assert {"pytest", "_pytest"} & set(printed[1].split()) == set()


def test_without_matplotlib(printed):
    assert printed[2:] == [
        "TraceDisplay.plot requires matplotlib. You can install it with `pip install matplotlib`."
    ]

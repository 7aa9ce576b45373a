"""What `import skihmm` brings along."""

from __future__ import annotations

import subprocess
import sys

# Beyond what scikit-learn's own basis imports.
PROGRAM = """
import sys
import sklearn.base, sklearn.utils.parallel, sklearn.utils.validation
before = set(sys.modules)
import skihmm
print(*sorted(set(sys.modules) - before))
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


def test_nothing_heavy_is_imported(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    modules = set(done.stdout.split())
    assert "skihmm._hcrp_hmm" in modules
    assert modules & NOT_NEEDED == set()
    ours = {"skihmm", "sklearn", "numpy", "scipy", "joblib"}
    third = {name.split(".")[0] for name in modules} - ours - sys.stdlib_module_names
    # Compiled modules announce themselves by Cython's own names.
    assert {name for name in third if not name.startswith("_cy")} <= {"cython_runtime"}


def test_the_test_kit_needs_no_pytest(tmp_path):
    """As ``PROGRAM``, of what authors of extensions import."""
    program = (
        "import sys, skihmm.testing; assert not {'pytest', '_pytest'} & {*sys.modules}"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        timeout=300,
        check=True,
    )

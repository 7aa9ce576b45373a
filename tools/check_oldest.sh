#!/usr/bin/env bash
# The whole test suite on the oldest versions that pyproject.toml allows, in a fresh
# virtual environment: every "name>=1.2" of the dependencies and of the extra "test-all"
# becomes "name==1.2.*".  The package itself is built against a new NumPy.
# About eight minutes on two cores.  Arguments go to pytest:
#
#   tools/check_oldest.sh                          # everything
#   tools/check_oldest.sh tests/estimator/test_common.py     # scikit-learn's own checks
#
# PYTHON names the interpreter (default: python3); the oldest versions need Python 3.11.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
"${PYTHON:-python3}" -m venv "$venv"
# shellcheck disable=SC1091
. "$venv/bin/activate"

oldest=$(python - <<'END'
import re
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
# Used for comparisons only, and not available for the oldest NumPy: its tests are skipped.
skipped = {"arviz-stats>=0.6", "skihmm[test]"}
for line in [*project["dependencies"], *extras["test"], *extras["test-all"]]:
    if line in skipped:
        continue
    found = re.fullmatch(r"([\w-]+(?:\[[\w,-]+\])?)>=(\d+)(?:\.(\d+))?(?:\.\d+)?", line)
    if found is None:
        raise SystemExit(f"pyproject.toml: {line!r} has no lower bound of the form >=1.2")
    name, major, minor = found.groups()
    print(f"{name}=={major}.{minor or 0}.*")
END
)
# shellcheck disable=SC2086
echo "oldest versions:" $oldest
# shellcheck disable=SC2086
pip install -q . $oldest
pip list 2>/dev/null | grep -iE "^(numpy|scipy|scikit-learn|joblib|pandas|pytest) "
pytest -q "$@"

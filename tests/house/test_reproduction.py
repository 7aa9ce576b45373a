"""The reproduction scripts: killed and resumed runs end like undisturbed ones."""

from __future__ import annotations

import csv
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "reproduce_sequence1.py"
# CPU time is measured, not chosen.
TIMES = ("seconds", "seconds_per_sweep", "act", "seconds_to_reach")

# All runs of the script in one process and its forks, which import everything once.
KILLED = """
import contextlib, os, random, runpy, signal, sys, time
from pathlib import Path
import matplotlib.pyplot, skihmm.datasets

script = Path(sys.argv[1])
sys.path.insert(0, str(script.parent))
import reproduction

def run(folder, n_sweeps):
    # Budgets are sweeps; a scale of one is three of them.
    sys.argv = [
        str(script), "--clock", "sweeps", "--scale", str(n_sweeps / 3), "--seeds", "1",
        "--jobs", "1", "--save-every", "0", "--folder", folder,
        "--only", "SGibbs +SM=2", "Beam", "HDP", "SB",
    ]
    runpy.run_path(str(script), run_name="__main__")

def contents(folder):
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # replaced in between
            found[path] = path.stat().st_mtime_ns
    return found

run("whole", 30)
rng, n_killed = random.Random(0), 0
for _ in range(4):
    # Otherwise a child would print again what the parent has buffered.
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        sys.stdout = open(os.devnull, "w")
        run("killed", 30)
        os._exit(0)
    # After some of what it writes, however fast the machine is.
    before, n_changes, status = contents("killed"), rng.randint(1, 30), None
    while n_changes > 0 and status is None:
        done, found = os.waitpid(pid, os.WNOHANG)
        status = found if done else None
        now = contents("killed")
        n_changes -= now != before
        before = now
    if status is None:
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    n_killed += os.WIFSIGNALED(status)
print("killed", n_killed, "of 4")
run("killed", 30)
# Files of another set-up are refused.
run("killed", 12)
"""


def quality(folder):
    with open(folder / "trials.csv") as file:
        return [
            {key: value for key, value in row.items() if key not in TIMES}
            for row in csv.DictReader(file)
        ]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_and_resumed(tmp_path):
    driver = tmp_path / "driver.py"
    driver.write_text(KILLED)
    done = subprocess.run(
        [sys.executable, str(driver), str(SCRIPT)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    assert done.returncode != 0
    assert "belongs to another set-up" in done.stderr
    (n_killed,) = re.findall(r"killed (\d) of 4", done.stdout)
    assert int(n_killed) >= 2, done.stderr
    assert quality(tmp_path / "killed") == quality(tmp_path / "whole")
    assert len(quality(tmp_path / "killed")) == 7
    assert done.stdout.count("| Beam +SM=13 | 1 |") == 2


@pytest.mark.parametrize("name", ["sequence2", "alice"])
def test_options_are_explained(name, monkeypatch, capsys):
    script = SCRIPT.with_name(f"reproduce_{name}.py")
    monkeypatch.syspath_prepend(SCRIPT.parent)
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(script), run_name="__main__")
    assert "--scale" in capsys.readouterr().out
